"""Runs across machines that share nothing: Linux namespaces with their own network, processes and memory files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from simul.launch.monitoring.accounting import imbalances
from tests.support.machines import AgentRun
from tests.support.namespaces import STORE, Machines, why_not

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]
ENVS = 16
CUT_SEC = 20.0


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[Machines]:
    if reason := why_not():
        pytest.skip(f"namespaces cannot stand for machines here: {reason}")
    store = tmp_path / "store"
    store.mkdir()
    with Machines(3, store) as made:
        yield made


def _episodes(status: dict[str, Any]) -> int:
    return int(status.get("workers", {}).get("episodes", {}).get("finished", 0))


@pytest.mark.parametrize("name", ["simul-worker-0", "simul-inference-0", "simul-learner-0"])
def test_cartpole_trains_across_machines_and_a_cut_link_costs_only_the_games_in_flight(
    machines, tmp_path, name
) -> None:
    run = AgentRun(
        tmp_path / "run", "--set", f"workers.envs={ENVS}", "--set", "learner.batch_steps=512",
        machines={address: machines.prefix(address) for address in machines.addresses}, host=machines.host,
        store=f"file://{STORE}",
    )  # fmt: skip
    try:
        run.wait_for(lambda s: s.get("learner", {}).get("policy_version", 0) >= 2, "it learns", timeout_sec=900.0)
        places = {p["name"]: (p["node"], p["machine"]) for p in run.status()["processes"]}
        assert len(set(places.values())) == 3, "three machines"
        assert run.status()["server"].get("weights_in_memory", 0) == 0, "nothing is shared"
        machines.cut(places[name][0], CUT_SEC)
        before = run.status()
        run.wait_for(lambda s: _episodes(s) > _episodes(before) + 2 * ENVS, "it plays on", timeout_sec=300.0)
        version = run.status()["learner"]["policy_version"]
        run.wait_for(lambda s: s["learner"]["policy_version"] > version, "it learns on", timeout_sec=300.0)
        run.wait_for(lambda s: s["server"]["policy_version"] > version, "and is served", timeout_sec=300.0)
        code, output = run.finish()
        assert code == 0, output
        summary = run.summary()
        assert imbalances(summary) == []
        assert set(summary["restarts"].values()) == {0}
        aborted = summary["battles"]["aborted_by_cause"]
        lost = {cause: n for cause, n in aborted.items() if cause != "shutdown"}
        unrolls = summary["unrolls"]
        if name == "simul-learner-0":
            assert lost == {}, "the games go on: only what is played meanwhile is not learned from"
            assert unrolls["dropped_before_sending"].get("learner_down", 0) > 0
        else:
            assert sum(lost.values()) <= ENVS, aborted
        if name == "simul-worker-0":
            assert unrolls["lost_on_the_way"] == 0
        assert (tmp_path / "store" / "owner.json").exists()
    finally:
        run.end_now()
