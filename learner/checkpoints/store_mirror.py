"""Mirrors a run's checkpoints to its store, in a thread: the newest two, milestones, past selves and the best one.

The learner's loop saves on the local disk, calls `notify_saved` and goes on; only the thread touches the store.
"""

from __future__ import annotations

import shutil
import threading
import time
from collections import deque
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from simul.common.checkpoints.folders import BEST, PAST, RESULT_FILE, link_folder
from simul.common.checkpoints.meta import META, META_FILE, CheckpointMeta, checkpoint_folders, file_hash
from simul.common.errors import StoreError
from simul.common.role.run_directory import RunDir
from simul.common.runtime.decode_errors import DECODE_ERRORS
from simul.common.runtime.private_files import read_regular
from simul.common.store.layout import KEEP_NEWEST, ORIGIN_FILE, Entry, Kind, Owner, digest, kept, newest_first
from simul.common.store.remote import Store

FIRST_RETRY_SEC, LAST_RETRY_SEC = 1.0, 60.0
STORING = ".storing-"  # prefix of the folder that is being uploaded: the learner may remove its own meanwhile
UNKNOWN, OK, UNREACHABLE, TAKEN_OVER = "", "ok", "unreachable", "taken_over"


@dataclass(frozen=True)
class LocalEntry:
    """A checkpoint on the local disk, and what it is in the store."""

    entry: Entry
    folder: Path
    meta: CheckpointMeta


class _TakenOverError(Exception):
    """A newer run owns the store. Caught by the thread, which ends."""

    def __init__(self, owner: Owner) -> None:
        super().__init__(owner)
        self.owner = owner


