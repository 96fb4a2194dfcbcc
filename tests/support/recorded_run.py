"""One run as its roles reported it: the view, the curves, the summary and the accounts of tests are made of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from simul.launch.monitoring.curves.figures import LEARNER_FIGURES
from simul.launch.monitoring.snapshot import ProcessFigures, Snapshot

EPISODES = {"return_mean": 2.5, "return_min": -1.0, "return_max": 9.0, "length_mean": 40.5, "length_min": 3,
            "length_max": 80}  # fmt: skip
AGAINST = {"games": 200, "win_rate": 1.0, **EPISODES, "figure.foul": 0.5}
SAMPLES = {"received": 28, "stored": 20, "waiting": 1, "dropped": {"duplicate": 7}}
LEARNER = {
    **dict.fromkeys(LEARNER_FIGURES, 0.5), "policy_version": 123457, "policy_loss": -0.0123, "value_loss": 0.345,
    "entropy": 1.9, "learning_rate": 3e-4, "skipped_minibatches": 0,
    "policy_lag": {"mean": 1.23, "max": 20, "recent_mean": 2.0, "recent_max": 3},
    "store_state": "unreachable", "store_behind_sec": 1312.3,
    "unrolls": {"received": 12, "learned": 9, "waiting": 1, "dropped": {"stale": 2}}, "samples": SAMPLES,
    "replay": {"held": 8, "uses": 3.5},
}  # fmt: skip
FIGURES = {  # of the last report of the curves
    "worker/wait_share": 0.621, "worker/envs_share": 0.2, "worker/messages_share": 0.17, "worker/other_share": 0.01,
    "worker/env_step_us": 1234.5, "evaluation/score": 487.25, "evaluation/best_score": 490.0,
    "evaluation/policy_version": 123456.0,
}  # fmt: skip
STAGE_SHARES = {"wait": 0.5, "step": 0.15, "encode": 0.06, "search": 0.04, "submit": 0.15, "receive": 0.05,
                "report": 0.05}  # fmt: skip


def process(name: str = "simul-worker-0", **changes: Any) -> ProcessFigures:
    fields = {
        "name": name, "pid": 1, "create_time": 0.0, "state": "ready", "restarts": 3, "cpu_percent": 99.0,
        "rss_mb": 150.0, "children_rss_mb": 400.0, "peak_rss_mb": 160.0, "peak_children_rss_mb": 500.0,
    }  # fmt: skip
    return ProcessFigures(**{**fields, **changes})


def server(seconds: float) -> dict[str, Any]:
    return {
        "decisions": 250_000 * seconds,  # and 30 by search: the samples below
        "batches": 2500 * seconds,
        "batch_histogram": {str(2**n): 10 * n for n in range(9)}, "waiting": 3, "clients": 300, "sessions": 4096,
        "latency_us": {"p50": 12345.6, "p99": 234567.8}, "queue_wait_us": {"p50": 1.0, "p99": 2.0},
        "forward_us": {"p50": 1.0, "p99": 2.0}, "policy_version": 123456, "policy_version_max": 123456,
        "device": "cpu", "precision": "bfloat16",
        "rows_errored": {"ERR_BUSY": 7}, "messages_refused": {"ERR_SPEC": 2, "ERR_BUSY": 1},
        "connections": {"opened": 9, "failed": 5, "closed": 6},
        "steps": {"seen": 10, "sent": 7, "open": 0, "dropped": {"closed": 2, "learner_down": 1}},
        "unrolls": {"completed": 15, "sent": 12, "waiting": 0, "dropped": {"learner_down": 3}},
        "samples": {"admitted": 30, "sent": 28, "waiting": 0, "dropped": {"shutdown": 2}},
    }  # fmt: skip


def workers(seconds: float) -> dict[str, Any]:
    return {
        "decisions": 20, "answered": 16, "refused": {"ERR_ORDER": 1},
        "unanswered": {"waiting": 1, "lost": {"server_lost": 2}}, "actions": 400 * seconds,
        "stage_sec": {stage: share * seconds for stage, share in STAGE_SHARES.items()},
        "episodes": {
            "started": 2 * seconds + 5, "finished": 2 * seconds, "alive": 0,
            "aborted": {"shutdown": 4, "simulator_died": 1},
        },
        "samples": {"submitted": 34, "accepted": 30, "refused": {"ERR_VALUE": 1}, "lost": {"worker_died": 2},
                    "waiting": 1},
        "recent": {
            "all": {"games": 200, **EPISODES, "figure.foul": 0.25},
            **dict.fromkeys(("max_base_power", "random", "simple_heuristics"), AGAINST),
            "random": {**AGAINST, "win_rate": 0.75},
            "seat_2": {"games": 3, "return_mean": -1.5, "figure.foul": 0.125},
        },
    }  # fmt: skip


def snapshot(seconds: float = 3900.0, **changes: Any) -> Snapshot:
    """The run after `seconds` of training; its accounts balance, as those of a run that has stopped."""
    names = ("simul-learner-0", "simul-inference-0", *(f"simul-worker-{n}" for n in range(7)))
    fields = {
        "phase": "training", "run_dir": "/somewhere/runs/pokemon", "game": "pokemon", "time": 1e9 + seconds,
        "elapsed_sec": seconds + 100.0, "ready_sec": seconds, "decisions_per_sec": 12345.6, "battles_per_sec": 45.67,
        "server": server(seconds), "learner": LEARNER, "workers": workers(seconds), "figures": FIGURES,
        "processes": [process(name) for name in names],
        "events": [f"12:00:0{n} worker {n} died{' long' * 30}" for n in range(9)],
    }  # fmt: skip
    return Snapshot(**{**fields, **changes})


def write_run(root: Path, **changes: Any) -> Path:
    """A run directory `root` with its status and curves; `changes`: of the snapshot."""
    root.mkdir()
    (root / "status.json").write_bytes(msgspec.json.encode(snapshot(**{"phase": "stopped", **changes})))
    rates = "win_rate/x,win_rate_low/x,win_rate_high/x"
    columns = f"decisions,training_sec,time,run/decisions_per_sec,learner/entropy,{rates}"
    rows = [f"{10 * n},{n},{n},{100 + n},{2 / n},{1 - 1 / n},{1 - 1.5 / n},{1 - 0.5 / n}" for n in range(1, 100)]
    (root / "curves.csv").write_text("\n".join([columns, *rows, ""]))
    return root
