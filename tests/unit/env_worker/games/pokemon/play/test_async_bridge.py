"""The hand-over between poke-env's event loop and the thread that serves."""

import asyncio
import select
import threading

import pytest

from simul.common.protocol.decisions import Action, Decision
from simul.env_worker.games.pokemon.play.async_bridge import AsyncBridge, SessionLost


@pytest.fixture
def loop():
    """An event loop in a thread of its own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    yield loop
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


def taken(bridge: AsyncBridge, count: int) -> list[Decision]:
    found: list[Decision] = []
    while len(found) < count:
        assert select.select([bridge.fileno()], [], [], 100)[0]
        found += bridge.take_decisions()
    return found


def answer_to(decision: Decision, action: int, **other) -> Action:
    key = {name: getattr(decision, name) for name in ("env", "seat", "episode", "step", "attempt")}
    return Action(**(key | other), action=action, log_prob=0.0, value=0.0, policy_version=0)


def test_each_asker_gets_its_own_answer(loop):
    bridge = AsyncBridge(loop)
    decisions = [Decision(env=env, seat=0, episode=0, step=0) for env in range(20)]
    askers = [asyncio.run_coroutine_threadsafe(bridge.ask(decision), loop) for decision in decisions]
    asked = taken(bridge, 20)
    assert bridge.take_decisions() == []
    bridge.resolve_actions([answer_to(decision, 100 + decision.env) for decision in reversed(asked)])
    assert [asker.result(100) for asker in askers] == [100 + env for env in range(20)]


def test_answers_that_nobody_waits_for_are_dropped(loop):
    bridge = AsyncBridge(loop)
    decision = Decision(env=0, seat=0, episode=0, step=4)
    asker = asyncio.run_coroutine_threadsafe(bridge.ask(decision), loop)
    taken(bridge, 1)
    an_end_is_acknowledged = answer_to(decision, -1)
    bridge.resolve_actions([answer_to(decision, 1, step=3), answer_to(decision, 2, episode=1), an_end_is_acknowledged])
    bridge.resolve_actions([answer_to(decision, 3)])
    bridge.resolve_actions([answer_to(decision, 4)])
    assert asker.result(100) == 3


def test_lost_sessions_are_told_to_those_who_wait(loop):
    bridge = AsyncBridge(loop)
    askers = [
        asyncio.run_coroutine_threadsafe(bridge.ask(Decision(env=env, seat=0, episode=0, step=1)), loop)
        for env in range(3)
    ]
    asked = {decision.env: decision for decision in taken(bridge, 3)}
    bridge.fail_sessions([(1, 0, 0), (2, 0, 5)])
    with pytest.raises(SessionLost):
        askers[1].result(100)
    bridge.resolve_actions([answer_to(asked[0], 7)])
    assert askers[0].result(100) == 7
    bridge.fail_sessions()
    with pytest.raises(SessionLost):
        askers[2].result(100)
