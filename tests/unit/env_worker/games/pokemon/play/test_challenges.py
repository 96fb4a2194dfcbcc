"""Whose withdrawn challenges end the wait for a battle, and battles with custom rules; a scripted server."""

import asyncio
from types import SimpleNamespace

import pytest
from poke_env import AccountConfiguration, ServerConfiguration
from poke_env.concurrency import POKE_LOOP

from simul.env_worker.games.pokemon.play import challenges
from simul.env_worker.games.pokemon.play.agent import AgentPlayer
from simul.env_worker.games.pokemon.play.async_bridge import AsyncBridge
from simul.env_worker.games.pokemon.play.challenges import PlayEnded
from simul.env_worker.games.pokemon.showdown.client import ShowdownClient
from tests.support.waiting import wait_for

FORMAT = "gen9randombattle"
MADE = f"/challenge {FORMAT}|{FORMAT}|||"


class Told:
    """An agent that is logged in, what it has sent, and what the server tells it."""

    def __init__(self, battle_format: str = FORMAT) -> None:
        self.sent: list[str] = []

        async def send(message: str) -> None:
            self.sent.append(message)

        self.agent = AgentPlayer(
            AccountConfiguration("Us", None), ServerConfiguration("ws://127.0.0.1:9/", ""), AsyncBridge(POKE_LOOP),
            SimpleNamespace(), battle_format=battle_format, concurrency=1, paced=False,
        )  # fmt: skip
        self.agent.ps_client.websocket = SimpleNamespace(send=send)
        self.hear("|updateuser| Us|1|101|{}")

    def hear(self, *messages: str) -> None:
        for message in messages:
            asyncio.run_coroutine_threadsafe(self.agent.ps_client._handle_message(message), POKE_LOOP).result(10)

    def begin(self, work):
        """Begin work of its challenges; returns its future."""
        return asyncio.run_coroutine_threadsafe(work, POKE_LOOP)


async def connected_by_hand(client) -> None:
    """No connection: messages are handled as the test tells them."""


@pytest.fixture
def scripted(monkeypatch):
    monkeypatch.setattr(ShowdownClient, "listen", connected_by_hand)
    monkeypatch.setattr(challenges, "BEGIN_SEC", 0.05)


@pytest.fixture
def told(scripted):
    return Told()


@pytest.mark.parametrize("ours", ["| Us| Slow Foe|", "|+Us|*Slow Foe|"])
def test_only_the_challenged_user_can_turn_a_challenge_down(told, ours):
    playing = told.begin(told.agent._challenges.challenge("slowfoe", 1))
    wait_for(lambda: told.sent[-1:] == [f"|/challenge slowfoe, {FORMAT}"])
    told.hear(f"|pm{ours}{MADE}", f"|pm| Third| Us|{MADE}", "|pm| Third| Us|/challenge")
    assert not told.agent._challenges.challenge_over.is_set()
    told.hear("|pm| Slow Foe| Us|/challenge")
    with pytest.raises(PlayEnded, match="slowfoe turned the challenge down"):
        playing.result(10)


def test_a_user_who_was_challenged_under_an_old_name_can_turn_us_down(told):
    playing = told.begin(told.agent._challenges.challenge("Old Name", 1))
    wait_for(lambda: told.sent[-1:] == [f"|/challenge Old Name, {FORMAT}"])
    told.hear(f"|pm| Us| New Name|{MADE}", "|pm| New Name| Us|/challenge")
    with pytest.raises(PlayEnded, match="Old Name turned the challenge down"):
        playing.result(10)


def test_an_accepted_challenge_is_withdrawn_by_its_challenger_only(told):
    playing = told.begin(told.agent._challenges.accept(1))
    told.hear(f"|pm|+Foe| Us|{MADE}")
    wait_for(lambda: told.sent[-1:] == ["|/accept +Foe"])
    told.hear(f"|pm| Third| Us|{MADE}", "|pm| Third| Us|/challenge")
    assert not told.agent._challenges.challenge_over.is_set()
    told.hear("|pm|+Foe| Us|/challenge")
    wait_for(lambda: told.sent[-1:] == ["|/accept Third"])
    playing.cancel()


ROOM = "battle-gen9ou-7"
RULES = (
    '|raw|<div class="infobox"><details class="readmore" open><summary><strong>{} custom rules:</strong></summary>'
    " {}</details></div>"
)


@pytest.mark.parametrize("ours", ["gen9ou@@@Inverse Mod,!Sleep Clause Mod", "gen9ou@@@inversemod, !sleepclausemod"])
def test_a_battle_with_the_runs_custom_rules_is_joined_again_and_played(scripted, ours):
    told = Told(ours)
    told.begin(told.agent._rejoin_rooms([ROOM, "battle-gen9randombattle-8"])).result(10)
    assert told.sent == [f"|/join {ROOM}"]
    rules = RULES.format(2, "Inverse Mod, !Sleep Clause Mod")
    told.hear(f">{ROOM}\n|init|battle\n{rules}\n|start")
    assert (told.agent.unreadable, told.agent.given_up) == ([], 0)


@pytest.mark.parametrize(
    ("ours", "rules", "why"),
    [
        ("gen9ou@@@Inverse Mod", (), "the battle's: none; the run's: inversemod"),
        ("gen9ou", (RULES.format(1, "Inverse Mod"),), "the battle's: Inverse Mod; the run's: none"),
    ],
)
def test_a_battle_with_other_custom_rules_is_forfeited_and_said(scripted, ours, rules, why):
    told = Told(ours)
    told.hear("\n".join([f">{ROOM}", "|init|battle", *rules, "|teampreview", "|start"]))
    wait_for(lambda: told.sent[-1:] == [f"{ROOM}|/forfeit"])
    assert told.agent.unreadable == [f"{ROOM}: its custom rules are not the run's ({why})"]


def test_challenges_with_the_runs_custom_rules_are_accepted_however_they_are_spelled(scripted):
    told = Told("gen9ou@@@Inverse Mod, !Sleep Clause Mod")
    for user, theirs in (("Other", "gen9ou"), ("Foe", "gen9ou@@@Inverse Mod,!Sleep Clause Mod")):
        told.hear(f"|pm| {user}| Us|/challenge {theirs}|{theirs}|||")
    assert told.begin(told.agent._challenge_queue.get()).result(10) == "Foe"