class StoreMirror:
    """`start()`, then `notify_saved` after each save, at the end `wait_for_last` until it is true. Nothing blocks.

    Attributes:
        state: UNKNOWN until the store has answered or failed once, then OK, UNREACHABLE, or TAKEN_OVER by a newer run,
            after which nothing more is written.
    """

    def __init__(self, url: str, run_dir: RunDir, owner: Owner, milestone_every_decisions: int) -> None:
        self.state = UNKNOWN
        self._url = url
        self._run_dir = run_dir
        self._owner = owner
        self._milestone_every = milestone_every_decisions
        self._saved_at = [time.monotonic()]  # of saves that the store may lack; the first one: of former lives
        self._stored: set[Entry] = set()  # whole folders of the store, as far as it is known
        self._notes: deque[str] = deque(maxlen=100)
        self._wake, self._hurry = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="simul-store", daemon=True)
        self._closed = False
        self._known: dict[Path, tuple[tuple[int, int], LocalEntry]] = {}  # by folder: stamp of meta.json
        self._damaged: set[Entry] = set()

    def start(self) -> None:
        """Begin with what the store lacks of former lives."""
        for left_over in self._run_dir.checkpoints.glob(f"{STORING}*"):
            shutil.rmtree(left_over, ignore_errors=True)
        self._wake.set()
        self._thread.start()

    def notify_saved(self, now: float) -> None:
        """A checkpoint or a past self is on the local disk; `now` from time.monotonic()."""
        self._saved_at.append(now)
        self._wake.set()

    def behind_sec(self, now: float) -> float:
        """Seconds since the oldest save that the store may lack; 0.0 where it has everything that it should have."""
        return max(now - first, 0.0) if (first := next(iter(self._saved_at), None)) is not None else 0.0

    def drain_notes(self) -> list[str]:
        """Sentences since the last call."""
        return [self._notes.popleft() for _ in range(len(self._notes))]

    def wait_for_last(self) -> bool:
        """Whether there is nothing to wait for; attempts follow one another quickly from now on.

        The store has everything, belongs to a newer run, or cannot be reached and lacks nothing as far as is known.
        """
        self._hurry.set()
        over = not self._saved_at or self.state == TAKEN_OVER
        return over or (self.state == UNREACHABLE and not self._missing())

    def close(self) -> None:
        """End the thread after what it does now; a request that hangs is not waited for."""
        self._closed = True
        for event in (self._hurry, self._wake):
            event.set()

    def describe_missing(self) -> str:
        """A sentence that names what the store lacks at the end; "" where nothing."""
        if self.wait_for_last():
            return ""
        if not (missing := self._missing()):
            return ""
        named = ", ".join(missing[:5])
        more = f" and {len(missing) - 5} more" if len(missing) > 5 else ""
        return (
            f"The store {self._url} lacks {named}{more}. They are in {self._run_dir.checkpoints}; "
            "the next start of this run here uploads them."
        )

    def _missing(self) -> list[str]:
        """What is here and not in the store, as far as is known."""
        return [each.entry.path for each in self._order(self._local_entries(), frozenset(self._stored))]

    def _run(self) -> None:
        """The thread."""
        store: Store | None = None
        lost_at, retry_sec = 0.0, FIRST_RETRY_SEC
        while True:
            self._wake.wait()
            if self._closed:
                return
            self._wake.clear()
            covered = len(self._saved_at)
            try:
                store = store or Store(self._url)
                self.copy_all(store)
            except StoreError as error:
                if not lost_at:
                    lost_at = time.monotonic()
                    self._notes.append(
                        f"{error} Training goes on; checkpoints stay on the local disk, and the store gets them when "
                        "it is back."
                    )
                    self.state = UNREACHABLE  # after its note, so that a reader of the state finds the note
                if error.refused:  # the next attempt may find other credentials
                    store = None
                self._wait(retry_sec)
                retry_sec = min(2 * retry_sec, LAST_RETRY_SEC)
                self._wake.set()
            except _TakenOverError as error:
                self._notes.append(
                    f"The store {self._url} belongs to a newer run, started {error.owner.started} on "
                    f"{error.owner.host}: this one writes nothing more there. Training goes on, on the local disk only."
                )
                self.state = TAKEN_OVER
                return
            else:
                del self._saved_at[:covered]
                if lost_at:
                    self._notes.append(
                        f"The store {self._url} is back after {time.monotonic() - lost_at:.0f} s, and has everything."
                    )
                lost_at, retry_sec, self.state = 0.0, FIRST_RETRY_SEC, OK

    def _wait(self, seconds: float) -> None:
        """Between two attempts; at the end of the run briefly."""
        if self._hurry.wait(seconds):
            time.sleep(FIRST_RETRY_SEC)

    def copy_all(self, store: Store) -> None:
        """One pass: upload what the store lacks, remove what it need not keep. Raises StoreError, _TakenOverError."""
        local = self._local_entries()
        self._check_owner(store)
        found = store.entries()
        stored = self._stored = {entry for entry, files in found.items() if META_FILE in files}
        if (origin := self._run_dir.read_origin()) and store.read(ORIGIN_FILE) is None:
            store.write(ORIGIN_FILE, origin.encode())
        for each in self._order(local, stored):
            if self._upload(store, each):
                stored.add(each.entry)
        self._remove_old(store, found, stored, local)

    def _order(self, local: Iterable[LocalEntry], stored: Collection[Entry]) -> list[LocalEntry]:
        """What the store lacks, in the order of its uploads: the newest checkpoints, past selves, the best, others."""
        by_entry = {each.entry: each for each in local if each.entry not in self._damaged}
        checkpoints = [entry for entry in (*by_entry, *stored) if entry.kind == "checkpoints"]
        stay = kept(checkpoints, self._milestone_every)
        of_run = newest_first(entry for entry in stay if entry in by_entry)
        others = newest_first(entry for entry in by_entry if entry.kind != "checkpoints")
        ordered = [
            *of_run[:KEEP_NEWEST],
            *sorted(others, key=lambda entry: entry.kind == "best"),
            *of_run[KEEP_NEWEST:],
        ]
        return [by_entry[entry] for entry in ordered if entry not in stored]

    def _upload(self, store: Store, local: LocalEntry) -> bool:
        """Files first, meta.json last. False where the learner has removed it meanwhile, or it is damaged."""
        pinned = self._run_dir.checkpoints / f"{STORING}{local.entry.local_name}"
        shutil.rmtree(pinned, ignore_errors=True)
        try:
            link_folder(local.folder, pinned)
            if not self._is_whole(pinned, local):
                return False
            names = [*local.meta.files, *([RESULT_FILE] if local.entry.kind == BEST else [])]
            for name in names:
                store.upload(pinned / name, f"{local.entry.path}/{name}")
            self._check_owner(store)
            store.upload(pinned / META_FILE, f"{local.entry.path}/{META_FILE}")
        except FileNotFoundError:
            return False
        except OSError as error:  # of the local disk: those of the store are StoreErrors
            raise StoreError(f"{local.folder} cannot be read for the store: {error.strerror}.") from error
        finally:
            shutil.rmtree(pinned, ignore_errors=True)
        return True

    def _is_whole(self, pinned: Path, local: LocalEntry) -> bool:
        """Whether every file has the hash in meta.json: what is damaged is not uploaded. Raises OSError: removed."""
        fault = next((name for name, wanted in local.meta.files.items() if file_hash(pinned / name) != wanted), None)
        if fault is not None:
            self._damaged.add(local.entry)
            self._notes.append(f"The checkpoint {local.folder} is not stored: {fault} does not have its hash.")
        return fault is None and _read(local.entry.kind, pinned) == (local.entry, local.meta)

    def _remove_old(
        self, store: Store, found: Mapping[Entry, object], stored: Collection[Entry], local: Iterable[LocalEntry]
    ) -> None:
        """Keep past selves, the best one, and the checkpoints that `kept` names; remove the others and torn uploads."""
        best = newest_first(entry for entry in stored if entry.kind == "best")
        best = [each.entry for each in local if each.entry in best] or best
        stay = kept([entry for entry in stored if entry.kind == "checkpoints"], self._milestone_every) | set(best[:1])
        old = [entry for entry in found if entry not in stay and (entry.kind != "past" or entry not in stored)]
        if old:
            self._check_owner(store)
        for entry in sorted(old, key=lambda entry: entry.version):
            store.remove(entry)

    def _check_owner(self, store: Store) -> None:
        """Raises _TakenOverError where a newer run writes to the store; takes it from an older one."""
        owner = store.owner()
        if owner is not None and owner.run_id > self._owner.run_id:
            raise _TakenOverError(owner)
        if owner != self._owner:
            store.write_owner(self._owner)

    def _local_entries(self) -> list[LocalEntry]:
        """Everything on the local disk that the store may get."""
        checkpoints = self._run_dir.checkpoints
        folders: list[tuple[Kind, Path]] = [("checkpoints", folder) for folder in checkpoint_folders(checkpoints)]
        folders += [("past", folder) for folder in checkpoint_folders(checkpoints / PAST)]
        folders += [("best", (checkpoints / BEST).resolve())]
        known = {}
        for kind, folder in folders:
            try:
                stat = (folder / META_FILE).stat()
            except OSError:
                continue
            stamp, before = (stat.st_mtime_ns, stat.st_ino), self._known.get(folder)
            if before is not None and before[0] == stamp:
                known[folder] = before
            elif read := _read(kind, folder):
                known[folder] = stamp, LocalEntry(read[0], folder, read[1])
        self._known = known
        return [local for _, local in known.values()]


def _read(kind: Kind, folder: Path) -> tuple[Entry, CheckpointMeta] | None:
    """What a folder is in a store, and its meta.json; None where it is damaged, or is being removed."""
    try:
        data = read_regular(folder / META_FILE)
        evaluation = read_regular(folder / RESULT_FILE) if kind == "best" else b""
        meta = META.decode(data)
    except (OSError, *DECODE_ERRORS):
        return None
    return Entry(kind, meta.version, meta.decisions, digest(data, evaluation)), meta
