"""Profiles a run from outside: reads its status.json, and the processor time of its processes."""

from __future__ import annotations

import time
from collections.abc import Callable

import msgspec
import psutil

from simul.common.errors import ConfigError, SimulError
from simul.common.role.machine import is_this_machine
from simul.common.role.run_directory import RunDir
from simul.common.role.run_lock import living_owner
from simul.common.runtime.decode_errors import DECODE_ERRORS
from simul.common.runtime.machine_limits import usable_cores
from simul.common.runtime.private_files import read_regular
from simul.launch.monitoring.profiling.profile import Profile, make_profile
from simul.launch.monitoring.snapshot import Snapshot
from simul.launch.processes.processor_time import ProcessTree

POLL_SEC = 0.1
LOOK_EVERY_SEC = 1.0  # for new processes
WARM_UP_SEC = 10.0  # longest wait for the first update of a new run
REPORT_SEC = 30.0  # a learner reports only between two updates
LATE_SEC = 30.0  # a run that writes no status for so long hangs
MEASURED = ("training", "serving")
OVER = ("stopping", "stopped", "failed")


class Profiler:
    """Two snapshots of a run, `seconds` apart or a little more, and the processor time between them.

    profiler.begin(warm_up=False)
    profile = profiler.finish()

    `ended`: a sentence where the run is over, else "". It may raise ConfigError.
    """

    def __init__(self, run_dir: RunDir, ended: Callable[[], str], seconds: float) -> None:
        self._run_dir = run_dir
        self._ended = ended
        self._seconds = seconds
        self._began: float | None = None

    def begin(self, *, warm_up: bool) -> None:
        """Wait until the run trains, and with `warm_up` for its first update; take the first snapshot.

        Raises:
            SimulError: the run ended.
        """
        snapshot = self._next(None)
        while snapshot.phase not in MEASURED or (warm_up and not _warm(snapshot)):
            snapshot = self._next(snapshot)
        self._first = self._next(snapshot)  # the one before may be old
        owner = living_owner(self._run_dir)
        if owner is None:
            raise self._error(f"The run in {self._run_dir.root} has ended.")
        self._tree = ProcessTree(owner.pid)
        self._cpu = self._tree.sample(self.pids().values())
        self._began = self._cpu.at

    def pids(self) -> dict[str, int]:
        """Role processes of the first snapshot on this machine, by name."""
        return {each.name: each.pid for each in self._first.processes if is_this_machine(each.machine)}

    def finish(self) -> Profile:
        """Wait for the end of the time, and until each process has reported twice, at most REPORT_SEC longer.

        Raises:
            SimulError: the run ended before.
        """
        assert self._began is not None, "finish before begin"
        last, look_at = self._first, self._began
        end = self._began + self._seconds
        while (now := time.monotonic()) < end or (now < end + REPORT_SEC and not _all_reported(self._first, last)):
            last = self._next(last)
            if time.monotonic() >= look_at:
                look_at = time.monotonic() + LOOK_EVERY_SEC
                self._tree.look()
        running = self._tree.look()
        cpu = self._tree.sample(process.pid for process in last.processes if is_this_machine(process.machine))
        return make_profile(
            self._first, last, (self._cpu, cpu), cores=usable_cores(), machine_cores=psutil.cpu_count() or 1,
            running=running, started=self._tree.started,
        )  # fmt: skip

    def _next(self, before: Snapshot | None) -> Snapshot:
        """A snapshot newer than `before`. Raises SimulError where the run ends, or its status stays the same."""
        late_at = time.monotonic() + LATE_SEC
        while True:
            ended = self._ended()  # looked at first: what it wrote last is its status then
            snapshot = _read_status(self._run_dir)
            if snapshot is not None and (before is None or snapshot.time > before.time):
                if before is None or snapshot.phase not in OVER:
                    return snapshot
                ended = ended or f"The run in {self._run_dir.root} has ended."
            if ended:
                raise self._error(ended)
            if before is not None and before.phase in MEASURED and time.monotonic() > late_at:
                raise SimulError(
                    f"{self._run_dir.root / 'status.json'} has not changed for {LATE_SEC:.0f} s: the run hangs."
                )
            time.sleep(POLL_SEC)

    def _error(self, ended: str) -> SimulError:
        if self._began is None:
            return SimulError(f"{ended} Nothing was measured.")
        after = time.monotonic() - self._began
        return SimulError(f"{ended} Measured were {after:.1f} of {self._seconds:g} s: choose fewer with --seconds.")


def _warm(snapshot: Snapshot) -> bool:
    """The learner has made an update, or the time for it is over."""
    return bool(snapshot.learner.get("updates")) or snapshot.ready_sec >= WARM_UP_SEC


def _all_reported(first: Snapshot, last: Snapshot) -> bool:
    """Each process has reported since `first`, or its loop has not begun."""
    before = {(process.pid, process.create_time): process.loop_sec for process in first.processes}
    return last is not first and all(
        process.loop_sec > before.get((process.pid, process.create_time), 0.0) or not process.stage_sec
        for process in last.processes
    )


def _read_status(run_dir: RunDir) -> Snapshot | None:
    """status.json; None before the first. Raises ConfigError where it is of another version."""
    file = run_dir.root / "status.json"
    try:
        return msgspec.json.decode(read_regular(file), type=Snapshot)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigError(f"{file} cannot be read: {error.strerror}.") from None
    except DECODE_ERRORS as error:
        raise ConfigError(
            f"{file} is not a status of this version of Simul: {error}. Use `simul profile` of the checkout that the "
            "run was started with, or stop it with `simul down` and start it again with this one."
        ) from None
