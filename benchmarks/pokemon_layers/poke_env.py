"""Layer `poke_env`: the comparison. Its best max_concurrent_battles and Showdown settings are looked for first."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from benchmarks.harness.processes import Child
from benchmarks.pokemon_layers.layer import Sample, Setting
from simul.env_worker.games.pokemon.showdown.local_server import LocalServer, copy_package

CONCURRENCIES = (16, 8, 32)  # the first one is used while the servers are compared
SCOUT_SEC = 5.0
SCOUT_WARM_UP_SEC = 2.0


class Variant(NamedTuple):
    """How the server and the players are set up."""

    server: str
    concurrency: int

    def __str__(self) -> str:
        return f"{self.concurrency} battles at once, {self.server}"


class PokeEnvAlone:
    """RandomPlayer against itself, both in one process, over a local server."""

    name = "poke_env"
    title = "poke-env's RandomPlayer, server"

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self._best: Variant | None = None
        self._package: Path | None = None

    def measure(self, repeat: int) -> Sample:
        self._package = self._package or copy_package(self._setting.folder("showdown"))
        self._best = self._best or self._scout()
        sample = self._play(self._best, self._setting.warm_up_sec, self._setting.seconds)
        notes = {"max_concurrent_battles": self._best.concurrency, "showdown_server": self._best.server}
        return Sample(**{**vars(sample), "notes": notes})

    def _scout(self) -> Variant:
        """First the server's processes, then how many battles at once."""
        servers = list(self._servers())
        found: dict[Variant, float] = {}
        if self._setting.quick:
            return Variant(servers[0], CONCURRENCIES[0])
        for server in servers:
            self._try(Variant(server, CONCURRENCIES[0]), found)
        best = max(found, key=found.__getitem__)
        for concurrency in CONCURRENCIES[1:]:
            self._try(Variant(best.server, concurrency), found)
        return max(found, key=found.__getitem__)

    def _try(self, variant: Variant, found: dict[Variant, float]) -> None:
        found[variant] = self._play(variant, SCOUT_WARM_UP_SEC, SCOUT_SEC).decisions_per_sec
        self._setting.say(f"  poke-env with {variant}: {found[variant]:,.0f} decisions/s")

    def _servers(self) -> dict[str, str]:
        """What we call it, and `LocalServer`'s subprocesses."""
        servers = {"one process": "0", "processes as shipped": "{}"}
        if len(self._setting.cores) > 1:
            servers["a simulator process a core"] = f'{{"simulator": {len(self._setting.cores)}}}'
        return servers

    def _play(self, variant: Variant, warm_up_sec: float, seconds: float) -> Sample:
        assert self._package is not None
        log = self._setting.temporary / "showdown.log"
        subprocesses = self._servers()[variant.server]
        server = LocalServer(self._setting.node, self._package, log, subprocesses=subprocesses)
        try:
            server.wait_ready()
            client = Child(
                "benchmarks.pokemon_layers.poke_env_client",
                ["--url", server.url, "--server-pid", str(server.pid), "--format", self._setting.config.pokemon.format,
                 "--concurrency", str(variant.concurrency)],
                self._setting.temporary / "poke_env.log",
            )  # fmt: skip
            try:
                client.wait_ready()
                client.tell(warm_up_sec=warm_up_sec, seconds=seconds)
                return Sample(**client.result())
            finally:
                client.close()
        finally:
            server.close()
