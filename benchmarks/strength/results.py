"""What a row's folder holds beside its run: a file of each match, and what the starts of the run took."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TypeVar

import msgspec

from benchmarks.harness.report import conditions, in_one_line
from simul.common.runtime.private_files import read_regular, replace_file

UNKNOWN = "?"  # conditions of a file of before they were kept
USED = "used.json"
T = TypeVar("T")


class Match(msgspec.Struct):
    """What is read of `simul eval --json`; its conditions are added to it."""

    episodes: int
    win_rate: float
    wilson_95: tuple[float, float]
    conditions: str = UNKNOWN


class Used(msgspec.Struct):
    """What the starts of a row's run took: seconds, and those of one core.

    `uncounted`: starts that have not ended, or were killed with this benchmark: the figures are without them.
    """

    sec: float
    core_sec: float
    uncounted: int = 0
    conditions: list[str] = msgspec.field(default_factory=lambda: [UNKNOWN])


class Summary(msgspec.Struct):
    """What is read of the run's summary.json."""

    run_decisions: float


def read_file(file: Path, kind: type[T]) -> T | None:
    """None where it is missing, and, said on stderr, where it cannot be read."""
    try:
        return msgspec.json.decode(read_regular(file), type=kind)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        sys.stderr.write(f"{file} cannot be read and counts as missing: {error}\n")
        return None


def read_match(folder: Path, opponent: str) -> Match | None:
    """Against one opponent; None where it was not played."""
    return read_file(folder / f"{opponent}.json", Match)


def write_match(folder: Path, opponent: str, printed: str, played_under: str) -> None:
    """Keep what `simul eval --json` printed. Raises ValueError where that is no result, OSError."""
    msgspec.json.decode(printed, type=Match)
    result = {**json.loads(printed), "conditions": played_under}
    replace_file(folder / f"{opponent}.json", json.dumps(result).encode())


def read_used(folder: Path) -> Used:
    """Of all starts so far. Where a run has no readable file, its starts are uncounted."""
    if used := read_file(folder / USED, Used):
        return used
    return Used(0.0, 0.0, uncounted=1) if (folder / "run").exists() else Used(0.0, 0.0, conditions=[])


def write_used(folder: Path, used: Used) -> None:
    """Raises OSError."""
    replace_file(folder / USED, msgspec.json.encode(used))


def conditions_now() -> str:
    """Commit of the tree and processor, as text."""
    now = conditions()
    return in_one_line({name: now[name] for name in ("commit", "cpu")})
