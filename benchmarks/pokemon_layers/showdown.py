"""A local Showdown server out of the installed npm package: for the comparison with poke-env alone.

The package is not made to be started: folders and a config are missing. They are added to a copy.
"""

from __future__ import annotations

import shutil
import socket
import time
from pathlib import Path

from benchmarks.pokemon_layers import children
from env_worker.games.pokemon.host import HOST_SCRIPT

MODULES = HOST_SCRIPT.parent / "node_modules"
PACKAGE = MODULES / "pokemon-showdown"
MISSING_FOLDERS = (
    "config/chat-plugins", "logs/repl", "logs/chat", "logs/modlog", "logs/tickets", "databases",
)  # fmt: skip
START_SEC = 90.0
HOST = "127.0.0.1"


def copy_package(folder: Path) -> Path:
    """A copy of the package that can be started; the installed one stays as it is."""
    copy = folder / "node_modules" / "pokemon-showdown"
    shutil.copytree(PACKAGE / "dist", copy / "dist", ignore=shutil.ignore_patterns("*.map"))
    for name in ("config", "translations", "databases"):
        if (PACKAGE / name).is_dir():
            shutil.copytree(PACKAGE / name, copy / name, dirs_exist_ok=True)
    for name in ("pokemon-showdown", "package.json"):
        shutil.copy2(PACKAGE / name, copy / name)
    for name in MISSING_FOLDERS:
        (copy / name).mkdir(parents=True, exist_ok=True)
    for module in MODULES.iterdir():
        if module.name != "pokemon-showdown" and not module.name.startswith("."):
            (folder / "node_modules" / module.name).symlink_to(module, target_is_directory=True)
    return copy


class ShowdownServer:
    """Runs while it is open. `subprocesses` as in Showdown's config; "" = as shipped."""

    def __init__(self, node: Path, package: Path, subprocesses: str, log: Path) -> None:
        self.port = _free_port()
        self._log_path = log
        (package / "config" / "config.js").write_text(_config(package, self.port, subprocesses))
        command = [str(node), "pokemon-showdown", "start", "--skip-build", "--no-security", str(self.port)]
        self._log = log.open("ab")
        self._process = children.start(command, self._log, cwd=package)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def url(self) -> str:
        return f"ws://{HOST}:{self.port}/showdown/websocket"

    def wait_ready(self) -> None:
        """Until it takes connections."""
        deadline = time.monotonic() + START_SEC
        while True:
            try:
                socket.create_connection((HOST, self.port), 1.0).close()
                return
            except OSError:
                if self._process.poll() is not None or time.monotonic() > deadline:
                    tail = "\n".join(self._log_path.read_text(errors="replace").splitlines()[-12:])
                    raise children.LayerFailed(f"the Showdown server did not start:\n{tail}") from None
                time.sleep(0.1)

    def close(self) -> None:
        """Stop it and its subprocesses."""
        children.stop(self._process, 3.0)
        self._log.close()


def _config(package: Path, port: int, subprocesses: str) -> str:
    lines = [
        (package / "config" / "config-example.js").read_text(),
        f"exports.port = {port};",
        f"exports.bindaddress = '{HOST}';",
        "exports.repl = false;",
        "exports.crashguard = false;",
        "exports.autosavereplays = false;",
        f"exports.subprocesses = {subprocesses};" if subprocesses else "",
    ]
    return "\n".join(lines) + "\n"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])
