"""One run directory as the page shows it: read again where it changed, every text short, every number finite."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from simul.common.errors import ConfigError
from simul.common.role.run_directory import RunDir
from simul.common.role.run_lock import ELSEWHERE_SEC, describe_start, read_owner
from simul.common.runtime.decode_errors import DECODE_ERRORS
from simul.common.runtime.private_files import read_regular
from simul.common.runtime.terminal_text import printable
from simul.launch.monitoring.curves.league_curves import with_league
from simul.launch.monitoring.page.runs.curve_tail import CurveTail
from simul.launch.monitoring.page.runs.league_panel import league_panel
from simul.launch.monitoring.page.runs.play_command import play_command
from simul.launch.monitoring.page.runs.played_pairs import played_pairs
from simul.launch.monitoring.page.runs.replays import replay_names
from simul.launch.monitoring.page.runs.short_text import short_text
from simul.launch.monitoring.snapshot import Snapshot
from simul.launch.monitoring.view.figure_texts import format_clock, format_evaluation, long_figures, short_figures
from simul.launch.processes.role_reports import counts
from simul.launch.ratings.league_file import LeagueFile

STATUS_BYTES = 8 * 2**20
PICTURE_BYTES = 8 * 2**20
# Of `launch/loadtest/plots.py`, in this order.
PICTURES = ("batch.png", "rate.png", "stages.png", "batch_histogram.png")
MOST_ENTRIES = 200  # of a table: events, processes, sizes
MOST_WHOLE = 1e15
RARELY_SEC = 3.0  # between two looks at what changes rarely
OTHER_VERSION = "Use `simul page` of the version that made the run, or name another run."
PNG = b"\x89PNG\r\n\x1a\n"
_FAULTS = (TypeError, ValueError, KeyError, AttributeError, ArithmeticError)  # figures of another version


def check_run(run_dir: RunDir) -> None:
    """Raises ConfigError where there is nothing to show: no run, a run of another version, or no load test."""
    folder, path = printable(str(run_dir.root)), run_dir.root / "status.json"
    file = printable(str(path))
    try:
        msgspec.json.decode(read_regular(path, STATUS_BYTES, links=False), type=Snapshot)
    except FileNotFoundError:
        root = run_dir.root
        if (root / "loadtest.json").is_file() or replay_names(root) or describe_start(run_dir):
            return
        raise ConfigError(
            f"There is no run in {folder} (no status.json), no load test and no replay. Start a run with "
            "`simul up`, or name another folder."
        ) from None
    except OSError as error:
        raise ConfigError(f"{file} cannot be read: {error.strerror}. Name another run directory.") from None
    except DECODE_ERRORS as error:
        raise ConfigError(
            f"{file} is not a status of this version of Simul: {short_text(str(error))}. {OTHER_VERSION}"
        ) from None


class WatchedRun:
    """A run directory. `poll` reads it; the attributes are what it found, ready for JSON.

    Attributes:
        urgent: phase, processes and the like: sent as soon as they change.
        gradual: figures that change all the time.
        events: the last ones; `events_seen` counts all.
        curves: its curves.csv.
        root: its folder.
        name: tells it from the other runs of the page.
    """

    def __init__(self, root: Path, name: str) -> None:
        self.name = short_text(name.encode(errors="replace").decode())
        self.root = root
        self.urgent: dict[str, Any] = {}
        self.gradual: dict[str, Any] = {}
        self.events: list[str] = []
        self.events_seen = 0
        self.curves = CurveTail(root / "curves.csv")
        self._league = LeagueFile(root)
        self._run_dir = RunDir(root)
        self._status = b""
        self._changed_at = -math.inf
        self._snapshot: Snapshot | None = None
        self._rarely_at = -math.inf
        self._rare: dict[str, Any] = {}
        self._last_events: list[str] = []

    def poll(self, now: float) -> None:
        """Read what changed; `now`: monotonic seconds."""
        fault = self._read_status(now)
        if now >= self._rarely_at:
            self._rarely_at = now + RARELY_SEC
            self._league.poll()
            self._rare = {
                "pairs": played_pairs(self._run_dir.root), "league": league_panel(self._league.figures),
                "pictures": self._pictures(), "replays": replay_names(self.root),
                "play": "" if self._snapshot is None else play_command(self._run_dir.root, self._snapshot.game),
            }  # fmt: skip
        self.curves.poll()
        urgent: dict[str, Any] = {"name": self.name, **self._rare}
        if self._snapshot is not None:
            try:
                self._add_events([short_text(event) for event in self._snapshot.events[-MOST_ENTRIES:]])
                urgent |= _urgent(self._snapshot)
                self.gradual = _gradual(with_league(self._snapshot, self._league.figures))
            except _FAULTS as error:
                fault = (
                    f"status.json has figures that this version of Simul does not know: {short_text(str(error))}. "
                    f"{OTHER_VERSION}"
                )
        faults = (fault, self.curves.fault, self._absence(now), self._league.fault)
        urgent["fault"] = short_text(" ".join(filter(None, faults)))
        self.urgent = urgent

    def picture(self, name: str) -> bytes:
        """A plot of the load test as PNG. Raises OSError where it is none."""
        data = read_regular(self._run_dir.root / name, PICTURE_BYTES, links=False) if name in PICTURES else b""
        if not data.startswith(PNG):
            raise OSError("no PNG")
        return data

    def _read_status(self, now: float) -> str:
        """A sentence where status.json cannot be shown."""
        try:
            status = read_regular(self._run_dir.root / "status.json", STATUS_BYTES, links=False)
        except FileNotFoundError:
            return describe_start(self._run_dir)
        except OSError as error:
            return f"status.json cannot be read: {error.strerror}."
        if status == self._status:
            return ""
        try:
            self._snapshot = msgspec.json.decode(status, type=Snapshot)
        except DECODE_ERRORS as error:
            return f"status.json is not a status of this version of Simul: {short_text(str(error))}. {OTHER_VERSION}"
        self._status, self._changed_at = status, now
        return ""

    def _absence(self, now: float) -> str:
        """A sentence where no supervisor watches the run any more, though its last figures do not say so."""
        snapshot = self._snapshot
        if snapshot is None or snapshot.phase in ("stopped", "failed"):
            return ""
        owner, unchanged_sec = read_owner(self._run_dir), now - self._changed_at
        if owner is not None and (owner.alive() if owner.here else unchanged_sec < ELSEWHERE_SEC):
            return ""
        age_sec = max(time.time() - snapshot.time, 0.0)
        return f"The run is not active: its supervisor has ended. These are its last figures, {_age(age_sec)} old."

    def _add_events(self, events: list[str]) -> None:
        """`events`: those of status.json, which holds the last ones of this start."""
        before, self._last_events = self._last_events, events
        same = next((n for n in range(min(len(before), len(events)), 0, -1) if before[-n:] == events[:n]), 0)
        self.events = [*self.events, *events[same:]][-MOST_ENTRIES:]
        self.events_seen += len(events) - same

    def _pictures(self) -> list[str]:
        return [name for name in PICTURES if os.path.isfile(self._run_dir.root / name)]  # False where it may not look


def _urgent(snapshot: Snapshot) -> dict[str, Any]:
    return {
        "phase": short_text(snapshot.phase), "game": short_text(snapshot.game),
        "states": {
            short_text(process.name): [_state(process.state), process.restarts, short_text(process.node)]
            for process in snapshot.processes[:MOST_ENTRIES]
        },
    }  # fmt: skip


def _gradual(snapshot: Snapshot) -> dict[str, Any]:
    sizes = sorted(counts(snapshot.server, "batch_histogram").items(), key=lambda item: (len(item[0]), item[0]))
    figures = [("evaluation", format_evaluation(snapshot.figures) or "-")]
    figures += [*short_figures(snapshot), *long_figures(snapshot)]
    return {
        "clock": format_clock(snapshot),
        "figures": _joined(figures),
        "batches": {short_text(size): n for size, n in sizes[:MOST_ENTRIES] if math.isfinite(n)},
        "used": {
            short_text(process.name): [
                _whole(process.cpu_percent), _whole(process.rss_mb + process.children_rss_mb),
                _whole(process.peak_rss_mb + process.peak_children_rss_mb),
            ]
            for process in snapshot.processes[:MOST_ENTRIES]
        },
    }  # fmt: skip


def _joined(figures: Sequence[tuple[str, str]]) -> Mapping[str, str]:
    """By label; a text without one continues that above."""
    found: dict[str, str] = {}
    label = ""
    for name, text in figures[:MOST_ENTRIES]:
        label = name or label
        found[label] = short_text(f"{found[label]}, {text}" if label in found else text)
    return found


def _state(text: str) -> str:
    """Without the seconds of `silent 12 s`, which would be news every second."""
    return "silent" if text.startswith("silent ") else short_text(text)


def _whole(value: float) -> int | None:
    return round(value) if abs(value) < MOST_WHOLE else None


def _age(seconds: float) -> str:
    """Coarse, so that it is no news every second."""
    for unit, length in (("days", 86_400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds // length:.0f} {unit}"
    return "a minute or less" if seconds < 60 else "more than a minute"
