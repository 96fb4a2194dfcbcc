"""A process with two non-blocking pipes, to its stdin and from its stdout."""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
from collections.abc import Sequence

PIPE_BYTES = 1 << 20
READ_BYTES = 1 << 20
STDERR_TAIL_BYTES = 8192
STDERR_TAIL_LINES = 12


class PipedProcess:
    """Runs from the constructor, which raises OSError, to `close`.

    Attributes:
        stdin, stdout: file descriptors of our ends, to poll.
    """

    def __init__(self, command: Sequence[str], *, keep_stderr: bool = True) -> None:
        """`keep_stderr`: for `stderr_tail`; else it goes where this process writes its own."""
        # A pipe that is not drained could block the process.
        self._stderr = tempfile.TemporaryFile() if keep_stderr else None  # noqa: SIM115
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._stderr, bufsize=0,
            start_new_session=True,  # a terminal's Ctrl-C is for the supervisor to handle
        )  # fmt: skip
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self.stdin, self.stdout = self._process.stdin.fileno(), self._process.stdout.fileno()
        for fd in (self.stdin, self.stdout):
            os.set_blocking(fd, False)
            _enlarge_pipe(fd)

    @property
    def pid(self) -> int:
        return self._process.pid

    def write_from(self, unsent: bytearray) -> None:
        """Writes as much as the pipe takes, and removes it from `unsent`."""
        try:
            sent = os.write(self.stdin, unsent)
        except BlockingIOError:
            return
        except BrokenPipeError:
            return  # the next read reports it
        del unsent[:sent]

    def read_into(self, heard: bytearray) -> bool:
        """Appends what is in the pipe; True = the other end is closed."""
        while True:
            try:
                chunk = os.read(self.stdout, READ_BYTES)
            except BlockingIOError:
                return False
            if not chunk:
                return True
            heard += chunk
            if len(chunk) < READ_BYTES:
                return False

    def exit_code(self) -> int:
        """Waits for the end."""
        return self._process.wait()

    def stderr_tail(self) -> str:
        """The last lines of stderr."""
        if self._stderr is None:
            return ""
        with os.fdopen(os.dup(self._stderr.fileno()), "rb") as stream:
            size = stream.seek(0, os.SEEK_END)
            stream.seek(max(0, size - STDERR_TAIL_BYTES))
            lines = stream.read().decode("utf-8", "replace").splitlines()
        return "\n".join(lines[-STDERR_TAIL_LINES:])

    def close(self, grace_sec: float) -> None:
        """Closes the pipes, which should end the process; kills it after `grace_sec`."""
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()
        process.stdout.close()  # a process blocked in write wakes up with a broken pipe
        try:
            process.wait(grace_sec)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if self._stderr is not None:
            self._stderr.close()


def _enlarge_pipe(fd: int) -> None:
    """Fewer wake-ups with a larger pipe; Linux only, and only within the user's limit."""
    try:
        import fcntl

        fcntl.fcntl(fd, fcntl.F_SETPIPE_SZ, PIPE_BYTES)  # pyright: ignore[reportAttributeAccessIssue]
    except (ImportError, AttributeError, OSError):
        return
