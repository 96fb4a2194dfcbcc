"""Layers without an inference server, `ipc` to `websocket`: a driver and a host (or server) for every core."""

from __future__ import annotations

from benchmarks.harness.processes import Child
from benchmarks.pokemon_layers.layer import Sample, Setting, together

TITLES = {
    "ipc": "+ IPC",
    "encoding_bare": "+ tracking, encoding and mask",
    "encoding": "+ damage",
    "websocket": "the same over transport: websocket",
}


class Driven:
    """As many battles in flight in all as one env worker of the configuration has."""

    def __init__(self, setting: Setting, name: str) -> None:
        self._processes = len(setting.cores)
        self._envs = max(1, setting.config.workers.envs // len(setting.cores))
        self.name = name
        self.title = TITLES[name]
        self._setting = setting

    def measure(self, repeat: int) -> Sample:
        setting = self._setting
        drivers: list[Child] = []
        try:
            for index in range(self._processes):
                arguments = [
                    self.name, "--config", str(setting.config_path), "--envs", str(self._envs),
                    "--seed", str(repeat * 100 + index + 1), *(f"--set={value}" for value in setting.overrides),
                ]  # fmt: skip
                drivers.append(
                    Child("benchmarks.pokemon_layers.drive", arguments, setting.temporary / f"{self.name}-{index}.log")
                )
            for driver in drivers:
                driver.wait_ready()
            for driver in drivers:
                driver.tell(warm_up_sec=setting.warm_up_sec, seconds=setting.seconds)
            parts = [Sample(**driver.result()) for driver in drivers]
        finally:
            for driver in drivers:
                driver.close()
        notes = {"live_battles_per_process": self._envs, "processes": len(drivers)}
        return together([Sample(**{**vars(part), "notes": notes}) for part in parts])
