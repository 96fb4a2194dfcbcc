"""`simul ...` as a person runs it: a process of its own, watched through status.json."""

from __future__ import annotations

import contextlib
import itertools
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import psutil

from simul.common.role.run_directory import RunDir
from simul.common.role.run_lock import read_json
from simul.common.runtime.installation import ROOT
from tests.support.waiting import wait_for


def phase_of(root: Path) -> str:
    """What status.json says of the run in `root`, empty before the first."""
    return str(read_json(RunDir(root), "status.json").get("phase", ""))


class Command:
    """`line`, a `simul ...` that keeps its state in the run directory `root`, in a process of its own."""

    def __init__(self, line: Sequence[str], root: Path, stdout: int | None = None) -> None:
        """`stdout`: a descriptor that takes its output in place of the file that `printed` reads."""
        self.run_dir = RunDir(root)
        names = (root.with_name(f"{root.name}-{number}.txt") for number in itertools.count())
        self._printed = next(path for path in names if not path.exists())
        with self._printed.open("x") as output:  # a pipe that nobody reads would block the supervisor
            self.process = subprocess.Popen(
                line, cwd=ROOT, stdout=output if stdout is None else stdout,
                stderr=subprocess.STDOUT if stdout is None else output, start_new_session=True,
            )  # fmt: skip

    def printed(self) -> str:
        """What it has printed so far."""
        return self._printed.read_text()

    def status(self) -> dict[str, Any]:
        """status.json, {} before the first."""
        return read_json(self.run_dir, "status.json")

    def summary(self) -> dict[str, Any]:
        """summary.json."""
        return read_json(self.run_dir, "summary.json")

    def process_of(self, name: str) -> dict[str, Any]:
        """What status.json says of a process."""
        return next(process for process in self.status()["processes"] if process["name"] == name)

    def wait_for(self, condition: Callable[[dict[str, Any]], Any], what: str = "", timeout_sec: float = 240.0) -> Any:
        """Wait until `condition(status)`; fails with the status where it never comes."""
        deadline = time.monotonic() + timeout_sec
        while time.monotonic() < deadline:
            ended = self.process.poll() is not None  # looked at first: what it wrote last is its status then
            if found := condition(self.status()):
                return found
            assert not ended, self.printed()
            time.sleep(0.05)
        raise AssertionError(f"{what}: not within {timeout_sec} s; status: {self.status()}")

    def pids(self) -> list[int]:
        """Every process below the supervisor."""
        return [child.pid for child in psutil.Process(self.process.pid).children(recursive=True)]

    def finish(self, number: int = signal.SIGINT) -> tuple[int, str]:
        """Ask it to stop; (exit code, what it printed)."""
        self.process.send_signal(number)
        return self.result()

    def result(self) -> tuple[int, str]:
        """Wait for its end: (exit code, what it printed)."""
        return self.process.wait(timeout=240), self.printed()  # longer than a learner may take to save

    def end_now(self) -> None:
        """For tests that failed: no process may be left."""
        if self.process.poll() is None:
            children = psutil.Process(self.process.pid).children(recursive=True)
            self.process.kill()
            self.process.wait()
            for child in children:
                with contextlib.suppress(psutil.NoSuchProcess):  # it notices that its parent is gone
                    child.kill()


def address_in(command: Command) -> str:
    """The first address of a page that it prints."""
    found = wait_for(lambda: re.search(r"http://\S+", command.printed()) or command.process.poll() is not None)
    assert isinstance(found, re.Match), command.printed()
    return found[0]


# status.json comes once a second for people; a test that waits for what stands in it shall not wait for the next one
OFTEN = "from simul.launch.supervisor import supervisor; supervisor.SNAPSHOT_EVERY_SEC = 0.25"
_PROGRAM = f"{OFTEN}; import sys; from simul.launch.cli import main; sys.exit(main())"


class Simul(Command):
    """A running `simul up`. `root` is its run directory."""

    def __init__(self, config: str, root: Path, *arguments: str) -> None:
        line = [sys.executable, "-c", _PROGRAM, "up", config, "--run-dir", str(root), "--plain", *arguments]
        super().__init__(line, root)

    def pid(self, role: str) -> int:
        """Of the first process whose name contains `role`."""
        return next(p["pid"] for p in self.status()["processes"] if role in p["name"])

    def decisions(self) -> int:
        """Answered so far."""
        return int(self.status().get("server", {}).get("decisions", 0))

    def versions(self) -> int:
        """The learner's policy_version."""
        return int(self.status().get("learner", {}).get("policy_version", -1))
