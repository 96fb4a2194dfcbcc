"""A local Showdown server from the installed npm package, on this machine only, without accounts.

The package lacks folders and a config that a server needs; they are added to a copy.

    folder = copy_package(temporary)
    server = LocalServer(find_node().path, folder, log)
    server.wait_ready()
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
from websockets.exceptions import WebSocketException
from websockets.sync.client import connect

from simul.common.errors import ConfigError, EnvError
from simul.common.role.temporary import temporary_folder
from simul.env_worker.games.pokemon.install.folder import HOST_FOLDER

MODULES = HOST_FOLDER / "node_modules"
PACKAGE = MODULES / "pokemon-showdown"
CONFIG = Path(__file__).parent / "server_config.cjs"
MISSING_FOLDERS = (
    "config/chat-plugins", "logs/repl", "logs/chat", "logs/modlog", "logs/tickets", "databases",
)  # fmt: skip
START_SEC = 90.0
STOP_SEC = 3.0
LAST_LINES = 20  # a stack trace of Node's, and what it is about
HOST = "127.0.0.1"
FOLDER_PREFIX = "simul-showdown-"
ONE_PROCESS = "0"  # Showdown starts ten by default


def copy_package(folder: Path) -> Path:
    """A copy of the package (hard links where possible) that can be started; the installed one is not changed."""
    copy = folder / "node_modules" / "pokemon-showdown"
    ignore = shutil.ignore_patterns("*.map")
    shutil.copytree(PACKAGE / "dist", copy / "dist", ignore=ignore, copy_function=_link_or_copy)
    for name in ("config", "translations", "databases", "server/static"):
        if (PACKAGE / name).is_dir():
            shutil.copytree(PACKAGE / name, copy / name, dirs_exist_ok=True)
    for name in ("pokemon-showdown", "package.json"):
        shutil.copy2(PACKAGE / name, copy / name)
    for name in MISSING_FOLDERS:
        (copy / name).mkdir(parents=True, exist_ok=True)
    shutil.copyfile(CONFIG, copy / "config" / "config.js")
    for module in MODULES.iterdir():
        if module.name != "pokemon-showdown" and not module.name.startswith("."):
            (folder / "node_modules" / module.name).symlink_to(module, target_is_directory=True)
    return copy


@contextlib.contextmanager
def local_server(node: Path, port: int = 0) -> Iterator[LocalServer]:
    """A ready server with its own copy of the package; `port` 0: a free one.

    Raises ConfigError where the port is taken, EnvError where the server does not start.
    """
    if port:
        check_port(port)
    with temporary_folder(FOLDER_PREFIX) as folder:
        server = LocalServer(node, copy_package(folder), folder / "log", port=port)
        try:
            server.wait_ready()
            yield server
        finally:
            server.close()


class LocalServer:
    """Runs until it is closed, or the process that started it ends.

    Args:
        package: made by `copy_package`; one server at a time runs in it.
        subprocesses: what to change of Showdown's setting of that name, as JSON; {} = as shipped, 0 = none.
        log_battles: every battle's log and inputs are written below the package's logs/.
    """

    def __init__(
        self,
        node: Path,
        package: Path,
        log: Path,
        *,
        subprocesses: str = ONE_PROCESS,
        port: int = 0,
        log_battles: bool = False,
    ) -> None:
        self.port = port or free_port()
        self._log_path = log
        self._log = log.open("ab")
        command = [str(node), "pokemon-showdown", "start", "--skip-build", "--no-security", str(self.port)]
        environment = {
            **os.environ,
            "SIMUL_SHOWDOWN_PORT": str(self.port),
            "SIMUL_SHOWDOWN_SUBPROCESSES": subprocesses,
            "SIMUL_SHOWDOWN_LOG": str(int(log_battles)),
        }
        self._process = subprocess.Popen(
            command, cwd=package, env=environment, stdin=subprocess.DEVNULL, stdout=self._log, stderr=self._log,
            start_new_session=sys.platform != "win32",  # this process handles a terminal's Ctrl-C
        )  # fmt: skip

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def url(self) -> str:
        return f"ws://{HOST}:{self.port}/showdown/websocket"

    @property
    def page(self) -> str:
        """Where a browser finds it."""
        return f"http://{HOST}:{self.port}"

    def alive(self) -> bool:
        """False once the process has ended."""
        return self._process.poll() is None

    def takes_connections(self) -> bool:
        """Whether its port accepts connections."""
        with contextlib.suppress(OSError):
            socket.create_connection((HOST, self.port), 1.0).close()
            return True
        return False

    def wait_ready(self) -> None:
        """Wait until it takes connections. Raises EnvError with the end of its log where it does not."""
        deadline = time.monotonic() + START_SEC
        while not self.takes_connections():
            if not self.alive() or time.monotonic() > deadline:
                self.close()
                raise EnvError(f"the Showdown server did not start:\n{self.log_tail()}")
            time.sleep(0.1)

    def be_first_user(self) -> None:
        """Connect once. When its first user connects, Showdown loads for seconds, and answers no one until then.

        Raises EnvError where it does not answer.
        """
        deadline = time.monotonic() + START_SEC
        try:
            with connect(self.url, open_timeout=START_SEC) as user:
                while "|challstr|" not in str(user.recv(timeout=max(deadline - time.monotonic(), 0.0))):
                    pass
        except (OSError, TimeoutError, WebSocketException) as error:
            raise EnvError(f"the Showdown server does not answer: {error!r}\n{self.log_tail()}") from error

    def log_tail(self) -> str:
        """The end of its log."""
        return "\n".join(self._log_path.read_text(errors="replace").splitlines()[-LAST_LINES:])

    def close(self) -> None:
        """Stop it and its subprocesses."""
        with contextlib.suppress(psutil.NoSuchProcess):
            children = psutil.Process(self.pid).children(recursive=True)
            self._process.terminate()
            _, left = psutil.wait_procs(children, STOP_SEC)
            for child in left:
                child.kill()
        try:
            self._process.wait(STOP_SEC)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._log.close()


def check_port(port: int) -> None:
    """Raises ConfigError where no server can listen there."""
    with socket.socket() as probe:
        if sys.platform != "win32":  # as Node does: connections that have just ended do not count
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as error:
            taken = error.errno == errno.EADDRINUSE
            why = "another program listens there" if taken else error.strerror
            raise ConfigError(
                f"The port {port} cannot be used: {why}. Name another one with --port N; 0 is a free one."
            ) from None


def free_port() -> int:
    """A free port below the system's ephemeral range, so that the system does not hand it out before it is bound."""
    while True:
        port = 20_000 + secrets.randbelow(12_000)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind((HOST, port))
            return port


def _link_or_copy(source: str, target: str) -> str:
    try:
        os.link(source, target)
    except OSError:  # another file system
        shutil.copy2(source, target)
    return target
