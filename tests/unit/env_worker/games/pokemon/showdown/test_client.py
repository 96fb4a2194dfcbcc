"""What ShowdownClient adds to poke-env's PSClient, without a connection."""

import asyncio

import pytest
from poke_env import AccountConfiguration, ServerConfiguration
from poke_env.concurrency import POKE_LOOP
from websockets.exceptions import ConnectionClosedError

from simul.env_worker.games.pokemon.showdown.client import BURST, PACE_SEC, ShowdownClient


class Wire:
    """Stands where the websocket does; keeps what is sent, and when."""

    def __init__(self) -> None:
        self.sent: list[tuple[float, str]] = []

    async def send(self, message: str) -> None:
        self.sent.append((POKE_LOOP.time(), message))


@pytest.fixture
def heard():
    """(troubles, popups) of `client`."""
    return [], []


@pytest.fixture
def client(heard, request):
    troubles, popups = heard
    client = ShowdownClient(
        AccountConfiguration("Us", None), ServerConfiguration("ws://127.0.0.1:9/", ""), start_listening=False,
        on_trouble=troubles.append, on_popup=popups.append, paced=getattr(request, "param", False),
    )  # fmt: skip
    client.websocket = Wire()
    return client


def on_loop(coroutine):
    return asyncio.run_coroutine_threadsafe(coroutine, POKE_LOOP).result(100)


def send_all(client: ShowdownClient, count: int) -> list[float]:
    """Seconds from the first message to each."""

    async def send() -> None:
        await asyncio.gather(*(client.send_message(f"/choose {number}", "room") for number in range(count)))

    on_loop(send())
    assert [text for _, text in client.websocket.sent] == [f"room|/choose {number}" for number in range(count)]
    times = [at for at, _ in client.websocket.sent]
    return [at - times[0] for at in times]


@pytest.mark.parametrize("client", [True], indirect=True)
def test_on_a_server_of_others_messages_keep_the_pace_after_a_burst(client):
    sent_at = send_all(client, BURST + 2)
    assert sent_at[BURST - 1] < (BURST - 1) * PACE_SEC  # no pace yet
    assert [at >= PACE_SEC * 0.95 * number for number, at in enumerate(sent_at[BURST:], start=1)] == [True, True]


def test_on_our_own_nothing_is_held_back(client):
    assert send_all(client, 50)[-1] < (50 - BURST) * PACE_SEC


def test_popups_and_a_taken_name_are_told(client, heard):
    troubles, popups = heard
    on_loop(client._handle_message("|popup|The user 'X' was not found.||Try again."))
    assert popups == ["The user 'X' was not found. Try again."]
    on_loop(client._handle_message("|nametaken|Us|Someone is already using the name."))
    assert troubles == [
        "The server refuses the login as 'Us': Someone is already using the name. Try another --username."
    ]


@pytest.mark.parametrize(
    ("user", "named", "ours"),
    [
        (" Us", 1, True), (" Us@!", 1, True), ("*Us", 1, True), ("+Us@!", 1, True), ("~US", 1, True),
        ("*Us 2", 1, False), ("*Us", 0, False), (" Guest 12", 0, False),
    ],
)  # fmt: skip
def test_the_login_is_over_once_the_server_names_us_with_any_rank(client, user, named, ours):
    on_loop(client._handle_message(f"|updateuser|{user}|{named}|102|{{}}"))
    assert client.logged_in.is_set() == ours


def test_a_message_that_cannot_be_handled_is_told(client, heard):
    with pytest.raises(IndexError):
        on_loop(client._handle_message("no bars at all"))
    assert heard[0][0].startswith("A message of the server could not be handled")


def test_a_room_is_handled_message_by_message_until_it_ends_whatever_its_chat_says(client, heard):
    tag = "battle-gen9randombattle-1"
    messages = [f">{tag}\n{line}" for line in ("|request|{}", *["|c|☆Foe|gg |deinit"] * 3, "|turn|2")]

    async def play() -> list[str]:
        """What is handled, in order."""
        handled, answer = [], asyncio.Event()

        async def handle(lines: list[list[str]]) -> None:
            handled.append(f"{lines[1][1]} begins")
            await answer.wait()
            handled.append(f"{lines[1][1]} ends")

        client._on_battle_message = handle
        tasks = [POKE_LOOP.create_task(client._handle_message(message)) for message in messages]
        while not handled:
            await asyncio.sleep(0)
        answer.set()
        await asyncio.gather(*tasks)
        return handled

    kinds = ["request", *["c"] * 3, "turn"]
    assert on_loop(play()) == [f"{kind} {when}" for kind in kinds for when in ("begins", "ends")]
    assert list(client._battle_locks) == [tag]
    on_loop(client._handle_message(f">{tag}\n|deinit"))
    assert client._battle_locks == {}
    assert heard == ([], [])


class Cut(Wire):
    """A connection that is gone."""

    async def send(self, message: str) -> None:
        raise ConnectionClosedError(None, None)


class Patient(ShowdownClient):
    """Has been logged in, and lost it."""

    def __init__(self, troubles: list[str], returns: list[list[str]]) -> None:
        async def back(rooms: list[str]) -> None:
            returns.append(rooms)

        super().__init__(
            AccountConfiguration("Us", None), ServerConfiguration("ws://127.0.0.1:9/", ""), start_listening=False,
            on_trouble=troubles.append, on_popup=troubles.append, paced=False, patience_sec=20.0, on_return=back,
        )  # fmt: skip
        self.websocket = Cut()
        on_loop(self._handle_message("|updateuser| Us|1|101|{}"))
        on_loop(self.send_message("/choose move 1|3", "battle-1"))  # is lost with the connection


def test_without_a_connection_rooms_hear_nothing_and_the_rest_waits_for_the_next_login():
    troubles, returns = [], []
    client = Patient(troubles, returns)
    assert not client.logged_in.is_set()
    on_loop(client.send_message("/choose move 1|4", "battle-1"))
    on_loop(client.send_message("/leave battle-1"))
    waiting = asyncio.run_coroutine_threadsafe(client.challenge("Foe", "gen9randombattle", None), POKE_LOOP)
    client.websocket = Wire()
    on_loop(client.send_message("/trn Us,0,"))
    assert [text for _, text in client.websocket.sent] == ["|/trn Us,0,"]
    assert returns == []
    login = asyncio.run_coroutine_threadsafe(client._handle_message("|updateuser| Us|1|101|{}"), POKE_LOOP)
    on_loop(client._handle_message('|updatesearch|{"searching":[],"games":{"battle-2":"Us vs. Foe"}}'))
    login.result(5)
    waiting.result(5)
    assert returns == [["battle-2"]], "joined again, and this one is new to us"
    assert [text for _, text in client.websocket.sent][1:] == ["|/utm null", "|/challenge Foe, gen9randombattle"]
    assert troubles == []


def test_a_name_that_our_lost_connection_still_holds_is_asked_for_again_later():
    troubles, returns = [], []
    client = Patient(troubles, returns)
    closed = []

    async def close() -> None:
        closed.append(True)

    client.websocket.close = close
    on_loop(client._handle_message("|nametaken|Us|Someone is already using the name."))
    assert (closed, troubles, returns) == ([True], [], [])


def test_without_patience_a_lost_connection_is_trouble_for_whoever_speaks(client):
    client.websocket = Cut()
    on_loop(client._handle_message("|updateuser| Us|1|101|{}"))
    with pytest.raises(ConnectionClosedError):
        on_loop(client.send_message("/choose move 1|3", "battle-1"))
