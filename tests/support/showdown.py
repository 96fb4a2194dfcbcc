"""A real Showdown server for tests, and poke-env's own players on it."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from poke_env import AccountConfiguration, ServerConfiguration
from poke_env.concurrency import POKE_LOOP
from poke_env.player import Player

from simul.env_worker.games.pokemon.install.node import find_node
from simul.env_worker.games.pokemon.showdown.client import SILENT
from simul.env_worker.games.pokemon.showdown.local_server import LocalServer, copy_package
from tests.support.waiting import PATIENCE_SEC, wait_for


class Showdown:
    """A running server, which a test may replace. `package` holds its logs."""

    def __init__(self, server: LocalServer, package: Path) -> None:
        self.server = server
        self.package = package
        self._players: list[Player] = []

    @property
    def configuration(self) -> ServerConfiguration:
        return ServerConfiguration(self.server.url, "http://127.0.0.1/")

    def player(self, kind: type[Player], name: str, **more: Any) -> Player:
        """One of poke-env's players, logged in."""
        player = kind(
            AccountConfiguration(name, None), log_level=SILENT, server_configuration=self.configuration,
            max_concurrent_battles=8, **more,
        )  # fmt: skip
        self._players.append(player)
        on_loop(player.ps_client.wait_for_login(wait_for=PATIENCE_SEC)).result(PATIENCE_SEC)
        return player

    def disconnect_players(self) -> None:
        """Otherwise their pings, whose numbers are drawn from the module `random`, go on in the tests that follow."""
        for player in self._players:
            on_loop(player.ps_client.stop_listening()).result(PATIENCE_SEC)
        self._players.clear()

    def battle_log(self, tag: str) -> dict[str, Any]:
        """What the server wrote of a finished battle: log, inputLog, winner."""
        name = f"{tag.removeprefix('battle-')}.log.json"
        wait_for(lambda: any(self.package.glob(f"logs/**/{name}")))  # players hear of the end before it is written
        return json.loads(next(self.package.glob(f"logs/**/{name}")).read_text())


@contextmanager
def showdown() -> Iterator[Showdown]:
    """Starts a server that logs its battles; stops it at the end."""
    with tempfile.TemporaryDirectory(prefix="simul-test-") as folder:
        package = copy_package(Path(folder))
        server = LocalServer(find_node().path, package, Path(folder) / "log", log_battles=True)
        server.wait_ready()
        running = Showdown(server, package)
        try:
            yield running
            server = running.server
            assert server.alive(), f"the Showdown server died:\n{server.log_tail()}"
        finally:
            running.server.close()


def on_loop(coroutine: Any) -> Any:
    """Begin something on poke-env's loop; returns its future."""
    return asyncio.run_coroutine_threadsafe(coroutine, POKE_LOOP)
