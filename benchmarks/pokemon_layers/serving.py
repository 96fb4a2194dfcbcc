"""Layer `inference`: the inference server with frozen weights and the env workers, without a learner."""

from __future__ import annotations

import subprocess
import sys
import time

import msgspec

from benchmarks.harness.cores import family_seconds, seconds_by_role, us_by_role
from benchmarks.harness.processes import MeasurementFailed
from benchmarks.pokemon_layers.layer import Sample, Setting
from simul.common.role.run_directory import RunDir
from simul.common.runtime.installation import ROOT
from simul.launch.loadtest.cores import busy_seconds
from simul.launch.monitoring.view.figure_texts import mean_batch
from simul.launch.processes.process_group import RunningRoles
from simul.launch.processes.role_process import role_command, role_environment
from simul.launch.processes.role_reports import counts, number
from simul.launch.supervisor.game_spec import ask_for_spec

ANSWER_SEC = 120.0
TURN_SEC = 0.05
STOP_SEC = 10.0
FOR_EVER = "1000000000"


class Serving:
    """Real processes, started as the supervisor starts them."""

    name = "inference"
    title = "+ inference"

    def __init__(self, setting: Setting) -> None:
        self._setting = setting

    def measure(self, repeat: int) -> Sample:
        setting = self._setting
        run_dir = RunDir(setting.folder("inference"))
        run_dir.create()
        config = msgspec.structs.replace(setting.config, run_dir=str(run_dir.root), seed=repeat + 1)
        run_dir.write_config(config)
        run_dir.write_spec(ask_for_spec(config, role_command))
        _write_frozen_weights(run_dir)
        with _Roles(run_dir) as roles:
            try:
                return roles.measure(setting, run_dir)
            finally:
                roles.stop()


class _Roles(RunningRoles):
    """One server and its workers."""

    def measure(self, setting: Setting, run_dir: RunDir) -> Sample:
        workers = setting.config.workers.count
        self._start("inference_server", 1, [["--checkpoint", str(run_dir.checkpoints / f"{0:09d}")]])
        # With --episodes the worker records nothing: there is no learner.
        self._start("env_worker", workers, [["--episodes", FOR_EVER]] * workers)
        self._listen_for(setting.warm_up_sec)
        roles = {member.child.name: member.child.pid for member in self.group.members.values()}
        pids = list(roles.values())
        before = self._next_report()
        by_role = seconds_by_role(roles)
        begin, cpu, busy = time.perf_counter(), family_seconds(pids), busy_seconds(setting.cores)
        self._listen_for(setting.seconds)
        after = self._next_report()
        seconds = time.perf_counter() - begin
        cpu, busy = family_seconds(pids) - cpu, busy_seconds(setting.cores) - busy
        server = self.reports.totals("inference_server")
        notes = {
            "us_by_process": us_by_role(by_role, seconds_by_role(roles), after - before),
            "workers": workers, "envs_per_worker": setting.config.workers.envs, "mean_batch": mean_batch(server),
            "latency_us": counts(server, "latency_us"), "forward_us": counts(server, "forward_us"),
            "device": server.get("device"), "precision": server.get("precision"),
        }  # fmt: skip
        return Sample(after - before, seconds, cpu, busy, len(setting.cores), notes)

    def stop(self) -> None:
        """Workers first."""
        for role in ("env_worker", "inference_server"):
            self.group.stop(role, STOP_SEC, self._listen)

    def _start(self, role: str, count: int, arguments: list[list[str]]) -> None:
        self.group.start(role, count, 1, arguments)
        self.group.wait_until_ready(role, self._listen)

    def _next_report(self) -> float:
        """The server's decisions, at the moment of its report."""
        before = self._decisions()
        deadline = time.monotonic() + ANSWER_SEC
        while self._decisions() == before:
            if time.monotonic() > deadline:
                raise MeasurementFailed("the inference server answers nothing")
            self.receive_reports(0.5)
        return self._decisions()

    def _decisions(self) -> float:
        return number(self.reports.totals("inference_server"), "decisions") or 0.0

    def _listen_for(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            self.receive_reports(left)
        self.group.check_alive()

    def _listen(self) -> bool:
        """Receive reports for a moment. Always False: do not hurry (see the process group)."""
        self.receive_reports(TURN_SEC)
        return False


def _write_frozen_weights(run_dir: RunDir) -> None:
    """A checkpoint of fresh weights, made by a process of its own: torch stays out of this one."""
    command = [sys.executable, "-P", "-m", "benchmarks.pokemon_layers.fresh_checkpoint", str(run_dir.root)]
    done = subprocess.run(command, cwd=ROOT, env=role_environment(1), capture_output=True, text=True, check=False)
    if done.returncode:
        raise MeasurementFailed(f"no weights could be made:\n{done.stderr[-2000:]}")
