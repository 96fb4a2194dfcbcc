"""`make bench-watched-game`: what a game that is watched costs its run, in processor time.

A run trains, and a browser's part is played here: one game is watched and each picture fetched. Counted are the seconds
of the page's process, and those that the worker spends in `Spectator`, as a share of the run's processor seconds. The
server evaluates at most two rows a second besides, which is not counted here.

    make bench-watched-game ARGS="ofc --seconds 60"
"""

from __future__ import annotations

import argparse
import functools
import http.client
import json
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

from simul.common.role.run_directory import RunDir
from simul.common.role.run_lock import read_json

SPENT = "spectator.json"  # of the run directory: [processor seconds, decisions evaluated] of the worker
MOST = 0.02
WARM_UP_SEC = 10.0
METHODS = ("look", "admit", "take_evaluations", "take_actions")
PROGRAM = """
import sys
from simul.launch.cli import main
from simul.launch.processes import role_process
from simul.launch.supervisor import supervisor
class Supervisor(supervisor.Supervisor):
    def __init__(self, config, run_dir, display, **options):
        def line(role):
            own = [sys.executable, "-m", "benchmarks.watched_game", "--worker"]
            return own if role == "env_worker" else role_process.role_command(role)
        super().__init__(config, run_dir, display, line, **options)
supervisor.Supervisor = Supervisor
sys.exit(main(sys.argv[1:]))
"""


def main() -> int:
    """Exit code 1 where the game costs more than promised."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config", nargs="?", default="cartpole", help="of the run (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=60.0, help="watched for so long (default: %(default)g)")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="as for simul up")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="simul-watched-") as folder:
        return _measure(options, RunDir(Path(folder) / "run"))


def _measure(options: argparse.Namespace, run_dir: RunDir) -> int:
    settings = [part for each in options.set for part in ("--set", each)]
    line = [sys.executable, "-P", "-c", PROGRAM, "up", options.config, "--run-dir", str(run_dir.root), "--plain"]
    line += [*settings, "--set", "stop_after_decisions=0"]
    run = subprocess.Popen(line, stdout=subprocess.DEVNULL)
    page = None
    try:
        _wait(lambda: read_json(run_dir, "status.json").get("server", {}).get("decisions"), run)
        time.sleep(WARM_UP_SEC)
        page_line = [sys.executable, "-P", "-m", "simul.launch.cli", "page", str(run_dir.root), "--port", "0"]
        page = subprocess.Popen(page_line, stdout=subprocess.PIPE, text=True)
        assert page.stdout is not None
        address = page.stdout.readline().strip().removeprefix("http://").rstrip("/")
        browser = _Browser(address)
        before = _spent(run_dir), _processor_sec(run.pid), _processor_sec(page.pid)
        browser.start()
        time.sleep(options.seconds)
        after = _spent(run_dir), _processor_sec(run.pid), _processor_sec(page.pid)
        _say(options, before, after, browser)
        worker, whole, paged = (late - early for early, late in zip(_flat(before), _flat(after)))
        return int((worker + paged) / whole > MOST)
    finally:
        for process in (page, run):
            if process is not None:
                process.send_signal(signal.SIGINT)
                process.wait(120)


def _say(options: argparse.Namespace, before: Any, after: Any, browser: _Browser) -> None:
    worker, whole, paged = (late - early for early, late in zip(_flat(before), _flat(after)))
    print(
        f"{options.config}, {options.seconds:g} s: run {whole:.2f} s of processor, worker {worker:.3f} s, page "
        f"{paged:.3f} s: {(worker + paged) / whole:.2%} of the run, at most {MOST:.0%}; "
        f"{browser.records} records, {browser.bytes / 1e3:.0f} kB, {browser.pictures} pictures"
    )


def _flat(sample: Any) -> tuple[float, float, float]:
    (spent, _), run, page = sample
    return spent, run, page


class _Browser(threading.Thread):
    """Reads the stream of game 0 of worker 0, and fetches its pictures."""

    def __init__(self, address: str) -> None:
        super().__init__(daemon=True)
        self._address = address
        self.records = self.bytes = self.pictures = 0

    def run(self) -> None:
        connection = http.client.HTTPConnection(self._address, timeout=60)
        connection.request("GET", "/runs/0/game/0/0/any")
        stream = connection.getresponse()
        while line := stream.readline():
            self.bytes += len(line)
            record = json.loads(line[6:]).get("record", {}) if line.startswith(b"data: ") else {}
            self.records += bool(record)
            if picture := record.get("picture"):
                other = http.client.HTTPConnection(self._address, timeout=60)
                other.request("GET", picture)
                self.pictures += other.getresponse().status == 200
                other.close()


def _spent(run_dir: RunDir) -> tuple[float, int]:
    seconds, evaluated = read_json(run_dir, SPENT).get("spent", (0.0, 0))
    return float(seconds), int(evaluated)


def _processor_sec(pid: int) -> float:
    """Of a process and all below it."""
    root = psutil.Process(pid)
    times = [each.cpu_times() for each in (root, *root.children(recursive=True))]
    return sum(each.user + each.system for each in times)


def _wait(condition: Callable[[], Any], run: subprocess.Popen[bytes]) -> None:
    while not condition():
        if run.poll() is not None:
            raise SystemExit("The run ended before it trained.")
        time.sleep(0.2)


def _worker() -> int:
    """The role env_worker, whose Spectator's processor time is counted."""
    from simul.env_worker import __main__ as role
    from simul.env_worker.spectator import Spectator

    root = Path(sys.argv[sys.argv.index("--run-dir") + 1])
    spent = [0.0, 0]

    def counted(method: Callable[..., Any], writes: bool) -> Callable[..., Any]:
        @functools.wraps(method)
        def call(*arguments: Any) -> Any:
            begin = time.thread_time()
            try:
                return method(*arguments)
            finally:
                spent[0] += time.thread_time() - begin
                if writes:  # twice a second, outside what is counted
                    (root / SPENT).write_text(json.dumps({"spent": spent}))

        return call

    for name in METHODS:
        setattr(Spectator, name, counted(getattr(Spectator, name), name == "look"))
    return role.main()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        del sys.argv[1]
        sys.exit(_worker())
    sys.exit(main())
