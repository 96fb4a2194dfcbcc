"""The state of a run at one moment: what the view, `simul status` and the summary show."""

from __future__ import annotations

import contextlib
import math
import time
from collections import deque
from collections.abc import Callable, Sequence

import msgspec

from simul.common.role.run_directory import RunDir
from simul.common.role.run_lock import ProcessIdentity, write_atomically
from simul.common.runtime.private_files import read_regular
from simul.launch.monitoring.alerts import HeartbeatAlerts, LearningAlerts, OutageAlerts
from simul.launch.processes.process_group import ProcessGroup
from simul.launch.processes.role_process import LOG_NAMES
from simul.launch.processes.role_reports import Metrics, RoleReports, counts, decisions_of, number

STATUS = "status.json"
RATE_WINDOW_SEC = 10.0
SILENT_SEC = 3.0
SERVER_FIGURES = ("decisions", "policy_version", "latency_us", "clients", "sessions", "waiting", "unrolls")
RANK_FIGURES = ("decisions_learned_since_start", "steps_waiting", "unrolls", "policy_version")
SILENT_SERVER_SEC = 0.85  # it reports twice a second; a server that hangs is shown within a second


class ProcessFigures(msgspec.Struct, frozen=True):
    """One role process. Memory in MiB; `children` are its descendants (simulator hosts)."""

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
    machine: str = ""  # where `pid` means this process
    node: str = ""  # name of its machine, in a run on several
    stage_sec: dict[str, float] = {}  # where the time of its loop went, by stage
    loop_sec: float = 0.0  # wall clock of its loop, at the same moment

    @property
    def identity(self) -> ProcessIdentity:
        """Of the process, to ask whether it lives."""
        return ProcessIdentity(self.pid, self.create_time, self.machine)


class Snapshot(msgspec.Struct, frozen=True):
    """The state of a run. No rate in it counts what earlier starts of the run did.

    Rates are of the last `rates_over_sec` seconds, at most 10, all of them after readiness; None at first. From
    `stopping` on they are those of this start. `server`, `learner` and `workers`: totals over all lives of the role's
    processes in this start.
    """

    phase: str  # starting, training (simul serve: serving), stopping, stopped, or failed: a role died
    run_dir: str
    time: float  # seconds since the epoch
    elapsed_sec: float  # since `simul up`
    ready_sec: float  # of those, from readiness to the stop
    decisions_per_sec: float | None
    battles_per_sec: float | None
    server: Metrics
    learner: Metrics
    workers: Metrics
    processes: list[ProcessFigures]
    events: list[str]
    batches_per_sec: float | None = None  # forwards of the server
    game: str = ""  # of the configuration
    unreported: dict[str, dict[str, float]] = {}  # see `RoleReports.unreported`
    figures: dict[str, float] = {}  # of the last report of the curves
    run_decisions: float = 0.0  # answered over all starts of the run: the x axis of the curves
    training_sec: float = 0.0  # from readiness to the stop, over all starts
    curve_rows_lost: int = 0
    rates_over_sec: float = 0.0
    counted_sec: dict[str, float] = {}  # by role: the moment of its figures, in seconds since readiness
    servers: dict[str, Metrics] = {}  # by process name, where there are several: SERVER_FIGURES of each
    ranks: dict[str, Metrics] = {}  # of the learner, likewise: RANK_FIGURES of each
    callback_figures: dict[str, float] = {}  # the newest numbers that `metrics_callback` returned


