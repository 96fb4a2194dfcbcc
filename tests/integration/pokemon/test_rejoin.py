"""`simul play` loses its connection to a real Showdown server in the middle of battles, and plays them on."""

from __future__ import annotations

import asyncio

from poke_env.concurrency import POKE_LOOP
from poke_env.player import RandomPlayer

from simul.common.protocol.decisions import Decision
from simul.common.protocol.messages import DECISION, TERMINATED
from tests.support.playing import Mishap, playing
from tests.support.replayed import compare_with_training
from tests.support.replays import log_of
from tests.support.showdown import on_loop
from tests.support.waiting import PATIENCE_SEC


def cut(agent) -> None:
    """As if a cable were cut: no goodbye."""
    POKE_LOOP.call_soon_threadsafe(agent.ps_client.websocket.transport.abort)


def deaf_after_challenging(agent, foe) -> list[bool]:
    """The next challenge is accepted, and its battle begins, while nothing reaches us; returns what happened."""
    challenge, happened = agent.ps_client.challenge, []

    async def challenge_and_go(*what) -> None:
        agent.ps_client.challenge = challenge
        await challenge(*what)
        transport = agent.ps_client.websocket.transport
        transport.pause_reading()
        while not foe.battles:
            await asyncio.sleep(0.01)
        happened.append(not agent.battles)
        transport.abort()

    agent.ps_client.challenge = challenge_and_go
    return happened


async def accept_the_second(foe, agent) -> None:
    """We are cut off before a challenge is answered; the server calls it off, and we challenge again."""
    await foe._challenge_queue.get()
    agent.ps_client.websocket.transport.abort()
    await foe._accept_challenges(None, 1, None)


def sessions(asked: list[Decision]) -> dict[tuple[int, int], list[Decision]]:
    found: dict[tuple[int, int], list[Decision]] = {}
    for decision in asked:
        found.setdefault((decision.env, decision.episode), []).append(decision)
    return found


def test_battles_go_on_with_the_same_sessions_and_see_what_they_would_have_seen(server, stand, tmp_path):
    foe = server.player(RandomPlayer, "Random Cut")
    with playing(server, stand, "Agent Cut", replays=str(tmp_path)) as (agent, bridge, table):
        began_without_us = deaf_after_challenging(agent, foe)
        accepted = on_loop(foe._accept_challenges(None, 2, None))
        table.serve(agent.challenge("Random Cut", 2), Mishap(bridge, lambda: cut(agent), 10, 30, 31))
        accepted.result(PATIENCE_SEC)
    assert began_without_us == [True]
    assert sum(agent.tally.values()) == 2
    assert agent.tally["wins"] == foe.n_lost_battles
    assert agent.rejoins.rejoined >= 3
    assert agent.rejoins.started_over == agent.rejoins.vanished == agent.given_up == agent.defaulted == 0
    found = sessions(bridge.asked)
    assert sorted(found) == [(0, 0), (1, 0)]
    for decisions in found.values():
        *middle, end = decisions
        assert end.kind == TERMINATED
        assert [d.step for d in decisions if not d.attempt] == list(range(end.step + 1))
        assert all(d.kind == DECISION for d in middle)
    for env, tag in enumerate(agent.battles):
        asked = [d for d in bridge.asked if d.env == env and d.kind == DECISION]
        assert compare_with_training(server.battle_log(tag), "Agent Cut", asked, bridge.chosen) == len(asked)
    for replay in tmp_path.glob("*.html"):
        assert log_of(replay.read_text()).count("|turn|2\n") == 1, "the log is there once"
