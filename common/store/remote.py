"""One store: the few operations on files that the mirror and the fetch need, over fsspec; each raises StoreError."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from simul.common.checkpoints.meta import META_FILE, WEIGHTS_BYTES
from simul.common.errors import StoreError
from simul.common.runtime.extras import install_extra
from simul.common.runtime.private_files import MOST_BYTES, read_regular
from simul.common.runtime.terminal_text import printable
from simul.common.store.layout import OWNER_FILE, Entry, Owner, entries

EXTRAS = {"s3": "s3", "s3a": "s3", "gs": "gcs", "gcs": "gcs"}  # of Simul, by scheme
SMALL_SEC = 30.0  # limit of a request for a small file, and for the begin of a large one
SLOWEST_BYTES_PER_SEC = 128 * 1024  # a slower transfer counts as one that hangs
# Object stores have no folders; the local file system and memory make them.
_NO_FOLDERS = frozenset((*EXTRAS, "abfs", "abfss", "az", "adl", "oci", "oss", "file", "local", "memory"))
_FILE = {"auto_mkdir": True}
# One attempt each: the mirror waits between attempts. Limits in seconds.
_S3 = {"config_kwargs": {"connect_timeout": 10, "read_timeout": 20, "retries": {"total_max_attempts": 1}}}
_OPTIONS: dict[str, dict[str, Any]] = {"file": _FILE, "local": _FILE, "s3": _S3, "s3a": _S3}
_CREDENTIALS = ("Credential", "Auth", "Token", "Signature", "ProfileNotFound")  # parts of names of errors
OWNER = msgspec.json.Decoder(Owner)  # made here: msgspec may not meet a new type in two threads at once
_LONGEST = 200  # characters of a library's error in a sentence
_LOCAL_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)


class Store:
    """A folder of a file system. Paths are relative to it, with slashes."""

    def __init__(self, url: str) -> None:
        """Opens no connection. Raises StoreError: an unknown scheme, or its package is not installed."""
        self.url = url.rstrip("/")
        scheme = url.partition("://")[0]
        with self._sentences():
            import fsspec
            from fsspec.asyn import AsyncFileSystem
            from fsspec.implementations.local import LocalFileSystem

            options = {"skip_instance_cache": True, **_OPTIONS.get(scheme, {})}  # reads the credentials anew
            self._fs, self._root = fsspec.core.url_to_fs(self.url, **options)
            self._local = isinstance(self._fs, LocalFileSystem)
            self._limited = isinstance(self._fs, AsyncFileSystem)  # only these take a time limit
        self._makes_folders = scheme not in _NO_FOLDERS
        if scheme in ("s3", "s3a"):
            self._fs.retries = 1

    def files(self) -> dict[str, int]:
        """All files, with their sizes in bytes."""
        with self._sentences():
            self._fs.invalidate_cache()
            try:
                if self._limited:
                    found = self._fs.find(self._root, detail=True, **self._limit(0))
                else:
                    found = dict(self._walk(self._fs.ls(self._root, detail=True)))
            except FileNotFoundError:
                return {}
        start = len(self._root.rstrip("/")) + 1
        return {
            name[start:]: int(info.get("size") or 0)
            for name, info in found.items()
            if info.get("type", "file") == "file"  # not a FIFO of a disk, which would be waited for
        }

    def _walk(self, listed: list[dict[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
        """Path and facts of everything below but folders. To fsspec's, one that cannot be read is an empty one."""
        for info in listed:
            if info["type"] != "directory":
                yield info["name"], info
                continue
            with contextlib.suppress(FileNotFoundError):  # removed meanwhile
                yield from self._walk(self._fs.ls(info["name"], detail=True))

    def entries(self) -> dict[Entry, frozenset[str]]:
        """The checkpoints' folders, and the files in each."""
        return entries(self.files())

    def read(self, name: str) -> bytes | None:
        """A small file; None where it does not exist. Raises StoreError where it is larger than MOST_BYTES."""
        path = self._path(name)
        with self._sentences():
            try:
                if self._local:
                    return read_regular(Path(path))
                self._fs.invalidate_cache()
                self._refuse_larger(name, int(self._fs.info(path, **self._limit(0)).get("size") or 0), MOST_BYTES)
                return bytes(self._fs.cat_file(path, **self._limit(0)))
            except FileNotFoundError:
                return None

    def read_begin(self, name: str, count: int) -> bytes:
        """The first `count` bytes of a file. Raises StoreError, also where it does not exist."""
        with self._sentences():
            return bytes(self._fs.cat_file(self._path(name), start=0, end=count, **self._limit(count)))

    def write(self, name: str, data: bytes) -> None:
        """Write a small file."""
        with self._sentences():
            self._make_parent(name)
            self._fs.pipe_file(self._path(name), data, **self._limit(len(data)))

    def upload(self, file: Path, name: str) -> None:
        """Copy a file into the store, where it appears whole or not at all."""
        path = self._path(name)
        aside = f"{path}.part" if self._local else path
        with self._sentences():
            self._make_parent(name)
            self._fs.put_file(str(file), aside, **self._limit(file.stat().st_size))
            if self._local:
                os.replace(aside, path)

    def download(self, name: str, size: int, file: Path, on_progress: Callable[[int], object]) -> None:
        """Copy a file of the store to `file`; `on_progress` gets the bytes so far, where the file system tells them.

        `size`: in `files`; what has more is not read to its end.

        Raises OSError where the disk here is full or read-only, StoreError also for more than WEIGHTS_BYTES.
        """
        from fsspec import AbstractFileSystem, Callback

        def said(_size: int | None, value: int, **_: Any) -> None:
            self._refuse_larger(name, value, size)
            on_progress(value)

        self._refuse_larger(name, size, WEIGHTS_BYTES)
        callback = Callback(hooks={"said": said})
        get_file = self._fs.get_file
        if self._local:  # its own copies whatever is there, and tells nothing meanwhile
            get_file = partial(AbstractFileSystem.get_file, self._fs)
        with self._sentences(of_disk_here=True):
            get_file(self._path(name), str(file), callback=callback, **self._limit(size))

    def remove(self, entry: Entry) -> None:
        """Remove a folder, meta.json first: what is left of it after a kill is not whole."""
        with self._sentences():
            for part in (lambda: self._fs.rm_file(self._path(f"{entry.path}/{META_FILE}")),
                         lambda: self._fs.rm(self._path(entry.path), recursive=True, **self._limit(0))):  # fmt: skip
                with contextlib.suppress(FileNotFoundError):
                    part()

    def owner(self) -> Owner | None:
        """owner.json; None where there is none, or a torn one."""
        data = self.read(OWNER_FILE)
        try:
            return None if data is None else OWNER.decode(data)
        except msgspec.DecodeError:
            return None

    def write_owner(self, owner: Owner) -> None:
        """Replace owner.json."""
        self.write(OWNER_FILE, msgspec.json.encode(owner))

    def _refuse_larger(self, name: str, size: int, most: int) -> None:
        """Raises StoreError."""
        if size > most:
            raise StoreError(
                f"The file {printable(name)} of the store {self.url} is larger than the {most:,} bytes that are read.",
                refused=True,
            )

    def _path(self, name: str) -> str:
        return f"{self._root.rstrip('/')}/{name}"

    def _make_parent(self, name: str) -> None:
        if self._makes_folders:
            self._fs.makedirs(self._path(name).rpartition("/")[0], exist_ok=True)

    def _limit(self, size: int) -> dict[str, float]:
        """Keyword arguments that end a call for `size` bytes which hangs."""
        return {"timeout": SMALL_SEC + size / SLOWEST_BYTES_PER_SEC} if self._limited else {}

    @contextlib.contextmanager
    def _sentences(self, *, of_disk_here: bool = False) -> Iterator[None]:
        """Errors of the library become StoreError, with what to do; `of_disk_here`: except those of a full disk."""
        try:
            yield
        except StoreError:
            raise
        except Exception as error:
            if of_disk_here and isinstance(error, OSError) and error.errno in _LOCAL_DISK:
                raise
            sentence, refused = explain(self.url, error)
            raise StoreError(sentence, refused=refused) from error