class RunMonitor:
    """Takes snapshots of a process group, keeps the events of its run, and raises alerts.

    Attributes:
        leftovers: roles of the last supervisor, which was killed. Snapshots list those that live, so that the next
            start finds them, too, where this one ends before them.
    """

    def __init__(self, run_dir: str, reports: RoleReports, group: ProcessGroup, game: str = "") -> None:
        self._run_dir = run_dir
        self._game = game
        self._reports = reports
        self._group = group
        self._started = time.monotonic()
        self._ready_at: float | None = None
        self._stopped_at: float | None = None
        self._decisions, self._battles, self._batches = (Rate(since=math.inf) for _ in range(3))
        self.events: deque[str] = deque(maxlen=200)
        self.leftovers: list[ProcessFigures] = []
        self._heartbeats = HeartbeatAlerts()
        self._outages = OutageAlerts()
        self._learning = LearningAlerts(self._started)
        self._alerts: list[str] = []
        self._shown: dict[str, str] = {}

    def mark_ready(self) -> None:
        """Every role is ready; rates count from here."""
        self._ready_at = time.monotonic()
        self._decisions, self._battles, self._batches = (Rate(since=self._ready_at) for _ in range(3))

    def mark_stopping(self) -> None:
        """The stop begins; from here on rates are those of the whole run."""
        self._stopped_at = time.monotonic()

    def add_event(self, sentence: str) -> None:
        """Keep an event, with the time of day."""
        self.events.append(f"{time.strftime('%H:%M:%S')} {sentence}")

    def take_snapshot(self, phase: str, now: float) -> Snapshot:
        """The run at this moment; `now`: monotonic seconds."""
        self._shown = self._states(now)
        server, learner = self._reports.totals("inference_server"), self._reports.totals("learner")
        workers = self._reports.totals("env_worker")
        if phase == "training":
            self._watch_learning(server, learner, workers, now)
        decisions = decisions_of(server)
        battles = number(workers, "episodes", "finished")
        batches = number(server, "batches")
        ended = self._stopped_at is not None
        counted = {role: self._reports.counted_at(role, now) for role in ("inference_server", "env_worker")}
        answered_at, played_at = counted["inference_server"], counted["env_worker"]
        ready_sec = (self._stopped_at or now) - self._ready_at if self._ready_at is not None else 0.0
        return Snapshot(
            phase=phase,
            run_dir=self._run_dir,
            time=time.time(),
            elapsed_sec=round(now - self._started, 2),
            ready_sec=round(ready_sec, 2),
            decisions_per_sec=_mean(decisions, ready_sec) if ended else self._decisions.add(answered_at, decisions),
            battles_per_sec=_mean(battles, ready_sec) if ended else self._battles.add(played_at, battles),
            server=server,
            learner=learner,
            workers=workers,
            processes=[*(role for role in self.leftovers if role.identity.alive()), *self._processes(phase, now)],
            events=list(self.events),
            game=self._game,
            servers=self._of_each("inference_server", SERVER_FIGURES),
            ranks=self._of_each("learner", RANK_FIGURES),
            unreported=self._reports.unreported(),
            batches_per_sec=_mean(batches, ready_sec) if ended else self._batches.add(answered_at, batches),
            rates_over_sec=round(ready_sec if ended else self._decisions.over_sec, 3),
            counted_sec={
                role: round(at - self._ready_at, 3)
                for role, at in counted.items()
                if at is not None and self._ready_at is not None
            },
        )

    def exclude_pause(self, seconds: float) -> None:
        """The supervisor itself was paused for `seconds`: they count neither as silence nor as a standstill."""
        self._reports.exclude_pause(seconds)
        for alerts in (self._heartbeats, self._outages, self._learning):
            alerts.exclude_pause(seconds)

    def states_changed(self, now: float) -> bool:
        """Whether the state of a process, `silent` included, differs from the last snapshot."""
        return self._states(now) != self._shown

    def works(self, role: str, now: float) -> dict[int, bool]:
        """By index: whether each process of `role` is ready and not silent."""
        states = self._states(now)
        members = self._group.members.items()
        return {key[1]: states[member.child.name] == "ready" for key, member in members if key[0] == role}

    def take_alerts(self) -> list[str]:
        """Sentences since the last call: which process is silent or cannot work, and whether the run learns."""
        alerts, self._alerts = [*self._heartbeats.take_alerts(), *self._alerts], []
        return alerts

    def _of_each(self, role: str, names: Sequence[str]) -> dict[str, Metrics]:
        """The named figures of each process of a role, by its name; {} where there is one."""
        each = self._reports.of_processes(role)
        if len(each) < 2:
            return {}
        return {
            f"{LOG_NAMES[role]}-{index}": {name: part[name] for name in names if name in part}
            for index, part in each.items()
        }

    def _alert(self, sentence: str) -> None:
        if sentence:
            self._alerts.append(sentence)

    def _watch_learning(self, server: Metrics, learner: Metrics, workers: Metrics, now: float) -> None:
        became = {f"rows refused with {code}": n for code, n in counts(workers, "refused").items()}
        became |= {f"steps dropped as {cause}": n for cause, n in counts(server, "steps", "dropped").items()}
        for kind in ("unrolls", "samples"):
            became |= {f"{kind} dropped as {cause}": n for cause, n in counts(learner, kind, "dropped").items()}
        learned, waiting = number(learner, "decisions_learned_since_start"), number(learner, "steps_waiting")
        self._alert(self._learning.update(learned or 0, waiting or 0, became, now))

    def _states(self, now: float) -> dict[str, str]:
        """By name: the state of a process, or `silent`."""
        states = {}
        for key, member in self._group.members.items():
            state, silent_sec = self._group.state_of(key), self._reports.silent_sec(key, member.child.run_id, now)
            limit_sec = SILENT_SERVER_SEC if key[0] == "inference_server" else SILENT_SEC
            if state not in ("dead", "stopped") and silent_sec is not None and silent_sec > limit_sec:
                state = "silent"
            states[member.child.name] = state
        return states

    def _processes(self, phase: str, now: float) -> list[ProcessFigures]:
        figures = []
        for key, member in self._group.members.items():
            child, meter = member.child, member.meter
            silent_sec = self._reports.silent_sec(key, child.run_id, now) or 0.0
            report = self._reports.last_report(key, child.run_id)
            metrics = report.metrics if report is not None else {}
            state = self._group.state_of(key)
            ready = state == "ready"
            self._heartbeats.update(child.name, silent_sec if state in ("ready", "stuck") else None, now)
            if phase == "training":
                self._alert(self._outages.update(child.name, ready, member.last_error, now))
            shown = self._shown[child.name]
            if shown == "silent":
                shown = f"silent {silent_sec:.0f} s"
            figures.append(
                ProcessFigures(
                    name=child.name, pid=child.pid, create_time=child.create_time, state=shown,
                    restarts=member.restarts, cpu_percent=meter.cpu_percent, rss_mb=meter.rss_mb,
                    children_rss_mb=meter.children_rss_mb, peak_rss_mb=meter.peak_rss_mb,
                    peak_children_rss_mb=meter.peak_children_rss_mb, machine=child.machine, node=child.node,
                    stage_sec=counts(metrics, "stage_sec"), loop_sec=number(metrics, "loop_sec") or 0.0,
                )
            )  # fmt: skip
        return figures


