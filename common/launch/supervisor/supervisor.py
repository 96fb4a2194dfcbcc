"""`simul up`: starts the roles, watches, restarts, shows, stops them cleanly. The main loop of a run."""

from __future__ import annotations

import contextlib
import time
from contextlib import closing

from simul.common.config.run_directory import RunDir
from simul.common.config.schema import Config
from simul.common.launch.monitoring.snapshot import Snapshot, StatusFile, Watch
from simul.common.launch.monitoring.summary import write_summary
from simul.common.launch.monitoring.view import Display
from simul.common.launch.processes import run_lock
from simul.common.launch.processes.process_group import SPOKEN, Command, Fleet, RoleDied
from simul.common.launch.processes.report_receiver import ReportReceiver
from simul.common.launch.processes.role_process import role_command
from simul.common.launch.processes.role_reports import RunState, number
from simul.common.launch.processes.signals import Signals
from simul.common.launch.supervisor.checkpoint_files import Origin
from simul.common.launch.supervisor.game_spec import StartStopped
from simul.common.launch.supervisor.preflight import prepare
from simul.common.protocol.errors import ConfigError
from simul.common.transport import EndpointKeeper, Poller

TURN_SEC = 0.1
LOOK_EVERY_SEC = 1.0
LONGEST_TURN_SEC = 1.0
LAST_REPORTS_SEC = 5.0  # for reports of roles that have ended and are still on their way
# Workers first, so that nothing new arrives; the learner last, because it saves.
STOP_PATIENCE_SEC = {"env_worker": 15.0, "inference_server": 15.0, "learner": 120.0}
STOPPING = "stopping: draining and saving (Ctrl-C again: now)"
STOPPING_EARLY = "stopping before everything was ready: nothing was learned, there is no summary (Ctrl-C again: now)"


