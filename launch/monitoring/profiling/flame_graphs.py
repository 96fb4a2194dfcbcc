"""Flame graphs of role processes, by py-spy (extra `profile`), which reads their stacks through ptrace."""

from __future__ import annotations

import contextlib
import math
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from simul.common.errors import ConfigError
from simul.common.runtime.extras import install_extra

SAMPLES_PER_SEC = 100
FINISH_SEC = 30.0  # to write its picture


def find_py_spy() -> str:
    """The program, of this Python's environment first. Raises ConfigError where it is not installed."""
    own = Path(sys.executable).with_name("py-spy")
    found = str(own) if own.exists() else shutil.which("py-spy")
    if found is None:
        raise ConfigError(f"--py-spy: the package py-spy is not installed. Run: {install_extra('profile')}")
    return found


class FlameGraphs:
    """Records processes, each in a py-spy of its own: `with FlameGraphs(program) as graphs:`."""

    def __init__(self, program: str) -> None:
        self._program = program
        self._recorders: list[tuple[str, Path, subprocess.Popen[str]]] = []

    def __enter__(self) -> FlameGraphs:
        return self

    def __exit__(self, *error: object) -> None:
        for _, _, recorder in self._recorders:
            if recorder.poll() is None:
                recorder.kill()
            recorder.communicate()

    def start(self, pids: Mapping[str, int], seconds: float, prefix: Path) -> None:
        """Record each of the processes, by name, for so long; pictures are called PREFIX-NAME.svg."""
        for name, pid in pids.items():
            picture = prefix.with_name(f"{prefix.name}-{name}.svg")
            picture.unlink(missing_ok=True)  # py-spy would follow a link that is there
            line = [
                self._program, "record", "--pid", str(pid), "--duration", str(math.ceil(seconds)),
                "--rate", str(SAMPLES_PER_SEC), "--format", "flamegraph", "--output", str(picture),
            ]  # fmt: skip
            recorder = subprocess.Popen(
                line, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                start_new_session=True,
            )  # fmt: skip
            self._recorders.append((name, picture, recorder))

    def finish(self) -> tuple[list[Path], str]:
        """The pictures that were made, and a sentence about those that were not; "" where all were."""
        pictures: list[Path] = []
        failed: dict[str, str] = {}
        for name, picture, recorder in self._recorders:
            said = f"it was still at work after {FINISH_SEC:.0f} s"
            with contextlib.suppress(subprocess.TimeoutExpired):
                said = _reason(recorder.communicate(timeout=FINISH_SEC)[1])
            if recorder.returncode == 0 and picture.exists():
                pictures.append(picture)
            else:
                failed[name] = said
        if not failed:
            return pictures, ""
        reason = next(iter(failed.values()))
        advice = "run as root, or set kernel.yama.ptrace_scope=0 (Linux); in a container allow SYS_PTRACE"
        return pictures, f"No flame graph of {', '.join(failed)}: {reason}. Where ptrace is not allowed, {advice}."


def _reason(said: str) -> str:
    """What went wrong, of an error message and its advice."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    causes = [line for line in lines if line.startswith("Error:")] or lines
    if not causes:
        return "py-spy failed"
    return f"py-spy says {causes[-1].removeprefix('Error:').partition(': Try')[0].strip().rstrip('.')!r}"
