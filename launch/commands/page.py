"""`simul page`: its command line. `monitoring/page/` does the work."""

from __future__ import annotations

import argparse
import importlib.util
import os
import secrets
import socket
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from simul.common.errors import ConfigError
from simul.common.runtime.extras import install_extra
from simul.common.runtime.terminal_text import print_text
from simul.launch.monitoring.page import HOST
from simul.launch.option_types import address, path, port

if TYPE_CHECKING:
    from simul.launch.monitoring.page.runs.watched_run import WatchedRun

PORT = 8080
SHORTEST_TOKEN = 16
EVERYWHERE = ("0.0.0.0", "::")
NO_RUN = "There is no run below runs/. Name a run directory, as in `simul page DIR`, or start a run: `simul up`."
PACKAGES = ("starlette", "uvicorn")  # of the extra `page`


def add_page(page: argparse.ArgumentParser) -> None:
    """Add its arguments to a parser."""
    page.add_argument(
        "runs", nargs="*", type=path, metavar="RUN_DIR",
        help="run directories, or folders of load tests, side by side (default: the runs that are active below runs/, "
        "else the latest)",
    )  # fmt: skip
    page.add_argument("--port", type=port, default=PORT, metavar="PORT", help="0: a free one (default: %(default)s)")
    page.add_argument(
        "--host", type=address, default=HOST, metavar="ADDRESS",
        help="where to listen (default: %(default)s, for this machine alone); any other needs a token",
    )  # fmt: skip
    page.add_argument("--token", action="store_true", help="ask for a token, made anew and part of the printed address")
    page.add_argument(
        "--token-file", type=path, metavar="FILE", help="ask for the token in this file, which this user alone may read"
    )
    page.set_defaults(run=_page)


def check_installed() -> None:
    """Raises ConfigError where the extra `page` is not installed."""
    if missing := [name for name in PACKAGES if importlib.util.find_spec(name) is None]:
        raise ConfigError(f"The page needs the package {missing[0]}. Run: {install_extra('page')}")


def _page(options: argparse.Namespace) -> int:
    from simul.launch.monitoring.page.access import Access, is_loopback
    from simul.launch.processes.signals import Signals

    check_installed()
    from simul.launch.monitoring.page.page_server import make_app
    from simul.launch.monitoring.page.web_server import listen, serve

    token = _token(options)
    if not token and not is_loopback(options.host):
        raise ConfigError(
            f"--host {options.host} is reached from other machines: add --token, or --token-file FILE. "
            f"(Without --host the page is for this machine alone, {HOST}.)"
        )
    runs = watched_runs(options.runs)
    with listen(options.host, options.port) as listener:
        signals = Signals()
        signals.install()
        number = listener.getsockname()[1]
        print_text(f"{page_address(options.host, number)}{f'#token={token}' if options.token else ''}")
        serve(make_app(runs, Access(options.host, token, number), signals), listener, signals)
    return 0


def page_address(host: str, port: int) -> str:
    """What a browser asks for; of a page that listens at every address of this machine, by the machine's name."""
    shown = socket.gethostname() if host in EVERYWHERE else host
    return f"http://{f'[{shown}]' if ':' in shown else shown}:{port}/"


def watched_runs(folders: Sequence[Path]) -> list[WatchedRun]:
    """The runs of the page, each with a name of its own. Raises ConfigError: there is none, or of another version."""
    from simul.common.role.run_directory import RunDir
    from simul.common.role.run_lock import active_runs, choose_run
    from simul.launch.monitoring.page.runs.watched_run import WatchedRun, check_run

    chosen = [RunDir(folder) for folder in dict.fromkeys(map(os.path.realpath, folders))]
    chosen = chosen or active_runs()
    if not chosen:
        try:
            chosen = [choose_run(None, active_only=False)]
        except ConfigError:
            raise ConfigError(NO_RUN) from None
    for run_dir in chosen:
        check_run(run_dir)
    names = [run_dir.root.name for run_dir in chosen]
    return [
        WatchedRun(run_dir.root, name if names.count(name) == 1 else str(run_dir.root))
        for run_dir, name in zip(chosen, names)
    ]


def _token(options: argparse.Namespace) -> str:
    """ "" for none. Raises ConfigError: both options, or a file that holds no private token."""
    if options.token and options.token_file:
        raise ConfigError("Expected --token, which makes one, or --token-file, which names one; got both.")
    if options.token:
        return secrets.token_urlsafe(24)
    return _read_token(options.token_file) if options.token_file else ""


def _read_token(file: Path) -> str:
    from simul.common.runtime.private_files import OTHERS, read_regular

    try:
        token = read_regular(file, 1000, own=True).decode().strip()
        mode = file.stat().st_mode
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "no text"
        raise ConfigError(f"--token-file {file} cannot be read: {why}.") from None
    if mode & OTHERS and sys.platform != "win32":
        raise ConfigError(f"--token-file {file} may be read by others. Run: chmod 600 {file}")
    if len(token) < SHORTEST_TOKEN:
        raise ConfigError(
            f"--token-file {file}: expected a token of at least {SHORTEST_TOKEN} characters, got {len(token)}. "
            f"Make one: (umask 077; openssl rand -hex 24 > {file})"
        )
    return token
