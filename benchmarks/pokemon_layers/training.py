"""Layers `learning` and `shipped`: all of `make up`, started by its own command and watched through its status.json.

`learning` makes one pass over what comes, which its promises are about; what ships spends more on learning.
"""

from __future__ import annotations

import sys
import time
from typing import Any

from benchmarks.harness import processes
from benchmarks.harness.cores import family_seconds, seconds_by_role, us_by_role
from benchmarks.harness.run_status import STOP_SEC, RunStatus, Status
from benchmarks.pokemon_layers.layer import Sample, Setting
from simul.common.nets.build import build_network
from simul.common.role.run_directory import RunDir
from simul.launch.loadtest.cores import busy_seconds
from simul.launch.monitoring.view.figure_texts import mean_batch
from simul.launch.processes.role_reports import counts, number

ONE_PASS = (
    "learner.epochs=1", "learner.minibatches=2", "learner.opponent_coefficient=0", "pokemon.set_knowledge=false",
)  # fmt: skip


class Training:
    """Decisions between two readings in steady state; processor time of the supervisor and all its descendants."""

    def __init__(self, setting: Setting, name: str = "shipped", more: tuple[str, ...] = ()) -> None:
        """`more`: settings beside those of `setting`."""
        self.name = name
        self.title = "+ learning in one pass: all of make up" if more else "+ learning as shipped: all of make up"
        self._setting = setting
        self._more = more

    def measure(self, repeat: int) -> Sample:
        setting = self._setting
        run_dir = RunDir(setting.folder(self.name))
        log = setting.temporary / f"{self.name}-{repeat}.log"
        command = [
            sys.executable, "-P", "-m", "simul.launch.cli", "up", str(setting.config_path), "--plain",
            "--run-dir", str(run_dir.root), f"--set=seed={repeat + 1}",
            *(f"--set={value}" for value in (*setting.overrides, *self._more)),
        ]  # fmt: skip
        with log.open("wb") as output:
            process = processes.start(command, output)
            try:
                return self._watch(process.pid, RunStatus(run_dir, process, log))
            finally:
                processes.stop(process, STOP_SEC)

    def _watch(self, pid: int, readings: RunStatus) -> Sample:
        setting = self._setting
        readings.wait_steady(setting.warm_up_sec)
        before = readings.fresh()
        roles = {p["name"]: p["pid"] for p in before["processes"]}
        by_role = seconds_by_role(roles)
        cpu, busy = family_seconds([pid]), busy_seconds(setting.cores)
        time.sleep(setting.seconds)
        after = readings.fresh()
        cpu, busy = family_seconds([pid]) - cpu, busy_seconds(setting.cores) - busy
        decisions = (number(after, "server", "decisions") or 0) - (number(before, "server", "decisions") or 0)
        seconds = after["time"] - before["time"]
        notes = {
            **facts(before, after),
            "parameters": _parameters(readings.run_dir),
            "us_by_process": us_by_role(by_role, seconds_by_role(roles), decisions),
        }
        return Sample(decisions, seconds, cpu, busy, len(setting.cores), notes)


def facts(before: Status, after: Status) -> dict[str, Any]:
    """Figures of learning besides speed.

    `learned_share`: steps learned from, of all recorded steps except those in an open unroll or waiting at
    the learner. Counted since the run's start, so that a backlog shows.
    """
    server, learner = after["server"], after["learner"]
    seen, waiting = number(server, "steps", "seen") or 0, number(learner, "steps_waiting") or 0
    settled = seen - (number(server, "steps", "open") or 0) - waiting
    learned = number(learner, "decisions_learned_since_start") or 0
    updates = (number(learner, "updates") or 0) - (number(before["learner"], "updates") or 0)
    return {
        "learned_share": round(min(1.0, learned / settled), 4) if settled > 0 else 0.0,
        "steps_seen": seen,
        "steps_learned": learned,
        "steps_waiting": waiting,
        "policy_lag": {name: value for name, value in counts(learner, "policy_lag").items() if name in ("mean", "max")},
        "dropped_steps": counts(server, "steps", "dropped"),
        "dropped_unrolls": counts(learner, "unrolls", "dropped"),
        "updates": updates,
        "learner_busy_share": number(learner, "busy_share"),
        "mean_batch": mean_batch(server),
        "latency_us": counts(server, "latency_us"),
        "forward_us": counts(server, "forward_us"),
        "device": server.get("device"),
        "precision": server.get("precision"),
    }


def _parameters(run_dir: RunDir) -> int:
    """Of the run's network."""
    network = build_network(run_dir.read_config().network, run_dir.read_spec())
    return sum(parameter.numel() for parameter in network.parameters())
