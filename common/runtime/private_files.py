"""Files and folders where others may have been: opened without waiting, checked before they are used.

What Simul writes into a run directory goes through `open_to_append`, `open_to_change`, `open_new` and `replace_file`,
which follow no link: the directory may be an unpacked one of others.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import sys
from pathlib import Path

from simul.common.errors import ConfigError

OTHERS = 0o077  # permissions of group and everybody
OTHERS_WRITE = 0o022
MOST_BYTES = 64 * 2**20  # of a file without weights or samples, unless its reader knows less
CLOCK_GRAIN_SEC = 0.1  # a file system's clock may lag a little behind time.time()
_BINARY = getattr(os, "O_BINARY", 0)  # Windows


def open_regular(path: Path, *, own: bool = False, links: bool = True) -> int:
    """A descriptor to read a regular file; never waits, as a FIFO would. Links are followed unless `own`.

    Args:
        own: the file must be of this user and no link, as in a folder that everybody may write to.
        links: False: a link is refused, whoever made it.

    Raises OSError.
    """
    windows = sys.platform == "win32"
    flags = 0 if windows else os.O_NONBLOCK | os.O_CLOEXEC | (os.O_NOFOLLOW if own or not links else 0)
    descriptor = _opened(path, os.O_RDONLY | flags)
    found = os.fstat(descriptor)
    fault = 0, ""
    if stat.S_ISDIR(found.st_mode):
        fault = errno.EISDIR, os.strerror(errno.EISDIR)
    elif not stat.S_ISREG(found.st_mode):
        fault = errno.EINVAL, "not a regular file"
    elif own and not windows and found.st_uid != os.geteuid():
        fault = errno.EPERM, "a file of another user"
    if fault[0]:
        os.close(descriptor)
        raise OSError(*fault, str(path))
    return descriptor


def open_to_append(path: Path) -> int:
    """A descriptor to append to a regular file, made where there is none; never waits, and follows no link.

    Raises OSError.
    """
    return _open_to_write(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)


def open_to_change(path: Path) -> int:
    """A descriptor to read, write and truncate a regular file that is there; never waits, and follows no link.

    Raises OSError.
    """
    return _open_to_write(path, os.O_RDWR)


def open_new(path: Path, mode: int = 0o666) -> int:
    """A descriptor to write a new file; what is at `path`, which may be a link, is removed first.

    `mode` applies before the umask. Raises OSError.
    """
    path.unlink(missing_ok=True)
    unix = 0 if sys.platform == "win32" else os.O_NOFOLLOW | os.O_CLOEXEC
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY | unix, mode)


def replace_file(path: Path, data: bytes, *, mode: int = 0o666, aside: str = "") -> None:
    """Write a file aside and rename it: a reader never sees a part of it, and a full disk leaves the old one.

    Args:
        mode: of the new file, before the umask.
        aside: name of the unfinished file, where one process only writes `path`; default: one of this process.

    Raises OSError.
    """
    unfinished = path.with_name(aside or f".{path.name}.{os.getpid()}")
    try:
        with os.fdopen(open_new(unfinished, mode), "wb") as file:
            file.write(data)
        unfinished.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            unfinished.unlink()
        raise


def _opened(path: Path, flags: int) -> int:
    try:
        return os.open(path, flags, 0o666)
    except OSError as error:
        if error.errno == errno.ELOOP and path.is_symlink() and flags & getattr(os, "O_NOFOLLOW", 0):
            raise OSError(errno.ELOOP, "a symbolic link", str(path)) from None
        raise


def _open_to_write(path: Path, flags: int) -> int:
    unix = 0 if sys.platform == "win32" else os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = _opened(path, flags | _BINARY | unix)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    return descriptor


def read_regular(path: Path, most_bytes: int = MOST_BYTES, *, own: bool = False, links: bool = True) -> bytes:
    """The content of a regular file of at most `most_bytes`; see `open_regular`. Raises OSError."""
    with os.fdopen(open_regular(path, own=own, links=links), "rb") as file:
        size = os.fstat(file.fileno()).st_size
        data = file.read(min(size, most_bytes) + 1)  # takes so much memory first, however small the file is
    if len(data) > most_bytes:
        raise OSError(errno.EFBIG, f"larger than {most_bytes} bytes", str(path))
    return data


def is_own_folder(path: Path) -> bool:
    """Whether `path` is a folder of this user, and no link. Raises OSError where it is missing."""
    found = path.lstat()
    return stat.S_ISDIR(found.st_mode) and (sys.platform == "win32" or found.st_uid == os.geteuid())


def written_since(path: Path, moment: float) -> bool:
    """False for a file that is older than `moment`, of time.time(), or missing."""
    try:
        return path.stat().st_mtime >= moment - CLOCK_GRAIN_SEC
    except OSError:
        return False


def is_private_folder(path: Path) -> bool:
    """Whether `path` is a folder of this user, no link, that no other may enter. Raises OSError: it is missing."""
    return is_own_folder(path) and (sys.platform == "win32" or not path.lstat().st_mode & OTHERS)


def make_private_folder(path: Path) -> None:
    """Make a folder with mode 0700, or take the one that is there. Raises ConfigError for another user's, OSError."""
    try:
        path.mkdir(mode=0o700, parents=True)
    except FileExistsError:
        check_private_folder(path)


def check_private_folder(path: Path) -> None:
    """Raises ConfigError where others own the folder or may enter it, OSError where it is missing."""
    if not is_private_folder(path):
        raise ConfigError(
            f"{path} is not a folder that only this user may enter (mode 0700): another user may listen there. "
            "Remove it, or choose another --run-dir."
        )
