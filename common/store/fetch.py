"""What a run does with its store before it starts: takes it over, and fetches what is newer there than here."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Collection, Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType

from simul.common.checkpoints.folders import BEST, PAST, RESULT_FILE, new_folder, replace_best
from simul.common.checkpoints.meta import (
    CONFIG_FILE,
    META,
    META_FILE,
    WEIGHTS_FILE,
    CheckpointMeta,
    checkpoint_folders,
    decode_meta,
    file_hash,
    header_fault,
)
from simul.common.errors import CheckpointError, StoreError
from simul.common.role.run_directory import RunDir
from simul.common.runtime.decode_errors import DECODE_ERRORS
from simul.common.runtime.private_files import read_regular
from simul.common.store.claim import claim_store
from simul.common.store.layout import ORIGIN_FILE, Entry, digest, folder_of, whole
from simul.common.store.remote import Store

SAY_EVERY_SEC = 5.0
MIB = 2**20
OF_POLICIES = (WEIGHTS_FILE, CONFIG_FILE)
NONE: Mapping[str, bytes] = MappingProxyType({})
Say = Callable[[str], object]


def prepare_store(store: Store, run_dir: RunDir, spec_fingerprint: str, *, past: bool, say: Say) -> None:
    """Check the store, take it over, and fetch what the run needs.

    Args:
        spec_fingerprint: of the game; checkpoints of another one are refused before anything changes.
        past: the run plays against past selves.
        say: gets sentences.

    Raises:
        StoreError: a sentence says what to do.
        OSError: the run directory cannot be written.
    """
    found = whole(store.entries(), "checkpoints")
    if found:
        _check_game(store, found[0], spec_fingerprint)
    claim_store(store, run_dir)
    local = newest_local(run_dir.checkpoints)
    newest = fetch_newest(store, run_dir, local, say)
    _fetch_origin(store, run_dir, say)
    if newest is not None or not (run_dir.checkpoints / BEST).exists():  # an outage may have come between the two
        _fetch_best(store, run_dir, say)
    if past:
        _fetch_past(store, run_dir, max(local, -1 if newest is None else newest.version), say)


def newest_local(checkpoints: Path) -> int:
    """Version of the newest checkpoint here whose files have their hashes; -1 where there is none."""
    for folder in checkpoint_folders(checkpoints):
        try:
            meta = decode_meta(folder)
            if all(file_hash(folder / name) == wanted for name, wanted in meta.files.items()):
                return meta.version
        except (OSError, *DECODE_ERRORS):
            continue
    return -1


def fetch_newest(store: Store, run_dir: RunDir, local: int, say: Say) -> Entry | None:
    """Fetch the newest whole checkpoint that is newer than version `local`; None where there is none.

    Raises:
        StoreError: it cannot be reached, or all of its checkpoints are damaged and there is none here (`local` is -1).
        OSError: the run directory cannot be written.
    """
    newer = [each for each in whole(store.entries(), "checkpoints") if each.version > local]
    damaged = []
    if newer:
        here = f"the newest here is {local:09d}" if local >= 0 else "there is none here"
        say(f"the store has a newer checkpoint, {newer[0].local_name}; {here}: the run goes on from the store's")
    for entry in newer:
        try:
            fetch_entry(store, entry, run_dir.checkpoints / entry.local_name, say)
        except CheckpointError as error:
            damaged.append(str(error))
            say(f"{error} Falling back to the one before.")
        else:
            return entry
    if damaged and local < 0:
        raise StoreError(
            f"No checkpoint in the store {store.url} can be used. {damaged[0]} "
            "Choose another store, or empty this one to start afresh.",
            refused=True,
        )
    return None


def fetch_checkpoint(store: Store, checkpoints: Path, say: Say, names: Collection[str] = OF_POLICIES) -> None:
    """Fetch a checkpoint into a folder of `checkpoints` that is named after its version.

    `store`: of a run, for its newest whole checkpoint; one folder of it, such as .../best/000000400-77824-07d1...; or
    the folder of an entry of a zoo, which has meta.json itself. `names`: only these of its files; none: all.

    Raises:
        StoreError, CheckpointError: a sentence says what to do.
        OSError: the folder cannot be written.
    """
    above, entry = folder_of(store.url)
    if entry is None and (meta_bytes := store.read(META_FILE)) is not None:
        meta = _decode(meta_bytes, store.url)
        _fetch_files(store, "", meta_bytes, meta, checkpoints / f"{meta.version:09d}", say, names)
        return
    store = Store(above) if entry is not None else store
    found = [entry] if entry is not None else whole(store.entries(), "checkpoints")
    damaged = []
    for each in found:
        try:
            fetch_entry(store, each, checkpoints / each.local_name, say, names)
        except CheckpointError as error:
            damaged.append(str(error))
        else:
            return
    raise StoreError(damaged[0] if damaged else f"The store {store.url} holds no checkpoint.", refused=True)


def fetch_entry(store: Store, entry: Entry, target: Path, say: Say, names: Collection[str] = ()) -> None:
    """Fetch a folder of the store to `target`, which appears whole or not at all. `names`: only these of its files.

    Raises:
        CheckpointError: it is damaged.
        StoreError, OSError.
    """
    meta_bytes, meta, evaluation = _read_meta(store, entry)
    also = {RESULT_FILE: evaluation} if evaluation else {}
    _fetch_files(store, f"{entry.path}/", meta_bytes, meta, target, say, names, also)


def _fetch_files(
    store: Store, path: str, meta_bytes: bytes, meta: CheckpointMeta, target: Path, say: Say, names: Collection[str],
    also: Mapping[str, bytes] = NONE,
) -> None:  # fmt: skip
    """`path`: of the folder in the store, with a slash at its end; empty: the store itself. `also`: files to add."""
    files = {name.removeprefix(path): size for name, size in store.files().items() if name.startswith(path)}
    what = path.rstrip("/") or META_FILE
    wanted = [name for name in meta.files if not names or name in names]
    for name in wanted:
        if name not in files:
            raise CheckpointError(f"{what} of the store is damaged: {name} is missing.")
        if fault := header_fault(files[name], partial(store.read_begin, f"{path}{name}")):
            raise CheckpointError(f"{what} of the store is damaged: {name}: {fault}. It was not fetched.")
    total = sum(files[name] for name in wanted)
    progress = _Progress(total, say)
    say(f"fetching {what} ({total / MIB:.1f} MiB) from {store.url}")
    with new_folder(target) as aside:
        try:
            for name in wanted:
                store.download(f"{path}{name}", files[name], aside / name, progress.update)
                progress.end_file(files[name])
                if file_hash(aside / name) != meta.files[name]:
                    raise CheckpointError(f"{what} of the store is damaged: {name} does not have its hash.")
        except BaseException:  # `new_folder` does not tidy up after a stop
            shutil.rmtree(aside, ignore_errors=True)
            raise
        for name, data in {**also, META_FILE: meta_bytes}.items():
            (aside / name).write_bytes(data)


def _check_game(store: Store, newest: Entry, spec_fingerprint: str) -> None:
    try:
        meta = _read_meta(store, newest)[1]
    except CheckpointError:
        return  # damaged: said when it is fetched
    if meta.spec_fingerprint != spec_fingerprint:
        raise StoreError(
            f"The store {store.url} is of another game or encoder: its checkpoint {newest.local_name} has the spec "
            f"fingerprint {meta.encoder()}, this configuration {spec_fingerprint}. "
            "Choose another store. Nothing was changed.",
            refused=True,
        )


def _read_meta(store: Store, entry: Entry) -> tuple[bytes, CheckpointMeta, bytes]:
    """meta.json as bytes and decoded; evaluation.json of the best checkpoint. Raises CheckpointError, StoreError."""
    data = store.read(f"{entry.path}/{META_FILE}") or b""
    evaluation = (store.read(f"{entry.path}/{RESULT_FILE}") or b"") if entry.kind == "best" else b""
    if entry.kind == "best" and not evaluation:
        raise CheckpointError(f"{entry.path} of the store is damaged: {RESULT_FILE} is missing.")
    if digest(data, evaluation) != entry.digest:
        raise CheckpointError(f"{entry.path} of the store is damaged: {META_FILE} does not have its hash.")
    return data, _decode(data, f"{entry.path} of the store"), evaluation


def _decode(meta_bytes: bytes, what: str) -> CheckpointMeta:
    """Raises CheckpointError."""
    try:
        return META.decode(meta_bytes)
    except DECODE_ERRORS as error:
        raise CheckpointError(f"{what} cannot be read: {META_FILE}: {error}.") from None


def _fetch_origin(store: Store, run_dir: RunDir, say: Say) -> None:
    """The `--from` that the run began with: so the command that started the run also resumes it elsewhere."""
    if run_dir.read_origin() or not (origin := store.read(ORIGIN_FILE)):
        return
    try:
        run_dir.write_origin(origin.decode())
    except UnicodeDecodeError:
        say(f"{ORIGIN_FILE} of the store is not UTF-8 text, so that the --from of the run is not known here")


def _fetch_best(store: Store, run_dir: RunDir, say: Say) -> None:
    for entry in whole(store.entries(), "best"):
        target = run_dir.checkpoints / f"fetched-{entry.local_name}"
        if _try(store, entry, target, say):
            replace_best(target, read_regular(target / RESULT_FILE))
            return


def _fetch_past(store: Store, run_dir: RunDir, newest: int, say: Say) -> None:
    """Those that are not here; not those that are newer than the checkpoint that the run goes on from."""
    folder = run_dir.checkpoints / PAST
    for entry in reversed(whole(store.entries(), "past")):
        if entry.version <= newest and not (folder / entry.local_name).exists():
            _try(store, entry, folder / entry.local_name, say)


def _try(store: Store, entry: Entry, target: Path, say: Say) -> bool:
    """False where the entry is damaged, which is said."""
    try:
        fetch_entry(store, entry, target, say)
    except CheckpointError as error:
        say(f"{error} It is left out.")
        return False
    return True


class _Progress:
    """Says every few seconds how much of a folder is here."""

    def __init__(self, total: int, say: Say) -> None:
        self._total = total
        self._say = say
        self._done = 0  # bytes of finished files
        self._next = time.monotonic() + SAY_EVERY_SEC

    def update(self, of_file: int) -> None:
        """`of_file` bytes of the current file are here."""
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + SAY_EVERY_SEC
            self._say(f"fetched {(self._done + of_file) / MIB:.1f} of {self._total / MIB:.1f} MiB")

    def end_file(self, size: int) -> None:
        """The current file is complete."""
        self._done += size