class Supervisor:
    """One run, from start to summary."""

    def __init__(
        self,
        config: Config,
        run_dir: RunDir,
        display: Display,
        command: Command = role_command,
        origin: Origin | None = None,
    ) -> None:
        self._config = config
        self._run_dir = run_dir
        self._display = display
        self._command = command
        self._origin = origin
        self._state = RunState()
        self._fleet = Fleet(run_dir, self._state, command)
        self._watch = Watch(str(run_dir.root), self._state, self._fleet, config.game)
        self._signals = Signals()
        self._next_look = 0.0
        self._turned_at = time.monotonic()
        self._phase = "starting"
        self._trained = False
        self._status_file = StatusFile(run_dir, self._say)

    def run(self) -> int:
        """Run until a signal or `stop_after_decisions`. Returns the exit code. Raises ConfigError, RoleDied.

        A start that a sentence refuses leaves no run directory behind, unless it was there before.
        """
        new = not self._run_dir.exists()
        try:
            return self._run_owned()
        except (ConfigError, RoleDied) as error:
            if new and not self._trained and getattr(error, "exit_code", 2) == 2:
                self._run_dir.remove()
            raise

    def _run_owned(self) -> int:
        self._run_dir.create()
        run_lock.refuse_if_owned(self._run_dir)
        self._signals.install()
        self._reports = ReportReceiver(self._run_dir)
        self._poller, self._endpoints = Poller([self._reports.socket]), EndpointKeeper(self._reports.socket)
        with closing(self._reports):
            run_lock.claim(self._run_dir)
            try:
                return self._run()
            finally:
                self._fleet.kill_all()
                self._run_dir.remove_sockets()
                run_lock.release(self._run_dir)
                self._display.close()
                self._signals.restore()

    def _run(self) -> int:
        failure: RoleDied | None = None
        with run_lock.written_or_sentence(self._run_dir):
            before = self._run_dir.settled()
        try:
            prepare(self._config, self._run_dir, self._command, self._origin, self._say, lambda: self._signals.stop)
            self._start_up()
            while not self._done():
                self._turn()
                for sentence in self._fleet.restart_dead(time.monotonic()):
                    self._say(sentence)
        except StartStopped:
            pass
        except RoleDied as error:
            failure = error
        clean = self._shut_down(quiet=failure is not None and not self._trained)
        self._display.close()
        if self._trained:
            self._display.summary(write_summary(self._run_dir, self._config, self._look()))
        else:
            with contextlib.suppress(OSError):
                self._run_dir.settle(before)  # its checkpoints are of that configuration
            if self._origin is not None:
                self._origin.take_back()
        if failure is not None:
            self._phase = "failed"
        self._look()
        if failure is not None:
            raise failure
        return 0 if clean else 1

    def _start_up(self) -> None:
        config = self._config
        self._start("learner", 1, config.learner.threads)
        self._start("inference_server", 1, config.server.threads)
        self._start("env_worker", config.workers.count, 1)
        if not self._signals.stop:
            self._watch.mark_ready()
            self._phase = "training"
            self._trained = True

    def _start(self, role: str, count: int, threads: int) -> None:
        """Start a role and wait until each of its processes says that it is ready."""
        if self._signals.stop:
            return
        began = time.monotonic()
        self._fleet.start(role, count, threads)
        self._fleet.wait_until_ready(role, self._stopped)
        if not self._signals.stop:
            self._say(f"{SPOKEN[role]} ready ({time.monotonic() - began:.1f} s)")

    def _turn(self) -> None:
        """Take what was reported; once a second, or when something changed, write status.json and draw."""
        self._stay_awake()
        reports, refused = self._reports.receive()
        for sentence in refused:
            self._say(sentence)
        for report in reports:
            sentences = self._state.receive(report, time.monotonic())
            if report.state != "failed" or self._trained:  # else RoleDied says it
                for sentence in sentences:
                    self._say(sentence)
        if time.monotonic() >= self._next_look or self._watch.changed(time.monotonic()):
            self._next_look = time.monotonic() + LOOK_EVERY_SEC
            self._display.update(self._look())
        self._poller.wait(TURN_SEC)

    def _stay_awake(self) -> None:
        """A pause of our own, or of the whole machine, is nobody's silence."""
        now, before = time.monotonic(), self._turned_at
        self._turned_at = now
        if now - before > LONGEST_TURN_SEC:
            self._watch.slept(now - before)

    def _look(self) -> Snapshot:
        self._fleet.measure()
        run_lock.keep(self._run_dir)
        snapshot = self._watch.take(self._phase, time.monotonic())
        for sentence in [*self._watch.alerts(), *self._endpoints.look(time.monotonic())]:
            self._say(sentence)
        self._status_file.write(snapshot)
        return snapshot

    def _done(self) -> bool:
        limit = self._config.stop_after_decisions
        answered = number(self._state.totals("inference_server"), "decisions") or 0
        return self._signals.stop or bool(limit and answered >= limit)

    def _shut_down(self, quiet: bool) -> bool:
        """Stop the roles in order; `quiet` where the failure of a start says it all. True when all ended well."""
        if not quiet:
            self._say(STOPPING if self._trained else STOPPING_EARLY)
        self._phase = "stopping"
        self._watch.mark_stopping()
        bad = []
        for role, patience_sec in STOP_PATIENCE_SEC.items():
            bad += self._fleet.stop(role, patience_sec, self._meanwhile)
        for sentence in [] if quiet else bad:
            self._say(sentence)
        self._take_last_reports()
        self._phase = "stopped"
        return not bad

    def _take_last_reports(self) -> None:
        deadline = time.monotonic() + LAST_REPORTS_SEC
        self._turn()
        while not self._fleet.all_reported() and time.monotonic() < deadline:
            self._turn()
        self._state.all_ended()

    def _stopped(self) -> bool:
        self._turn()
        return self._signals.stop

    def _meanwhile(self) -> bool:
        self._turn()
        return self._signals.now

    def _say(self, sentence: str) -> None:
        self._watch.say(sentence)
        self._display.say(sentence)
