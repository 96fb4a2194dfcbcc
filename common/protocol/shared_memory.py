"""Files without a name that lie in memory: gone with the last process that has them open, a kill -9 included.

Whoever made one tells others its path under /proc: processes of the same user on this machine can open it there while
its maker has it. Seals are promises that the system keeps: the size of none can be changed. The system numbers such
files and gives no number twice: of one that can be written no more, the number says what is in it. Linux only.
"""

from __future__ import annotations

import mmap
import os
import stat

from simul.common.protocol.messages import SharedMemory

ALIGNMENT = 64  # bytes: where a block may begin, and what lies before the first: the nonce
LOCAL = "ipc://", "tcp://127.", "tcp://[::1]"


def can_share_memory(endpoint: str) -> bool:
    """Whether memory can be had here, and by whoever is at the other end of `endpoint`."""
    return hasattr(os, "memfd_create") and endpoint.startswith(LOCAL)


def anonymous_file(begin: bytes, size: int, *, writable: bool) -> int:
    """The descriptor of a file of `size` bytes: `begin`, then zeros. Not `writable`: nobody can change a byte of it.

    Raises OSError where the system has none to give.
    """
    import fcntl  # not there on Windows

    file = os.memfd_create("simul", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        os.ftruncate(file, size)
        with open(file, "wb", closefd=False) as writer:
            writer.write(begin)
        seals = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
        fcntl.fcntl(file, fcntl.F_ADD_SEALS, seals if writable else seals | fcntl.F_SEAL_WRITE)
    except OSError:
        os.close(file)
        raise
    return file


def shared_path(file: int) -> str:
    """Where processes on this machine can open a file of this one."""
    return f"/proc/{os.getpid()}/fd/{file}"


def file_number(file: int) -> int:
    """The number that tells this file from all others."""
    return os.fstat(file).st_ino


def cannot_shrink(file: int) -> bool:
    """The system lets nobody make this file shorter. False of files that cannot be sealed."""
    import fcntl  # not there on Windows

    try:
        return bool(fcntl.fcntl(file, fcntl.F_GET_SEALS) & fcntl.F_SEAL_SHRINK)
    except OSError:  # no anonymous file
        return False


def open_sealed(path: str, number: int) -> int:
    """A descriptor of the anonymous file at `path`, which nobody can change any more.

    Raises:
        OSError: it is gone, its maker is another user's, or runs elsewhere.
        ValueError: another file is there.
    """
    import fcntl  # not there on Windows

    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)  # a pipe that is there by chance stops nobody
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode) or file_number(file) != number:
            raise ValueError("another file is there")
        wanted = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_SHRINK
        if fcntl.fcntl(file, fcntl.F_GET_SEALS) & wanted != wanted:
            raise ValueError("the file that is there can be changed")
    except (OSError, ValueError):
        os.close(file)
        raise
    return file


def map_memory(grant: SharedMemory, *, writable: bool) -> mmap.mmap:
    """The bytes that a server granted. Raises OSError or ValueError where they are not to be had here.

    Only a file that nobody can cut short: reading behind the end of a mapped file is a SIGBUS.
    """
    file = os.open(grant.path, (os.O_RDWR if writable else os.O_RDONLY) | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode) or status.st_size != grant.size or not cannot_shrink(file):
            raise ValueError("another file than the server's has this name here")
        memory = mmap.mmap(file, grant.size, access=mmap.ACCESS_WRITE if writable else mmap.ACCESS_READ)
    finally:
        os.close(file)
    if memory[: len(grant.nonce)] != grant.nonce.encode():
        raise ValueError("another server's memory has this name here")
    return memory
