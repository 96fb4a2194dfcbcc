"""`simul up`: starts the roles, watches, restarts, shows, stops them cleanly. The main loop of a run."""

from __future__ import annotations

import contextlib
import os
import shlex
import time
from collections.abc import Callable, Iterable, Mapping, Sequence

from simul.common.config.schema import Config
from simul.common.config.trust import NOTHING, Trust
from simul.common.errors import ConfigError
from simul.common.role import run_lock
from simul.common.role.run_directory import RunDir
from simul.common.store.layout import STOP_WAIT_SEC
from simul.launch.cluster.cluster import Cluster
from simul.launch.monitoring.snapshot import RunMonitor, Snapshot, StatusFile
from simul.launch.monitoring.summary import write_summary
from simul.launch.monitoring.view.display import Display
from simul.launch.processes.process_group import ROLE_TITLES, Command, RoleDied, RunningRoles
from simul.launch.processes.role_process import role_command
from simul.launch.processes.role_reports import decisions_of, number
from simul.launch.processes.signals import Signals
from simul.launch.supervisor.checkpoint_files import InitialCheckpoint
from simul.launch.supervisor.evaluations import Evaluations
from simul.launch.supervisor.game_spec import StartStopped
from simul.launch.supervisor.leftover_roles import leftover_roles
from simul.launch.supervisor.page_process import PageProcess
from simul.launch.supervisor.preflight import prepare_run
from simul.launch.supervisor.run_curves import RunCurves
from simul.launch.supervisor.run_notices import RunNotices
from simul.launch.supervisor.worker_binding import WorkerBinding

POLL_SEC = 0.1
SNAPSHOT_EVERY_SEC = 1.0
LONGEST_POLL_SEC = 1.0
START_PATIENCE_SEC = 30.0  # for the rest of a role's processes, once one of them is ready
LAST_REPORTS_SEC = 5.0  # how long to wait for the last reports of roles that have ended
# Workers first, so that nothing new arrives; the learner last, because it saves.
STOP_PATIENCE_SEC = {"env_worker": 15.0, "inference_server": 15.0, "learner": 120.0}
LEARNER = ("learner", 0)  # rank 0 where there are several: it saves
STOPPING = "stopping: draining and saving (Ctrl-C again: now)"
STOPPING_EARLY = "stopping before everything was ready: there is no summary (Ctrl-C again: now)"


