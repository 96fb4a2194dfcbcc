"""Battles of a real Showdown server: the following process is killed or told nonsense, the connection is cut."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Iterator
from itertools import count

import pytest
from poke_env.concurrency import POKE_LOOP
from poke_env.player import RandomPlayer

from simul.common.config.games.pokemon import PokemonConfig, ShowdownAddress
from simul.common.protocol.decisions import Decision
from simul.common.protocol.messages import DECISION, TERMINATED
from simul.env_worker.games.pokemon.host.follower import Follower
from simul.env_worker.games.pokemon.host.host_messages import BattleEnd, HostTick
from simul.env_worker.games.pokemon.play.play import report
from tests.support.battles import Table, check_accounts, make_source
from tests.support.playing import Mishap, playing, started_follower
from tests.support.pokemon.recorded import recorded_seats
from tests.support.replayed import compare_with_training
from tests.support.replays import log_of
from tests.support.showdown import on_loop
from tests.support.waiting import PATIENCE_SEC


def killed(follower: Follower) -> None:
    for pid in follower.pids:
        os.kill(pid, signal.SIGKILL)


@pytest.mark.slow  # .ci/long runs it
def test_rooms_of_play_go_on_and_see_what_they_would_have_seen(server, stand):
    foe = server.player(RandomPlayer, "Random Kill")
    with playing(server, stand, "Agent Kill") as (agent, bridge, table):
        follower = agent._rooms._follower
        challenges = on_loop(foe._send_challenges("Agent Kill", 4, agent.ps_client.logged_in))
        table.serve(agent.accept(4), Mishap(bridge, lambda: killed(follower), 12, 40, 70))
        challenges.result(PATIENCE_SEC)
        assert follower.restarts == 3
    assert (sum(agent.tally.values()), agent.defaulted, agent.unreadable) == (4, 0, [])
    for env, tag in enumerate(agent.battles):
        asked = [d for d in bridge.asked if d.env == env and d.kind == DECISION]
        assert compare_with_training(server.battle_log(tag), "Agent Kill", asked, bridge.chosen) == len(asked)


@pytest.mark.slow  # .ci/long runs it
def test_rooms_that_say_nonsense_are_forfeited_and_named(server, stand):
    odd = ["|turn|soon", '|request|{"rqid": 99, "side": {"id": "p1", "pokemon": [{"ident": 7}]}}']
    foe = server.player(RandomPlayer, "Random Odd")
    with playing(server, stand, "Agent Odd") as (agent, bridge, table):

        def confuse() -> None:
            tag = list(agent.battles)[len(odd) - 1]
            on_loop(agent._handle_battle_message([[f">{tag}"], odd.pop().split("|")]))

        challenges = on_loop(foe._send_challenges("Agent Odd", 3, agent.ps_client.logged_in))
        table.serve(agent.accept(3), Mishap(bridge, confuse, 16, 20))
        challenges.result(PATIENCE_SEC)
        words = report(agent, as_json=False).splitlines()[1]
    assert (sum(agent.tally.values()), agent.given_up, len(agent.unreadable)) == (1, 0, 2)
    assert words.startswith("2 more were forfeited: what the server sent could not be followed (of the last, battle-")


@pytest.mark.slow  # .ci/long runs it
def test_battles_of_a_worker_go_on(server):
    address = ShowdownAddress("127.0.0.1", server.server.port)
    config = PokemonConfig(transport="websocket", servers=(address,), host_timeout_sec=100.0)
    source = make_source(config, envs=6, episodes=12)
    source.start()
    try:
        table = Table(source)
        for decisions in (60, 200, 300):
            while table.decisions < decisions:
                table.turn()
            killed(source._keeper._follower)
        table.play()
        metrics = source.metrics()
    finally:
        source.close()
    check_accounts(metrics)
    assert (metrics["episodes"]["finished"], metrics["episodes"]["aborted"]) == (12, {})
    assert (metrics["host_restarts"], metrics["bad_actions"]) == (3, 0)


def news(follower: Follower, wanted) -> HostTick:
    """What it says until `wanted` of it is true."""
    said = HostTick()
    deadline = time.monotonic() + PATIENCE_SEC
    while not wanted(said):
        assert time.monotonic() < deadline
        tick = follower.poll()
        said.rows += tick.rows
        said.ended += tick.ended
        said.parse_errors |= tick.parse_errors
    return said


@pytest.mark.parametrize(
    "nonsense",
    [
        {"side": {"id": "p1", "pokemon": [{"ident": 7}]}},
        {"side": {"id": "p1", "pokemon": []}, "active": [{"moves": "none"}], "teamPreview": True},
        {"side": None},
    ],
)
def test_nonsense_costs_its_own_battle_only(follower, nonsense):
    told_nonsense(follower, "|switch|||\n|move\n|-boost|p1a: X|atk|lots\n||||||", nonsense)


@pytest.mark.parametrize("line", ["|nonsense|x", "|switch|||"])
def test_a_battle_of_which_too_many_lines_are_nonsense_is_given_up(follower, line):
    _, request = recorded_seats("gen9randombattle")[0].records[0]
    told_nonsense(follower, "\n".join([line] * 20000), request)


@pytest.fixture(scope="module")
def follower() -> Iterator[Follower]:
    """One for all nonsense, because none of it may end the process."""
    follower = started_follower()
    yield follower
    follower.close()


NUMBERS = count(1)  # of its battles


def told_nonsense(follower: Follower, nonsense_lines: str, nonsense: dict) -> None:
    """One battle is told it and is given up; one beside it is told what is right and goes on."""
    lines, request = recorded_seats("gen9randombattle")[0].records[0]
    wrong, right = next(NUMBERS), next(NUMBERS)
    for battle in (wrong, right):
        follower.follow(battle, (True, False))
    follower.see(wrong, 0, 1, nonsense_lines, nonsense)
    follower.see(right, 0, 1, lines, request)
    follower.flush()
    said = news(follower, lambda said: said.rows)
    assert [(end.battle, end.reason) for end in said.ended] == [(wrong, "crashed")]
    assert (said.rows[0].battle, follower.restarts) == (right, 0)


def test_events_that_no_one_knows_are_counted_under_so_many_names(follower):
    lines, request = recorded_seats("gen9randombattle")[0].records[0]
    battle = next(NUMBERS)
    follower.follow(battle, (True, False))
    strange = "\n".join(f"|event{number}|x" for number in range(100))
    follower.see(battle, 0, 1, f"|constructor|x\n|__proto__|x\n{strange}\n{lines}", request)
    follower.end(BattleEnd(battle, 0, 1, "win"))
    follower.flush()
    counts = news(follower, lambda said: said.ended).parse_errors
    assert sum(counts.values()) == 102
    assert (counts["constructor"], counts["__proto__"], counts["others"], len(counts)) == (1, 1, 70, 33)


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
