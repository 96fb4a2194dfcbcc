"""Layers `simulator` and `simulator_accelerated`: sim_bench.mjs, one process a core, nothing else."""

from __future__ import annotations

import subprocess
import time

import orjson

from benchmarks.harness import processes
from benchmarks.harness.processes import MeasurementFailed
from benchmarks.pokemon_layers.layer import Sample, Setting, one_after_another, together
from simul.env_worker.games.pokemon.install.folder import HOST_FOLDER
from simul.launch.loadtest.cores import busy_seconds

SCRIPT = HOST_FOLDER / "measure" / "sim_bench.mjs"
TRIAL_BATTLES = 30
SHORT = 0.25  # a window shorter by this share, because the machine became faster, is prolonged


class SimulatorAlone:
    """The script plays a number of battles, not a time: the number follows from the speed seen before."""

    def __init__(self, setting: Setting, *, accelerate: bool) -> None:
        self.name = "simulator_accelerated" if accelerate else "simulator"
        self.title = f"simulator alone, {'accelerated' if accelerate else 'stock'}"
        self._setting = setting
        self._accelerate = accelerate
        self._battle_sec = 0.0

    def measure(self, repeat: int) -> Sample:
        if not self._battle_sec:
            self._play(TRIAL_BATTLES, seed=1)
        parts: list[Sample] = []
        while (left := self._setting.seconds - sum(part.seconds for part in parts)) > SHORT * self._setting.seconds:
            battles = max(TRIAL_BATTLES, round(left / self._battle_sec))
            parts.append(self._play(battles, seed=10 * (repeat + 1) + len(parts)))
        return one_after_another(parts)

    def _play(self, battles: int, seed: int) -> Sample:
        cores = self._setting.cores
        busy, begin = busy_seconds(cores), time.perf_counter()
        running = [self._start(battles, seed * 100 + index) for index in range(len(cores))]
        try:
            results = [orjson.loads(self._output(process)) for process in running]
            busy = (busy_seconds(cores) - busy) / (time.perf_counter() - begin)
        finally:
            for process in running:
                processes.stop(process, 1.0)
        self._battle_sec = max(result["seconds"] for result in results) / battles
        notes = {"live_battles_per_process": 1, "processes": len(cores), "battles": battles * len(cores)}
        return together(
            [
                Sample(
                    decisions=result["decisions"],
                    seconds=result["seconds"],
                    cpu_sec=result["cpu_us_per_decision"] * result["decisions"] / 1e6,
                    busy_sec=busy * result["seconds"],
                    cores=len(cores),
                    notes=notes,
                )
                for result in results
            ]
        )

    def _start(self, battles: int, seed: int) -> subprocess.Popen[bytes]:
        command = [
            str(self._setting.node), str(SCRIPT), "--battles", str(battles), "--live", "1",
            "--format", self._setting.config.pokemon.format, "--seed", str(seed),
        ]  # fmt: skip
        if not self._accelerate:
            command.append("--no-accelerate")
        return processes.start(command, subprocess.DEVNULL, stdout=subprocess.PIPE)

    def _output(self, process: subprocess.Popen[bytes]) -> bytes:
        assert process.stdout is not None
        output = process.stdout.read()
        if process.wait():
            raise MeasurementFailed(f"sim_bench.mjs ended with exit code {process.returncode}")
        return output
