"""Anonymous files in memory that processes of one user on one machine share. Linux only.

A file is freed with the last process that has it open, even after kill -9. Its creator publishes its path under /proc,
which others can open while the creator keeps it open. Seals fix the size of every file, and the content of those not
writable. The kernel gives no inode number twice, so the number of a file sealed against writing identifies its content.
"""

from __future__ import annotations

import mmap
import os
import stat

from simul.common.protocol.messages import SharedMemory

ALIGNMENT = 64  # bytes: multiple at which blocks begin, and room before the first block, for the nonce
LOCAL = "ipc://", "tcp://127.", "tcp://[::1]"


def can_share_memory(endpoint: str) -> bool:
    """True if this system has anonymous files and the peer at `endpoint` is on this machine."""
    return hasattr(os, "memfd_create") and endpoint.startswith(LOCAL)


def anonymous_file(begin: bytes, size: int, *, writable: bool) -> int:
    """The descriptor of a new file of `size` bytes: `begin`, then zeros. Not `writable`: sealed against writing.

    Raises OSError where the system has no memory or descriptor left.
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
    """Path at which other processes on this machine can open a file of this process."""
    return f"/proc/{os.getpid()}/fd/{file}"


def file_number(file: int) -> int:
    """Inode number, which identifies the file."""
    return os.fstat(file).st_ino


def cannot_shrink(file: int) -> bool:
    """True if the file is sealed against shrinking; False for files that cannot be sealed."""
    import fcntl  # not there on Windows

    try:
        return bool(fcntl.fcntl(file, fcntl.F_GET_SEALS) & fcntl.F_SEAL_SHRINK)
    except OSError:  # not an anonymous file
        return False


def open_sealed(path: str, number: int) -> int:
    """A descriptor of the anonymous file at `path`, which is sealed against writing and shrinking.

    Raises:
        OSError: the file is gone, or its creator is another user or runs on another machine.
        ValueError: another file is at the path.
    """
    import fcntl  # not there on Windows

    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)  # a pipe at this path does not block
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode) or file_number(file) != number:
            raise ValueError("another file has this path")
        wanted = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_SHRINK
        if fcntl.fcntl(file, fcntl.F_GET_SEALS) & wanted != wanted:
            raise ValueError("the file at this path is not sealed")
    except (OSError, ValueError):
        os.close(file)
        raise
    return file


def map_memory(grant: SharedMemory, *, writable: bool) -> mmap.mmap:
    """Map the memory that a server granted. Raises OSError or ValueError where it cannot be opened here.

    The file must be sealed against shrinking: reading behind the end of a mapped file is a SIGBUS.
    """
    file = os.open(grant.path, (os.O_RDWR if writable else os.O_RDONLY) | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode) or status.st_size != grant.size or not cannot_shrink(file):
            raise ValueError("a file that is not the server's has this path")
        memory = mmap.mmap(file, grant.size, access=mmap.ACCESS_WRITE if writable else mmap.ACCESS_READ)
    finally:
        os.close(file)
    if memory[: len(grant.nonce)] != grant.nonce.encode():
        raise ValueError("another server's memory has this path")
    return memory
