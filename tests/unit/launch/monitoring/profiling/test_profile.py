"""A profile of two snapshots: what each process did between them, and the same by role and by decision."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from simul.common.config.schema import Config
from simul.env_worker.worker import STAGES as WORKER_STAGES
from simul.inference_server.base.statistics import OTHER_STAGES
from simul.inference_server.base.statistics import STAGES as SERVER_STAGES
from simul.launch.monitoring.profiling.bottleneck import find_bottleneck
from simul.launch.monitoring.profiling.profile import STAGES, make_profile
from simul.launch.monitoring.profiling.profile_text import profile_text
from simul.launch.monitoring.snapshot import ProcessFigures, Snapshot
from simul.launch.processes.processor_time import CpuSample, ProcessCpu
from simul.learner.training.update import STAGES as LEARNER_STAGES
from tests.support import recorded_run

WORKER, SERVER, LEARNER = "simul-worker-0", "simul-inference-0", "simul-learner-0"
# Shares of each loop's time.
SHARES = {
    WORKER: {"step": 0.5, "encode": 0.1, "submit": 0.1, "receive": 0.04, "report": 0.01, "wait": 0.25},
    SERVER: {"receive": 0.1, "forward": 0.3, "reply": 0.1, "batch_wait": 0.1, "learner_full": 0.05, "wait": 0.35},
    LEARNER: {"update": 0.3, "batch": 0.1, "publish": 0.05, "wait": 0.5},
}
PIDS = {WORKER: 11, SERVER: 12, LEARNER: 13}


def process(name: str, seconds: float, **changes) -> ProcessFigures:
    stage_sec = {stage: share * seconds for stage, share in SHARES[name].items()}
    own = {"pid": PIDS[name], "create_time": 5.0, "stage_sec": stage_sec, "loop_sec": seconds}
    return recorded_run.process(name, **{**own, **changes})


def snapshot(seconds: float, **changes) -> Snapshot:
    """After `seconds` of training at 1,000 decisions a second."""
    done = 1000 * seconds
    fields = {
        "run_dir": "/runs/x", "game": "gymnasium", "counted_sec": {"inference_server": seconds},
        "server": {
            "decisions": done, "messages": done / 10, "batches": done / 40,
            "batch_histogram": {"32": done / 40, "1": 3}, "queue_wait_us": {"p50": 200.0, "p99": 900.0},
        },
        "processes": [process(name, seconds) for name in PIDS],
    }  # fmt: skip
    return recorded_run.snapshot(seconds, **{**fields, **changes})


def cpu(at: float) -> CpuSample:
    """The worker uses 0.8 of a core and its hosts 0.3, the server 0.4, the learner 0.2; others 0.05."""
    roles = {11: ProcessCpu(0.8 * at, 0.3 * at), 12: ProcessCpu(0.4 * at, 0.0), 13: ProcessCpu(0.2 * at, 0.0)}
    return CpuSample(at, roles, 1.75 * at, 1.8 * at)


def profiled(first: Snapshot, last: Snapshot, **changes):
    settings = {"cores": 2.0, "machine_cores": 2, "running": 7, "started": 1, **changes}
    return make_profile(first, last, (cpu(first.ready_sec), cpu(last.ready_sec)), **settings)


def test_what_is_said_of_each_role_names_every_stage_of_its_loop():
    assert set(STAGES["env_worker"]) == {*WORKER_STAGES, "encode", "search"}
    assert set(STAGES["inference_server"]) == {*SERVER_STAGES, *OTHER_STAGES}
    assert set(STAGES["learner"]) == set(LEARNER_STAGES)


def test_parts_are_of_the_time_between_the_snapshots():
    profile = profiled(snapshot(100.0), snapshot(110.0))
    by_name = {each.name: each for each in profile.processes}
    assert by_name[WORKER].wall_sec == pytest.approx(10.0)
    assert by_name[WORKER].stage_sec["step"] == pytest.approx(5.0)
    assert by_name[WORKER].covered == pytest.approx(1.0)
    assert by_name[LEARNER].covered == pytest.approx(0.95)
    assert (by_name[WORKER].cores, by_name[WORKER].children_cores) == pytest.approx((0.8, 0.3))
    worker = profile.roles["env_worker"]
    assert list(worker.share) == [stage for stage in STAGES["env_worker"] if stage in SHARES[WORKER]]
    assert worker.us_per_decision["step"] == pytest.approx(500.0)
    assert worker.busy == pytest.approx(0.75)
    assert profile.roles["inference_server"].busy == pytest.approx(0.5)
    assert (profile.decisions, profile.decisions_per_sec) == (10_000, 1000.0)
    assert (profile.messages_per_sec, profile.decisions_per_message, profile.messages_per_batch) == (100.0, 10.0, 4.0)
    assert (profile.mean_batch, profile.batch_histogram) == (40.0, {"32": 250})
    assert (profile.cores_used, profile.other_cores_used) == pytest.approx((1.75, 0.05))
    assert profiled(snapshot(100.0), snapshot(110.0), cores=1.0).other_cores_used == 0.0, "not ours to count"


def test_roles_of_a_cluster_are_no_other_processes():
    def placed(seconds: float) -> Snapshot:
        return snapshot(seconds, processes=[process(name, seconds, node="10.0.0.7") for name in PIDS])

    alone = (CpuSample(100.0, {}, 1.0, 5.0), CpuSample(110.0, {}, 1.5, 23.0))  # 1.75 cores that are not its children
    profile = make_profile(placed(100.0), placed(110.0), alone, cores=2.0, machine_cores=2, running=1, started=0)
    assert (profile.other_cores_used, profile.in_use()) == (0.0, 0.0)
    assert find_bottleneck(profile, Config(game="gymnasium")).limit == "games_in_flight"


def test_two_workers_cost_a_decision_what_both_take_and_the_busier_one_counts():
    def both(seconds: float) -> Snapshot:
        idle = {"wait": 0.9 * seconds, "step": 0.1 * seconds}
        second = msgspec.structs.replace(process(WORKER, seconds, pid=14, stage_sec=idle), name="simul-worker-1")
        return snapshot(seconds, processes=[process(WORKER, seconds), second])

    worker = profiled(both(100.0), both(110.0)).roles["env_worker"]
    assert worker.processes == 2
    assert worker.share["step"] == pytest.approx(0.3)
    assert worker.us_per_decision["step"] == pytest.approx(600.0)
    assert worker.busy == pytest.approx(0.75)


def test_a_process_that_was_started_meanwhile_counts_from_its_start_and_one_without_a_loop_not_at_all():
    again = process(WORKER, 4.0, pid=99, create_time=106.0)
    silent = process(LEARNER, 0.0, stage_sec={})
    last = snapshot(110.0, processes=[again, process(SERVER, 110.0), silent])
    profile = profiled(snapshot(100.0), last)
    by_name = {each.name: each for each in profile.processes}
    assert by_name[WORKER].wall_sec == pytest.approx(4.0)
    assert by_name[WORKER].stage_sec["step"] == pytest.approx(2.0)
    assert LEARNER not in by_name
    assert profile.silent == [LEARNER]
    assert f"no report  {LEARNER}" in profile_text(profile, find_bottleneck(profile, Config()), [], "x")
    assert "learner" not in profile.roles


def test_without_a_decision_nothing_is_divided_by():
    first, last = snapshot(100.0), snapshot(110.0)
    last.server.update(first.server)
    profile = profiled(first, last)
    assert (profile.decisions_per_message, profile.messages_per_batch, profile.mean_batch) == (None, None, None)
    assert profile.roles["learner"].us_per_decision["update"] == 0.0
    assert "No decision" in profile_text(profile, find_bottleneck(profile, Config()), [], "x")


def test_the_text_has_every_part_that_took_time_and_ends_with_the_advice():
    profile = profiled(snapshot(100.0), snapshot(110.0))
    bottleneck = find_bottleneck(profile, Config())
    text = profile_text(profile, bottleneck, [Path("/runs/x/profile.json")], "/runs/x")
    for shares in SHARES.values():
        for stage, share in shares.items():
            assert any(line.split()[:1] == [stage] and f"{share:.1%}" in line for line in text.splitlines()), stage
    assert not any(line.split()[:1] == ["sample"] for line in text.splitlines()), "it took no time"
    assert text.startswith(
        "Profile of /runs/x, 10.0 s: 10,000 decisions (1,000/s), 1.75 of 2 cores used, 0.05 by others"
    )
    assert "env workers: 0.80 cores + 0.30 by what they started" in text
    assert "100/s, 10.0 decisions each, 4.00 a batch" in text
    assert "7, 1 started meanwhile" in text
    assert "/runs/x/profile.json" in text
    assert text.splitlines()[-1] == bottleneck.sentence
    assert max(map(len, text.splitlines()[:-1])) <= 110