class Rate:
    """Growth per second of a counter over the last 10 seconds. `since`: points before it are left out."""

    def __init__(self, window_sec: float = RATE_WINDOW_SEC, since: float = -math.inf) -> None:
        self._window_sec = window_sec
        self._since = since
        self._points: deque[tuple[float, float]] = deque()

    @property
    def over_sec(self) -> float:
        """From the first point that counts to the last."""
        return self._points[-1][0] - self._points[0][0] if self._points else 0.0

    def add(self, at: float | None, value: float | None) -> float | None:
        """The rate, `value` at the moment `at` included; None until there are two points."""
        if at is not None and value is not None and at >= self._since:
            if not self._points or at > self._points[-1][0]:
                self._points.append((at, value))
            while at - self._points[0][0] > self._window_sec:
                self._points.popleft()
        if not self.over_sec:
            return None
        return round((self._points[-1][1] - self._points[0][1]) / self.over_sec, 2)


def _mean(total: float | None, seconds: float) -> float | None:
    return round(total / seconds, 2) if total is not None and seconds else None


def read_status(run_dir: RunDir) -> Snapshot:
    """What status.json says. Raises OSError, msgspec.DecodeError."""
    return msgspec.json.decode(read_regular(run_dir.root / STATUS), type=Snapshot)


class StatusFile:
    """status.json of a run, for `simul status`. Where it cannot be written `say` gets one sentence; the run goes on."""

    def __init__(self, run_dir: RunDir, say: Callable[[str], None]) -> None:
        self._run_dir = run_dir
        self._say = say
        self._written = True

    def read(self) -> bytes:
        """Its content; empty where there is none."""
        with contextlib.suppress(OSError):
            return read_regular(self._run_dir.root / STATUS)
        return b""

    def restore(self, content: bytes) -> None:
        """Write back what `read` returned; a status that was written meanwhile is removed where there was none."""
        with contextlib.suppress(OSError):
            if content:
                self._run_dir.write(STATUS, content)
            else:
                (self._run_dir.root / STATUS).unlink(missing_ok=True)

    def write(self, snapshot: Snapshot) -> None:
        """Replace its content."""
        try:
            write_atomically(self._run_dir, STATUS, snapshot)
            self._written = True
        except (OSError, ValueError, TypeError) as error:  # disk full, or a figure that JSON cannot express
            if self._written:
                self._say(f"status.json cannot be written: {getattr(error, 'strerror', None) or error}")
            self._written = False
