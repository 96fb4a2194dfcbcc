"""The role processes of a run: start them, restart the dead, stop them, receive their reports."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from types import TracebackType
from typing import Self

from simul.common.errors import ConfigError, SimulError
from simul.common.protocol.messages import Report
from simul.common.role.lifecycle import EXIT_ENDS_RUN, EXIT_RANK_LOST, SAVE_PATIENCE_SEC
from simul.common.role.run_directory import RunDir
from simul.common.transport import EndpointMonitor, Poller
from simul.launch.processes.log_rotation import rotate_logs
from simul.launch.processes.needed_files import NeededFiles
from simul.launch.processes.report_receiver import ReportReceiver
from simul.launch.processes.restart_policy import RestartPolicy, StartAlerts
from simul.launch.processes.role_process import LOG_NAMES, ResourceMeter, RoleLife, RoleProcess, role_command
from simul.launch.processes.role_reports import RoleKey, RoleReports

Command = Callable[[str], list[str]]  # role -> command line
Launch = Callable[[str, int, int, Sequence[str]], RoleLife]  # (role, index, threads, extra arguments) -> its process

READY_LIMIT_SEC = 300.0
ROLE_TITLES = {"learner": "learner", "inference_server": "inference server", "env_worker": "env workers"}
EXIT_RAISED = 1  # of Python after an exception, whose traceback is in the log
EXIT_REFUSED = 2  # of a role that cannot start as it is configured; a sentence in the log says why
FREE_SOME = "Free memory or processes, then start the run again."

GANG_PATIENCE_SEC = 5.0  # for the other ranks of a learner to notice that one is gone, and to report
MOVE_PATIENCE_SEC = 10.0  # for a process that is to start again with other arguments


class RoleDied(SimulError):
    """A role ended during start-up, or too often. Caught by `main()`: printed, its exit code passed on."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class _Member:
    """One process of a role, over its restarts. `child`: its current life."""

    def __init__(self, child: RoleLife, threads: int, arguments: Sequence[str]) -> None:
        self.child = child
        self.threads = threads
        self.arguments = arguments
        self.restart_policy = RestartPolicy()
        self.meter = ResourceMeter()
        self.restarts = 0
        self.restart_at: float | None = None
        self.last_error = ""  # of the last life that died
        self.stop_by: float | None = None  # it was asked to stop, so that it starts again with other arguments


