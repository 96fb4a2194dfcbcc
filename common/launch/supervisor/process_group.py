"""The role processes of a run: start them, restart the dead, stop them in order."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from simul.common.config.run_directory import RunDir
from simul.common.launch.monitoring.state import Key, RunState
from simul.common.launch.supervisor.needed_files import NeededFiles
from simul.common.launch.supervisor.processes import Child, Meter, role_command
from simul.common.launch.supervisor.restarts import RestartPolicy
from simul.common.protocol.errors import SimulError
from simul.common.runtime.lifecycle import EXIT_ENDS_RUN

Command = Callable[[str], list[str]]

READY_LIMIT_SEC = 300.0
SPOKEN = {"learner": "learner", "inference_server": "inference server", "env_worker": "env workers"}


class RoleDied(SimulError):
    """A role ended during start-up, or too often. Caught by `main()`: printed, its exit code passed on."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class _Place:
    """Where one process of a role belongs; its lives come and go."""

    def __init__(self, child: Child, threads: int, arguments: Sequence[str]) -> None:
        self.child = child
        self.threads = threads
        self.arguments = arguments
        self.policy = RestartPolicy()
        self.meter = Meter()
        self.restarts = 0
        self.restart_at: float | None = None
        self.last_words = ""  # of the last life that died


class Fleet:
    """Processes by (role, index)."""

    def __init__(self, run_dir: RunDir, state: RunState, command: Command = role_command) -> None:
        self._run_dir = run_dir
        self._state = state
        self._command = command
        self._needed = NeededFiles(run_dir)
        self.places: dict[Key, _Place] = {}

    def start(self, role: str, count: int, threads: int, arguments: Sequence[Sequence[str]] = ()) -> None:
        """Start `count` processes of `role`; `arguments`, if given, holds the extra ones of each."""
        self._needed.remember()
        for index in range(count):
            extra = arguments[index] if arguments else ()
            child = self._spawn(role, index, threads, extra)
            self.places[role, index] = _Place(child, threads, extra)

    def ready(self, role: str) -> bool:
        """True when every process of `role` has reported that it is ready."""
        return all(self.state_of(key) == "ready" for key in self.places if key[0] == role)

    def wait_until_ready(self, role: str, meanwhile: Callable[[], bool]) -> None:
        """Wait for every process of `role`; `meanwhile` is called often, True means: no longer. Raises RoleDied."""
        deadline = time.monotonic() + READY_LIMIT_SEC
        while not self.ready(role):
            self.check_alive()
            if time.monotonic() > deadline:
                raise RoleDied(f"The {SPOKEN[role]} did not become ready within {READY_LIMIT_SEC:.0f} s; see logs/.", 1)
            if meanwhile():
                return

    def state_of(self, key: Key) -> str:
        """What the process last said of itself."""
        place = self.places[key]
        if place.child.exit_code() is not None:
            return "stopped" if place.child.ended_well() else "dead"
        report = self._state.life(key, place.child.run_id)
        return "starting" if report is None else report.state

    def check_alive(self) -> None:
        """Raises RoleDied with the process's last words if one has ended."""
        for place in self.places.values():
            if place.child.exit_code() is not None:
                raise self._obituary(place)

    def restart_dead(self, now: float) -> list[str]:
        """Restart what died, after a short wait. Returns sentences for the view. Raises RoleDied to give up."""
        sentences = []
        for place in self.places.values():
            child = place.child
            if place.restart_at is None and child.exit_code() is not None:
                child.kill()  # what it started and left behind
                self._state.ended((child.role, child.index), child.run_id, now)
                place.last_words = child.last_line()
                if child.exit_code() == EXIT_ENDS_RUN:
                    raise self._obituary(place)
                delay = place.policy.died(now, was_ready=self._state.was_ready((child.role, child.index), child.run_id))
                if delay is None:
                    raise self._obituary(place, "too often; last with ")
                place.restart_at = now + delay
                sentences.append(f"{_spoken(child)} died ({child.how_it_ended()}), restarting")
            elif place.restart_at is not None and now >= place.restart_at:
                sentences += self._needed.restore()
                sentences += self._start_again(place, now)
        return sentences

    def stop(self, role: str, patience_sec: float, meanwhile: Callable[[], bool]) -> list[str]:
        """Ask the processes of `role` to stop and wait for them; `meanwhile` is called often, True means: now.

        Returns sentences about those that did not end well.
        """
        places = [place for key, place in self.places.items() if key[0] == role]
        for place in places:
            place.child.ask_to_stop()
        deadline = time.monotonic() + patience_sec
        hurry = False
        while any(p.child.exit_code() is None for p in places) and time.monotonic() < deadline and not hurry:
            hurry = meanwhile()
        sentences = []
        for place in places:
            if place.child.exit_code() is None:
                why = "was killed at once" if hurry else f"did not stop in {patience_sec:.0f} s and was killed"
                sentences.append(f"{_spoken(place.child)} {why}")
            elif place.restart_at is None and not place.child.ended_well():
                sentences.append(f"{_spoken(place.child)} ended with {place.child.how_it_ended()}")
            if place.restart_at is None:
                self._state.ended((place.child.role, place.child.index), place.child.run_id, time.monotonic())
            place.child.kill()
        return sentences

    def all_reported(self) -> bool:
        """Every life that worked and ended with exit code 0 is known to have stopped."""
        lives = (place.child for place in self.places.values() if place.child.exit_code() == 0)
        reports = (self._state.life((child.role, child.index), child.run_id) for child in lives)
        return all(report is None or report.state not in ("ready", "draining") for report in reports)

    def kill_all(self) -> None:
        """End everything now."""
        for place in self.places.values():
            place.child.kill()

    def measure(self) -> None:
        """Sample CPU and memory of every process."""
        for place in self.places.values():
            place.meter.sample(place.child.pid)

    def _start_again(self, place: _Place, now: float) -> list[str]:
        """Where the system has no process to give (EAGAIN, ENOMEM), that is a start that failed. Raises RoleDied."""
        child = place.child
        try:
            place.child = self._spawn(child.role, child.index, place.threads, place.arguments)
        except OSError as error:
            place.last_words = str(error)
            failed = f"{_spoken(child)} could not be started ({error.strerror})"
            delay = place.policy.died(now, was_ready=False)
            if delay is None:
                raise RoleDied(f"{failed} too often. Free memory or processes, then start the run again.", 1) from error
            place.restart_at = now + delay
            return [f"{failed}, trying again"]
        place.restart_at = None
        place.restarts += 1
        return []

    def _spawn(self, role: str, index: int, threads: int, arguments: Sequence[str]) -> Child:
        return Child(role, index, self._run_dir, self._command(role), threads=threads, arguments=arguments)

    def _obituary(self, place: _Place, before: str = "") -> RoleDied:
        child = place.child
        code = child.exit_code()
        if code in (2, EXIT_ENDS_RUN):  # the role has said in a sentence what is wrong
            return RoleDied(f"{_spoken(child)}: {child.sentence()}", 2 if code == 2 else 1)
        words = child.log_tail() or "(it wrote nothing)"
        return RoleDied(f"{_spoken(child)} died {before}({child.how_it_ended()}). Its last words:\n{words}", 1)


def _spoken(child: Child) -> str:
    return f"worker {child.index}" if child.role == "env_worker" else f"the {SPOKEN[child.role]}"