def explain(url: str, error: Exception) -> tuple[str, bool]:
    """What an error of fsspec or of a backend means for the store `url`, and whether trying again is useless."""
    scheme = url.partition("://")[0]
    kind, words = type(error).__name__, " ".join(str(error).split())[:_LONGEST].rstrip(".")
    if isinstance(error, ImportError):
        extra = EXTRAS.get(scheme)
        how = f"Run: {install_extra(extra)}" if extra else f"Install the package that it names: {words}."
        return f"The store {url} needs a package that is not installed. {how}", True
    if isinstance(error, PermissionError) or any(part in kind for part in _CREDENTIALS) or _status(error) in (401, 403):
        who = {"s3": "AWS", "gcs": "Google Cloud"}.get(EXTRAS.get(scheme, ""))
        how = f"Set the credentials as every {who} program takes them" if who else "Check who may read and write there"
        return (
            f"The store {url} refuses these credentials, or finds none ({words or kind}). {how}; see docs/store.md.",
            True,
        )
    if isinstance(error, FileNotFoundError) or _status(error) == 404:
        return f"The store {url} does not exist ({words}). Create the bucket or the folder, or correct the name.", True
    if isinstance(error, ValueError) and "not known" in words:
        return (
            f"The store {url} has an unknown scheme. Use one such as s3://bucket/run, gs://bucket/run or file:///mnt/disk/run.",
            True,
        )
    return f"The store {url} cannot be reached ({words or kind}).", False


def _status(error: Exception) -> int:
    """The HTTP status that an error of gcsfs or aiohttp carries; 0 for none."""
    code = getattr(error, "code", None) or getattr(error, "status", None) or 0
    return int(code) if str(code).isdecimal() else 0