class ProcessGroup:
    """Processes by (role, index). Their states come from `reports`, which the caller feeds with reports.

    `launch` starts them on other machines; None: on this one.
    """

    def __init__(
        self, run_dir: RunDir, reports: RoleReports, command: Command = role_command, launch: Launch | None = None
    ) -> None:
        self._launch = launch
        self._run_dir = run_dir
        self._reports = reports
        self._command = command
        self._needed = NeededFiles(run_dir)
        self.members: dict[RoleKey, _Member] = {}
        self._lives: set[tuple[RoleKey, int]] = set()  # key and run_id of each process that was started
        self._gangs: set[str] = set()
        self._log_faults: dict[str, bool] = {}  # sentences about logs that cannot be written: whether they were said

    def start(
        self, role: str, count: int, threads: int, arguments: Sequence[Sequence[str]] = (), *, gang: bool = False
    ) -> None:  # fmt: skip
        """Start `count` processes of `role`; `arguments`, if given, holds the extra ones of each.

        `gang`: where one of them dies, all are started again; each start has a `--meeting` of its own.

        Raises RoleDied where the system gives no process.
        """
        self._needed.remember()
        if gang:
            self._gangs.add(role)
            arguments = [_meeting()] * count
        for index in range(count):
            extra = arguments[index] if arguments else ()
            try:
                child = self._spawn(role, index, threads, extra)
            except OSError as error:
                failed = f"{LOG_NAMES[role]}-{index} could not be started ({error.strerror})"
                raise RoleDied(f"{failed}. {FREE_SOME}", 1) from error
            self.members[role, index] = _Member(child, threads, extra)

    def ready(self, role: str) -> bool:
        """True when every process of `role` has reported that it is ready."""
        return not self.unready(role)

    def unready(self, role: str) -> list[int]:
        """Indices of the processes of `role` that are not ready."""
        return [key[1] for key in self.members if key[0] == role and self.state_of(key) != "ready"]

    def wait_until_ready(
        self,
        role: str,
        meanwhile: Callable[[], bool],
        say: Callable[[str], None] = lambda sentence: None,
        patience_sec: float = math.inf,
    ) -> None:
        """Wait for every process of `role`; `meanwhile` is called often and returns True to stop waiting.

        A process that ends meanwhile without saying why is started again, as it would be later.

        Args:
            say: gets sentences that name those that are not ready, see `StartAlerts`, and those that died.
            patience_sec: once one is ready, wait so long for the others; then return without them.

        Raises RoleDied: a process said why it ends, or died too often, or READY_LIMIT_SEC passed, without the time of a
        fetch from the store.
        """
        began, some_ready_at, fetching = time.monotonic(), math.inf, False
        alerts = StartAlerts(began)
        while late := self.unready(role):
            now = time.monotonic()
            for sentence in self._restart_silent(now):
                say(sentence)
            if fetching != any(self.state_of((role, index)) == "fetching" for index in late):
                began, alerts, fetching = now, StartAlerts(now), not fetching
            if len(late) < sum(key[0] == role for key in self.members):
                some_ready_at = min(some_ready_at, now)
            if now - some_ready_at >= patience_sec:
                say(f"{self._are(role, late)} not ready: the run starts without, and goes on waiting")
                break
            if alerts.due(now):
                cpu_sec = {index: self._cpu_sec((role, index)) for index in late}
                idle, slow = alerts.look(now, cpu_sec)
                waited = f"not ready after {now - began:.0f} s"
                if idle:
                    why = "checkpoints are being fetched from the store" if fetching else "slow to start, or hung"
                    say(f"{self._are(role, idle)} {waited}: {why}")
                if slow:
                    used = ", ".join(f"{cpu_sec[index]:.0f} s" for index in slow)
                    say(f"{self._are(role, slow)} {waited}: a slow start ({used} of processor time)")
            if not fetching and now - began > READY_LIMIT_SEC:
                raise RoleDied(
                    f"The {ROLE_TITLES[role]} did not become ready within {READY_LIMIT_SEC:.0f} s; see logs/.", 1
                )
            if meanwhile():
                break

    def _cpu_sec(self, key: RoleKey) -> float:
        """Processor seconds of this life of a process so far."""
        member = self.members[key]
        member.child.measure(member.meter)
        return member.meter.cpu_sec

    def state_of(self, key: RoleKey) -> str:
        """Of its last report; before the first `fetching` or `starting`, after its end `stopped` or `dead`."""
        member = self.members[key]
        if member.child.exit_code() is not None:
            return "stopped" if member.child.exited_cleanly() else "dead"
        report = self._reports.last_report(key, member.child.run_id)
        if report is None:
            return "fetching" if member.child.fetching else "starting"
        return report.state

    def is_current(self, report: Report) -> bool:
        """Whether a report is of the present life of its process."""
        member = self.members.get((report.role, report.index))
        return member is not None and member.child.run_id == report.run_id

    def has_started(self, report: Report) -> bool:
        """Whether a report is of a process of this group, of any of its lives.

        Processes of a killed start have the run's token, too, and find the status socket of the next start.
        """
        return ((report.role, report.index), report.run_id) in self._lives

    def check_alive(self) -> None:
        """Raises RoleDied, with the end of its log, if a process has ended."""
        self._raise_first([member for member in self.members.values() if member.child.exit_code() is not None])

    def _raise_first(self, ended: Sequence[_Member]) -> None:
        """Raises RoleDied where any has ended."""
        if ended:
            raise self._death_error(min(ended, key=_is_bystander))

    def _restart_silent(self, now: float) -> list[str]:
        """`restart_dead` during a start. Raises RoleDied also where a life that was never ready said why it ended."""
        dead = (member for member in self.members.values() if member.restart_at is None and member.stop_by is None)
        self._raise_first([member for member in dead if self._ends_start(member.child)])
        return self.restart_dead(now)

    def _ends_start(self, child: RoleLife) -> bool:
        """It ended in its start, and its log says why; or it is a rank, which needs the others."""
        code = child.exit_code()
        if code is None or self._reports.was_ready((child.role, child.index), child.run_id):
            return False
        return child.role in self._gangs or (code in (EXIT_RAISED, EXIT_REFUSED) and bool(child.log_tail()))

    def restart_dead(self, now: float) -> list[str]:
        """Restart what died, after a short wait. Returns sentences for the view. Raises RoleDied: died too often."""
        sentences = [fault for fault, said in self._log_faults.items() if not said]
        self._log_faults.update(dict.fromkeys(sentences, True))
        for role in self._gangs:
            self._end_gang([member for (named, _), member in self.members.items() if named == role], now)
        for member in self.members.values():
            child = member.child
            if member.restart_at is None and child.exit_code() is not None:
                child.kill()  # also what it started and left behind
                self._reports.mark_ended((child.role, child.index), child.run_id, now)
                if member.stop_by is not None:
                    member.stop_by, member.restart_at = None, now
                    continue
                member.last_error = child.last_line()
                if child.exit_code() == EXIT_ENDS_RUN:
                    raise self._death_error(member)
                delay = member.restart_policy.record_death(
                    now, was_ready=self._reports.was_ready((child.role, child.index), child.run_id)
                )
                if delay is None:
                    raise self._death_error(member, "too often; last with ")
                member.restart_at = now + delay
                sentences.append(f"{self._title(child)} died ({child.exit_reason()}), restarting")
            elif member.stop_by is not None and now >= member.stop_by + SAVE_PATIENCE_SEC * self._is_saving(child):
                child.kill()
            elif member.restart_at is not None and now >= member.restart_at and not self._waits_for_gang(member):
                sentences += self._needed.restore()
                sentences += self._start_again(member, now)
        return sentences

    def _end_gang(self, members: Sequence[_Member], now: float) -> None:
        """Where one has died by itself, the others end, too: by themselves, or killed after GANG_PATIENCE_SEC.

        One that writes a checkpoint has SAVE_PATIENCE_SEC more.

        The end of a rank that lost another one is no death of its own, unless the other one lives, and hangs.
        """
        ended = [m for m in members if m.restart_at is None and m.stop_by is None and m.child.exit_code() is not None]
        if not ended:
            return
        blamed = [member for member in ended if not _is_bystander(member)] or ended[:1]
        for member in members:
            if member not in blamed and member.restart_at is None and member.stop_by is None:
                state = self.state_of((member.child.role, member.child.index))
                counted = state not in ("starting", "fetching")
                member.stop_by = now + GANG_PATIENCE_SEC * counted
        meeting = _meeting()
        for member in members:
            member.arguments = meeting

    def _is_saving(self, child: RoleLife) -> bool:
        """As its last report says."""
        report = self._reports.last_report((child.role, child.index), child.run_id)
        return report is not None and bool(report.metrics.get("saving"))

    def _waits_for_gang(self, member: _Member) -> bool:
        """True while another process of its gang still runs that is to be started again with it."""
        role = member.child.role
        if role not in self._gangs:
            return False
        others = (other for (named, _), other in self.members.items() if named == role)
        return any(other.stop_by is not None for other in others)

    def start_again_with(self, key: RoleKey, arguments: Sequence[str], now: float) -> None:
        """Stop a process, and start it again with other extra arguments, in `restart_dead`. It counts as no death."""
        member = self.members[key]
        member.arguments = arguments
        if member.restart_at is None:
            member.stop_by = now + MOVE_PATIENCE_SEC
            member.child.request_stop()

    def stop(self, role: str, patience_sec: float, meanwhile: Callable[[], bool]) -> list[str]:
        """Ask the processes of `role` to stop and wait; `meanwhile` is called often and returns True to kill them now.

        `patience_sec` begins again with each report that one of them is saving, for SAVE_PATIENCE_SEC at most.

        Returns a sentence for each that did not exit cleanly.
        """
        members = [member for key, member in self.members.items() if key[0] == role]
        for member in members:
            member.child.request_stop()
        began = now = time.monotonic()
        deadline, hurry = began + patience_sec, False
        while any(p.child.exit_code() is None for p in members) and now < deadline and not hurry:
            hurry = meanwhile()
            now = time.monotonic()
            if any(p.child.exit_code() is None and self._is_saving(p.child) for p in members):
                deadline = min(now, began + SAVE_PATIENCE_SEC) + patience_sec
        sentences = []
        for member in members:
            if member.child.exit_code() is None:
                why = "was killed at once" if hurry else f"did not stop in {now - began:.0f} s and was killed"
                sentences.append(f"{self._title(member.child)} {why}")
            elif member.restart_at is None and not member.child.exited_cleanly():
                sentences.append(f"{self._title(member.child)} ended with {member.child.exit_reason()}")
            if member.restart_at is None:
                self._reports.mark_ended((member.child.role, member.child.index), member.child.run_id, time.monotonic())
            member.child.kill()
        return sentences

    def all_reported(self) -> bool:
        """True when the last report has come from every process that ended with exit code 0."""
        ended = (member.child for member in self.members.values() if member.child.exit_code() == 0)
        reports = (self._reports.last_report((child.role, child.index), child.run_id) for child in ended)
        return all(report is None or report.state not in ("ready", "draining") for report in reports)

    def kill_all(self) -> None:
        """End everything now."""
        for member in self.members.values():
            member.child.kill()

    def measure(self) -> None:
        """Sample CPU and memory of every process, and rotate logs that have become large."""
        for member in self.members.values():
            member.child.measure(member.meter)
        rotate_logs(self._run_dir.logs)

    def _start_again(self, member: _Member, now: float) -> list[str]:
        """Start a dead member again. EAGAIN and ENOMEM count as a failed start. Raises RoleDied."""
        child = member.child
        try:
            member.child = self._spawn(child.role, child.index, member.threads, member.arguments)
        except OSError as error:
            member.last_error = str(error)
            failed = f"{self._title(child)} could not be started ({error.strerror})"
            delay = member.restart_policy.record_death(now, was_ready=False)
            if delay is None:
                raise RoleDied(f"{failed} too often. {FREE_SOME}", 1) from error
            member.restart_at = now + delay
            return [f"{failed}, trying again"]
        member.restart_at = None
        member.restarts += 1
        return []

    def _spawn(self, role: str, index: int, threads: int, arguments: Sequence[str]) -> RoleLife:
        child: RoleLife
        if self._launch is not None:
            child = self._launch(role, index, threads, arguments)
        else:
            child = RoleProcess(role, index, self._run_dir, self._command(role), threads=threads, arguments=arguments)
        self._lives.add(((role, index), child.run_id))
        if child.log_fault:
            self._log_faults.setdefault(child.log_fault, False)
        return child

    def _death_error(self, member: _Member, before: str = "") -> RoleDied:
        child = member.child
        code = child.exit_code()
        if code in (EXIT_REFUSED, EXIT_ENDS_RUN):  # the role has logged a sentence that says what is wrong
            return RoleDied(f"{self._title(child)}: {child.error_message()}", 2 if code == EXIT_REFUSED else 1)
        died = f"{self._title(child)} died {before}({child.exit_reason()})"
        if log := child.log_tail():
            return RoleDied(f"{died}. The end of its log:\n{log}", 1)
        why = "Its log is empty: no exception was raised, the process was ended"
        if child.role == "env_worker":
            why += f", from outside or by the game {self._game()} itself (os._exit, or a crash in a native library)"
        return RoleDied(f"{died}. {why}.", 1)

    def _game(self) -> str:
        """Name of the run's game; empty where spec.json cannot be read."""
        try:
            return self._run_dir.read_spec().name
        except ConfigError:
            return ""

    def _are(self, role: str, indices: Sequence[int]) -> str:
        """`worker 1 is`, `worker 1, worker 2 are`."""
        titles = [self._title(self.members[role, index].child) for index in indices]
        return f"{', '.join(titles)} {'is' if len(titles) == 1 else 'are'}"

    def _title(self, child: RoleLife) -> str:
        where = f" on {child.node}" if child.node else ""
        if (child.role, 1) in self.members and child.role in self._gangs:
            return f"rank {child.index} of the {ROLE_TITLES[child.role]}{where}"
        if child.role == "env_worker":
            return f"worker {child.index}{where}"
        number = f" {child.index}" if (child.role, 1) in self.members else ""
        return f"the {ROLE_TITLES[child.role]}{number}{where}"


