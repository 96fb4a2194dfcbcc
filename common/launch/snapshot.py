"""What is known about a run at one moment: read by the view, `simul status` and the summary."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping
from typing import Any

import msgspec
import psutil

from common.launch.fleet import Fleet
from common.launch.state import Metrics, RunState

RATE_WINDOW_SEC = 10.0
SILENT_SEC = 5.0
STALLED_SEC = 60.0


class ProcessFigures(msgspec.Struct, frozen=True):
    """One role process. Memory in MiB; `children` are what it started (simulator hosts)."""

    name: str
    pid: int
    create_time: float
    state: str
    restarts: int
    cpu_percent: float
    rss_mb: float
    children_rss_mb: float
    peak_rss_mb: float
    peak_children_rss_mb: float


class Snapshot(msgspec.Struct, frozen=True):
    """Rates are of the last 10 seconds; `server`, `learner` and `workers` hold totals over all lives."""

    phase: str  # starting | training | stopping | stopped
    run_dir: str
    time: float  # seconds since the epoch
    elapsed_sec: float  # since `simul up`
    ready_sec: float  # of those, since everything was ready
    decisions_per_sec: float | None
    battles_per_sec: float | None
    server: Metrics
    learner: Metrics
    workers: Metrics
    processes: list[ProcessFigures]
    events: list[str]


class Watch:
    """Takes snapshots of a fleet."""

    def __init__(self, run_dir: str, state: RunState, fleet: Fleet) -> None:
        self._run_dir = run_dir
        self._state = state
        self._fleet = fleet
        self._started = time.monotonic()
        self._ready_at: float | None = None
        self._decisions = Rate()
        self._battles = Rate()
        self._version: tuple[object, float, float] = (None, 0.0, 0.0)  # version, since when, decisions then
        self.events: deque[str] = deque(maxlen=200)

    def mark_ready(self) -> None:
        """Everything is ready; rates count from here."""
        self._ready_at = time.monotonic()

    def say(self, sentence: str) -> None:
        """Keep an event, stamped with the wall clock."""
        self.events.append(f"{time.strftime('%H:%M:%S')} {sentence}")

    def take(self, phase: str, now: float) -> Snapshot:
        """Everything at this moment."""
        server, learner = self._state.totals("inference_server"), self._state.totals("learner")
        workers = self._state.totals("env_worker")
        self._watch_version(number(server, "policy_version"), number(server, "decisions") or 0.0, now)
        return Snapshot(
            phase=phase,
            run_dir=self._run_dir,
            time=time.time(),
            elapsed_sec=round(now - self._started, 2),
            ready_sec=round(now - self._ready_at, 2) if self._ready_at is not None else 0.0,
            decisions_per_sec=self._decisions.add(now, number(server, "decisions")),
            battles_per_sec=self._battles.add(now, number(workers, "episodes", "finished")),
            server=server,
            learner=learner,
            workers=workers,
            processes=self._processes(now),
            events=list(self.events),
        )

    def _processes(self, now: float) -> list[ProcessFigures]:
        figures = []
        for key, place in self._fleet.places.items():
            child, meter = place.child, place.meter
            silent = self._state.silent_sec(key, child.run_id, now)
            state = self._fleet.state_of(key)
            if state not in ("dead", "stopped") and silent is not None and silent > SILENT_SEC:
                state = f"silent {silent:.0f} s"
            figures.append(
                ProcessFigures(
                    name=child.name, pid=child.pid, create_time=_create_time(child.pid), state=state,
                    restarts=place.restarts, cpu_percent=meter.cpu_percent, rss_mb=meter.rss_mb,
                    children_rss_mb=meter.children_rss_mb, peak_rss_mb=meter.peak_rss_mb,
                    peak_children_rss_mb=meter.peak_children_rss_mb,
                )
            )  # fmt: skip
        return figures

    def _watch_version(self, version: float | None, decisions: float, now: float) -> None:
        last, since, before = self._version
        if version is None or version != last:
            self._version = (version, now, decisions)
        elif now - since > STALLED_SEC and decisions > before:
            self.say(f"policy_version {version:.0f} has not advanced for {STALLED_SEC:.0f} s; see the learner's log")
            self._version = (version, now, decisions)


class Rate:
    """Growth per second of a counter over the last 10 seconds."""

    def __init__(self, window_sec: float = RATE_WINDOW_SEC) -> None:
        self._window_sec = window_sec
        self._points: deque[tuple[float, float]] = deque()

    def add(self, now: float, value: float | None) -> float | None:
        """The rate, `value` included; None until there are two points."""
        if value is None:
            return None
        self._points.append((now, value))
        while now - self._points[0][0] > self._window_sec:
            self._points.popleft()
        first_at, first = self._points[0]
        return round((value - first) / (now - first_at), 2) if now > first_at else None


def number(metrics: Mapping[str, Any], *path: str) -> float | None:
    """The number at `path`, None where there is none."""
    value: Any = metrics
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def counts(metrics: Mapping[str, Any], *path: str) -> dict[str, float]:
    """The {name: number} dict at `path`, {} where there is none. A bare number is called `total`."""
    value: Any = metrics
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    if isinstance(value, Mapping):
        return {str(key): n for key, n in value.items() if isinstance(n, int | float)}
    return {"total": value} if isinstance(value, int | float) and value else {}


def _create_time(pid: int) -> float:
    try:
        return psutil.Process(pid).create_time()
    except psutil.Error:
        return 0.0
