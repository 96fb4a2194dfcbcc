"""`simul up` in a format of doubles, with the shipped configuration: its network fits, is served, learns and loads."""

from __future__ import annotations

import pytest

from simul.common.nets.io import load_policy
from simul.common.nets.models.pokemon import PokemonDoublesNetwork
from simul.launch.monitoring.accounting import imbalances
from tests.support.command import Simul

SMALL = (
    "workers.count=1", "workers.envs=8", "learner.batch_steps=256", "learner.minibatches=1",
    "opponents=random:0.4,max:0.4,self:0.2",
)  # fmt: skip


@pytest.mark.slow  # test_play.py serves doubles, test_conformance.py plays them; tests/unit/common/nets has the network
@pytest.mark.timeout(600)
def test_the_shipped_network_plays_and_learns_doubles(tmp_path):
    changes = [part for change in ("pokemon.format=gen9randomdoublesbattle", *SMALL) for part in ("--set", change)]
    simul = Simul("configs/pokemon.yaml", tmp_path / "run", *changes)
    try:
        simul.wait_for(_has_learned_of_both, "battles against both are over and learned from", 300.0)
        code, printed = simul.finish()
    finally:
        simul.end_now()
    assert code == 0, printed
    workers, summary = simul.status()["workers"], simul.summary()
    assert workers["invalid_choices"] == workers["bad_actions"] == 0
    assert workers["parse_errors"] == {}
    assert summary["mean_batch"] > 1
    assert summary["rows_errored"] == {}
    assert imbalances(summary) == []
    assert isinstance(load_policy(tmp_path / "run").network, PokemonDoublesNetwork)


def _has_learned_of_both(status: dict) -> bool:
    results = status.get("workers", {}).get("results", {})
    return status.get("learner", {}).get("policy_version", -1) >= 1 and {"random", "max_base_power"} <= set(results)