def _meeting() -> list[str]:
    """Argument of the processes of a gang: a name that no other start has."""
    return ["--meeting", str(time.time_ns())]


def _is_bystander(member: _Member) -> bool:
    """It ended because another process of its gang did."""
    return member.child.exit_code() == EXIT_RANK_LOST


class RunningRoles:
    """A process group and its reports: `with RunningRoles(run_dir) as roles:`; what still runs at the end is killed.

    Call `receive_reports` often: a role sends two reports a second.
    """

    def __init__(
        self, run_dir: RunDir, command: Command = role_command, launch: Launch | None = None,
        note_endpoints: Callable[[Report], None] | None = None,
    ) -> None:  # fmt: skip
        """`note_endpoints`: gets the reports of living processes that say where they are reached."""
        self._note_endpoints = note_endpoints
        self.reports = RoleReports()
        self.group = ProcessGroup(run_dir, self.reports, command, launch)
        self._run_dir = run_dir

    def __enter__(self) -> Self:
        with ExitStack() as opened:
            self._receiver = opened.enter_context(closing(ReportReceiver(self._run_dir, self.group.has_started)))
            socket = self._receiver.socket
            self._poller, self._endpoints = Poller([socket]), EndpointMonitor(socket)
            opened.callback(self.group.kill_all)
            self._opened = opened.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Kill every process and close the status socket."""
        self._opened.close()

    def wait(self, timeout_sec: float) -> bool:
        """True when there are reports; False after `timeout_sec`."""
        return self._poller.wait(timeout_sec)

    def receive_reports(self, timeout_sec: float = 0.0, *, of_failures: bool = True) -> list[str]:
        """Receive what has arrived; wait for a report where there is none. Returns sentences for the view.

        `of_failures`: with those of roles that failed; False where RoleDied carries them.
        """
        self.wait(timeout_sec)
        reports, refused = self._receiver.receive()
        sentences = [*self._endpoints.restore_missing(time.monotonic()), *refused]
        for report in reports:
            self.on_report(report)
            if report.endpoints and self._note_endpoints is not None and self.group.is_current(report):
                self._note_endpoints(report)
            age_sec = time.time() - report.time if report.time else 0.0
            events = self.reports.add_report(report, time.monotonic(), age_sec)
            if (report.role, 1) in self.group.members and report.role != "env_worker":  # whose words these are
                events = [f"{LOG_NAMES[report.role]}-{report.index}: {event}" for event in events]
            sentences += events if of_failures or report.state != "failed" else []
        return sentences

    def on_report(self, report: Report) -> None:
        """Called with each report; for subclasses."""