class Supervisor:
    """One run, from start to summary: `Supervisor(config, run_dir, display).run()`."""

    def __init__(
        self,
        config: Config,
        run_dir: RunDir,
        display: Display,
        command: Command = role_command,
        origin: InitialCheckpoint | None = None,
        notices: RunNotices | None = None,
        cluster: Cluster | None = None,
        written: Mapping[str, str] | None = None,
        trust: Trust = NOTHING,
        page: PageProcess | None = None,
    ) -> None:
        """`cluster`: the machines on which the roles run; None: this one. `written`, `trust`: see `prepare_run`.

        `page`: shows the run in browsers; None: the view names the command that does.
        """
        self._trust = trust
        self._config = config
        self._run_dir = run_dir
        self._display = display
        self._command = command
        self._origin = origin
        self._notices = notices or RunNotices(config, run_dir)
        self._cluster = cluster
        self._written = written or {}
        self._page = page
        self._roles = (
            RunningRoles(run_dir, command)
            if cluster is None
            else RunningRoles(run_dir, command, cluster.launch, cluster.note_report)
        )
        self._reports, self._group = self._roles.reports, self._roles.group
        self._monitor = RunMonitor(str(run_dir.root), self._reports, self._group, config.game)
        self._binding = WorkerBinding(config.workers.count, config.cluster.servers.count)
        self._signals = Signals()
        self._next_snapshot = 0.0
        self._polled_at = time.monotonic()
        self._phase = "starting"
        self._trained = False
        self._unchanged = False  # a start that was refused before a role started
        self._evaluations: Evaluations | None = None  # once the run's configuration is known
        self._status_file = StatusFile(run_dir, self._say)

    def run(self) -> int:
        """Run until a signal or `stop_after_decisions`. Returns the exit code. Raises ConfigError, RoleDied.

        A start that is refused (exit code 2) removes the run directory if it made it; one that is refused before a role
        starts leaves an older one as it was. One that is refused because of another supervisor changes nothing.
        """
        if self._config.run_dir_access == "group":
            os.umask(0o027)  # also of the roles
        new = not self._run_dir.exists()
        self._run_dir.create(self._config.run_dir_access)
        run_lock.check_unowned(self._run_dir)
        with run_lock.hold(self._run_dir):
            return self._run_owned(new)

    def _run_owned(self, new: bool) -> int:
        """`new`: this start has made the run directory."""
        refused = False
        self._signals.install()
        self._prepare_addresses()
        with self._roles:
            try:
                run_lock.claim(self._run_dir)
                return self._run()
            except Exception as error:
                self._notices.failed(error)
                refused = isinstance(error, ConfigError) or getattr(error, "exit_code", 0) == 2
                raise
            finally:
                self._roles.close()
                if self._page is not None:
                    self._page.close()
                if self._cluster is not None:
                    self._say_all(self._cluster.close())
                self._run_dir.remove_sockets()
                if new and refused and not self._trained:
                    self._run_dir.remove()
                elif self._unchanged:
                    self._run_dir.undo_create()
                run_lock.release(self._run_dir)  # from here on the next start may use the run directory
                self._display.close()
                self._say_all(self._notices.close(lambda: self._signals.now))
                self._signals.restore()

    def _run(self) -> int:
        failure: RoleDied | ConfigError | None = None
        with run_lock.config_error_on_write_failure(self._run_dir):
            before, status_before = self._run_dir.read_start_files(), self._status_file.read()
        self._curves = RunCurves(self._run_dir, self._config)
        self._monitor.leftovers = leftover_roles(self._run_dir)
        try:
            self._config = prepare_run(
                self._config, self._run_dir, self._command, self._origin, self._say, self._poll_while_starting,
                written=self._written, left=self._monitor.leftovers, elsewhere=self._cluster is not None,
                trust=self._trust,
            )  # fmt: skip
            decisions = self._curves.position.decisions
            evaluations = self._evaluations = Evaluations(self._config, self._run_dir, decisions, self._say)
            if self._cluster is not None:
                self._cluster.open(lambda: self._signals.stop, self._say)
            self._curves.serve_prometheus()
            self._open_page()
            self._start_up()
            while not self._done():
                self._poll()
                self._say_all(self._group.restart_dead(time.monotonic()))
                self._move_workers(time.monotonic())
                if result := evaluations.poll(self._curves.position.decisions):
                    self._curves.add_evaluation(result)
        except StartStopped:
            pass
        except (ConfigError, RoleDied) as error:
            if isinstance(error, ConfigError) and not self._trained:  # nothing of the run has changed
                self._status_file.restore(status_before)
                self._undo(lambda: self._run_dir.undo_start_files(before))
                self._unchanged = True
                raise
            failure = error
        clean = self._shut_down(quiet=failure is not None and not self._trained)
        final = self._take_snapshot(last=self._trained)
        self._say_all(self._curves.close(lambda: self._signals.now))
        self._display.close()
        if self._trained:
            summary = write_summary(self._run_dir, self._config, final)
            self._display.summary(summary)
            if failure is None:
                self._notices.stopped(summary, clean=clean)
        elif not number(final.learner, "decisions_learned_since_start"):  # by workers that were ready before others
            self._undo(lambda: self._run_dir.restore_start_files(before))  # which its checkpoints belong to
        if failure is not None:
            self._phase = "failed"
        self._take_snapshot()
        if failure is not None:
            raise failure
        return 0 if clean else 1

    def _undo(self, restore_files: Callable[[], None]) -> None:
        """Of a start that has learned nothing."""
        with contextlib.suppress(OSError):
            restore_files()
        if self._origin is not None:
            self._origin.undo()

    def _open_page(self) -> None:
        if self._page is not None:
            self._say_all(self._page.start())
        else:  # no event: it says nothing about the run
            self._display.say(f"to see it in a browser: simul page {shlex.quote(str(self._run_dir.root))}")

    def _start_up(self) -> None:
        config = self._config
        ranks = config.cluster.learner.ranks
        self._start("learner", ranks, config.learner.threads, gang=ranks > 1)
        servers = config.cluster.servers.count
        self._start("inference_server", servers, config.server.threads)
        self._binding.start_without(self._group.unready("inference_server"))
        bound = self._binding.bound
        arguments = [_server_argument(bound[worker]) for worker in sorted(bound)] if servers > 1 else []
        self._start("env_worker", config.workers.count, 1, arguments)
        if not self._signals.stop:
            self._monitor.mark_ready()
            self._phase = "training"
            self._trained = True
            self._notices.started(self._curves.begin.decisions)

    def _start(
        self, role: str, count: int, threads: int, arguments: Sequence[Sequence[str]] = (), *, gang: bool = False
    ) -> None:  # fmt: skip
        """Start a role and wait until its processes are ready; `arguments`, `gang`: see `ProcessGroup.start`.

        Once one is ready, it is waited START_PATIENCE_SEC for the others. Those are ready later, or shown as an outage.
        """
        if self._signals.stop:
            return
        began = time.monotonic()
        self._group.start(role, count, threads, arguments, gang=gang)
        self._group.wait_until_ready(role, self._poll_while_starting, self._say, START_PATIENCE_SEC)
        if not self._signals.stop and self._group.ready(role):
            self._say(f"{ROLE_TITLES[role]} ready ({time.monotonic() - began:.1f} s)")

    def _move_workers(self, now: float) -> None:
        """Workers of a server that is lost start again on the others; those of one that was late start on it."""
        if self._config.cluster.servers.count == 1:
            return
        works = self._monitor.works("inference_server", now)
        back = {worker: (server, "it is ready now") for worker, server in self._binding.take_back(works).items()}
        lost = "its own has not worked for long"
        moves = back | {worker: (server, lost) for worker, server in self._binding.update(works, now).items()}
        for worker, (server, why) in moves.items():
            self._say(f"worker {worker} moves to inference server {server}: {why}")
            self._group.start_again_with(("env_worker", worker), _server_argument(server), now)

    def _prepare_addresses(self) -> None:
        """The address book exists where the run has several machines, and only there.

        Before the status socket is bound, which has keys and an address of the book.
        """
        with run_lock.config_error_on_write_failure(self._run_dir):
            if self._cluster is None:
                self._run_dir.remove_addresses()
            else:
                self._cluster.prepare()

    def _poll_cluster(self, now: float) -> None:
        """Take in what the machines say. Workers of a server that has another address now start again."""
        if self._cluster is None:
            return
        self._say_all(self._cluster.poll(now))
        moved = {worker for worker, server in self._binding.bound.items() if server in self._cluster.moved}
        self._cluster.moved.clear()
        for worker in moved & {index for role, index in self._group.members if role == "env_worker"}:
            arguments = self._group.members["env_worker", worker].arguments
            self._group.start_again_with(("env_worker", worker), arguments, now)

    def _poll(self) -> None:
        """Receive reports; once a second, or when the state of a process changed, write status.json and draw."""
        self._exclude_own_pause()
        self._poll_cluster(time.monotonic())
        self._say_all(self._roles.receive_reports(of_failures=self._trained))
        self._say_all(self._notices.take_problems())
        if self._page is not None:
            self._say_all(self._page.poll())
        if time.monotonic() >= self._next_snapshot or self._monitor.states_changed(time.monotonic()):
            self._next_snapshot = time.monotonic() + SNAPSHOT_EVERY_SEC
            self._display.update(self._take_snapshot())
        self._roles.wait(POLL_SEC)

    def _exclude_own_pause(self) -> None:
        """A pause of this process, or of the whole machine, must not count as silence of the roles."""
        now, before = time.monotonic(), self._polled_at
        self._polled_at = now
        if now - before > LONGEST_POLL_SEC:
            self._monitor.exclude_pause(now - before)
            self._binding.exclude_pause(now - before)

    def _take_snapshot(self, last: bool = False) -> Snapshot:
        """The state of the run, for status.json and, where due, the curves. `last`: of a run that has ended."""
        self._group.measure()
        run_lock.restore_claim(self._run_dir)
        snapshot = self._monitor.take_snapshot(self._phase, time.monotonic())
        self._say_all(self._monitor.take_alerts())
        snapshot, report = self._curves.record(snapshot, last=last)
        if self._phase == "training":
            self._notices.update(snapshot)
        self._status_file.write(snapshot)  # before the curves: the next start goes on where it says
        self._say_all(self._curves.write(report))
        return snapshot

    def _done(self) -> bool:
        limit = self._config.stop_after_decisions
        decisions = decisions_of(self._reports.totals("inference_server"))
        return self._signals.stop or bool(limit and decisions >= limit)

    def _shut_down(self, quiet: bool) -> bool:
        """Stop the roles in order; `quiet`: a failed start has its own sentence. True: nothing was lost.

        That is, all exited cleanly; a process of the learner may have died when everything was saved.
        """
        if self._evaluations is not None:
            self._evaluations.close()
        if not quiet:
            self._say(STOPPING if self._trained else STOPPING_EARLY)
        self._phase = "stopping"
        self._monitor.mark_stopping()
        bad: dict[str, list[str]] = {}
        patience = dict(STOP_PATIENCE_SEC)
        patience["learner"] += STOP_WAIT_SEC if self._config.store else 0.0
        for role, patience_sec in patience.items():
            bad[role] = self._group.stop(role, patience_sec, self._poll_while_stopping)
            self._say_all([] if quiet else bad[role])
        self._take_last_reports()
        self._phase = "stopped"
        if bad["learner"] and not quiet and (saved := self._describe_saved()):
            self._say(saved)
            bad.pop("learner")
        return not any(bad.values())

    def _describe_saved(self) -> str:
        """A sentence where the learner's last report says that everything was saved; else ""."""
        report = self._reports.last_report(LEARNER, self._group.members[LEARNER].child.run_id)
        if report is None or report.state not in ("stopped", "failed") or report.metrics.get("unsaved_updates") != 0:
            return ""
        return "The learner had saved everything that was learned: nothing is lost."

    def _take_last_reports(self) -> None:
        deadline = time.monotonic() + LAST_REPORTS_SEC
        self._poll()
        while not self._group.all_reported() and time.monotonic() < deadline:
            self._poll()
        self._reports.mark_all_ended()

    def _poll_while_starting(self) -> bool:
        self._poll()
        return self._signals.stop

    def _poll_while_stopping(self) -> bool:
        self._poll()
        return self._signals.now

    def _say_all(self, sentences: Iterable[str]) -> None:
        for sentence in sentences:
            self._say(sentence)

    def _say(self, sentence: str) -> None:
        self._monitor.add_event(sentence)
        self._display.say(sentence)


def _server_argument(server: int) -> list[str]:
    """Of an env worker."""
    return ["--server", str(server)]
