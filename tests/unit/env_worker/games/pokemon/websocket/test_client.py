"""What ShowdownClient adds to poke-env's PSClient, without a connection."""

import asyncio
import itertools

import pytest
from poke_env import AccountConfiguration, ServerConfiguration
from poke_env.concurrency import POKE_LOOP

from env_worker.games.pokemon.websocket.client import BURST, PACE_SEC, ShowdownClient


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
    return asyncio.run_coroutine_threadsafe(coroutine, POKE_LOOP).result(20)


def send_all(client: ShowdownClient, count: int) -> list[float]:
    """Seconds from one message to the next."""

    async def send() -> None:
        await asyncio.gather(*(client.send_message(f"/choose {number}", "room") for number in range(count)))

    on_loop(send())
    assert [text for _, text in client.websocket.sent] == [f"room|/choose {number}" for number in range(count)]
    times = [at for at, _ in client.websocket.sent]
    return [later - earlier for earlier, later in itertools.pairwise(times)]


@pytest.mark.parametrize("client", [True], indirect=True)
def test_on_a_server_of_others_messages_keep_the_pace_after_a_burst(client):
    gaps = send_all(client, BURST + 2)
    assert max(gaps[: BURST - 1]) < PACE_SEC / 2
    assert min(gaps[BURST - 1 :]) >= PACE_SEC * 0.95


def test_on_our_own_nothing_is_held_back(client):
    assert sum(send_all(client, 50)) < PACE_SEC


def test_popups_and_a_taken_name_are_told(client, heard):
    troubles, popups = heard
    on_loop(client._handle_message("|popup|The user 'X' was not found.||Try again."))
    assert popups == ["The user 'X' was not found. Try again."]
    on_loop(client._handle_message("|nametaken|Us|Someone is already using the name."))
    assert troubles == [
        "The server does not let us in as 'Us': Someone is already using the name. Try another --username."
    ]


def test_a_message_that_cannot_be_handled_is_told(client, heard):
    with pytest.raises(IndexError):
        on_loop(client._handle_message("no bars at all"))
    assert heard[0][0].startswith("A message of the server could not be handled")


def test_the_login_is_known(client):
    on_loop(client._handle_message("|updateuser| Us|1|101|{}"))
    assert client.logged_in.is_set()
