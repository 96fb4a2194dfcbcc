"""Players of a user's own as opponents, on the real simulator: what each failure costs, and whom."""

from __future__ import annotations

import time

from simul.common.config.matchups import Contestant, Pairing
from simul.common.config.schema import OpponentsConfig
from simul.common.protocol.messages import ABORTED, TERMINATED
from tests.support.battles import Table, check_accounts, make_source
from tests.support.pokemon import own_players
from tests.support.waiting import PATIENCE_SEC

LEARNER = Contestant("learner", policy="learner")
CARELESS, PLAIN = [f"{own_players.__name__}:{name}" for name in ("Careless", "Plain")]


def against(name: str, battles: int) -> Pairing:
    return Pairing(LEARNER, Contestant(name, bot=name), battles)


def test_each_failure_costs_its_own_battle_is_named_and_holds_up_no_other():
    pairings = [against(CARELESS, 5), against(PLAIN, 2), Pairing(LEARNER, LEARNER, 2)]
    source = make_source(opponents=OpponentsConfig(limit_sec=10 * PATIENCE_SEC), pairings=pairings, episodes=9, envs=9)
    source.start()
    try:
        table = Table(source)
        deadline = time.monotonic() + PATIENCE_SEC
        while sum(sum(results.values()) for results in source.metrics()["results"].values()) < 4:  # one hangs meanwhile
            assert time.monotonic() < deadline
            table.turn()
        assert source.metrics()["episodes"]["alive"] > 0
        source._own_players[CARELESS]._limit_sec = 1.0
        table.play()
        metrics = source.metrics()
    finally:
        source.close()
    check_accounts(metrics)
    assert metrics["episodes"]["aborted"] == {"opponent_error": 4}
    assert metrics["episodes"]["finished"] == 5
    assert sorted(end.kind for end in table.ends.values()) == sorted([ABORTED] * 4 + [TERMINATED] * 7)
    said = " ".join(metrics["events"])
    assert f"{CARELESS}: tests/support/pokemon/own_players.py:" in said
    assert "ValueError: careless (battle 0, which is aborted)" in said
    assert "its choice is invalid: 'move 9', to which the simulator says: [Invalid choice]" in said
    assert "it took longer than opponents.limit_sec, 1 s, over a choice (battle 2, which is aborted)" in said
    assert "its process ended with code 3 (battle 3, which is aborted)" in said
