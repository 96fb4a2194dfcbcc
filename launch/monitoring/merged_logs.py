"""The logs of all processes of a run as one, by time. A traceback stays with the line that it belongs to."""

from __future__ import annotations

import contextlib
import heapq
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from datetime import datetime
from operator import attrgetter
from pathlib import Path
from types import TracebackType
from typing import IO, NamedTuple, Self

from simul.common.errors import ConfigError
from simul.common.runtime.private_files import open_regular
from simul.common.runtime.terminal_text import printable
from simul.launch.processes.log_rotation import OLD_SUFFIX
from simul.launch.processes.role_process import LOG_NAMES

SUFFIX = ".log"
PREFIX = "simul-"
KINDS = ("learner", "inference", "worker", "supervisor", "evaluation")  # of processes: simul-KIND-0.log
ROLE_KINDS = {role: name.removeprefix(PREFIX) for role, name in LOG_NAMES.items()}
HEAD_BYTES = 256
CHUNK_BYTES = 1 << 16
LONGEST = 1 << 14  # bytes of a line that are shown
WIDTH = max(map(len, KINDS)) + 2  # of a process's name
ROLE_COLOURS = {"learner": "35", "inference": "36", "worker": "32", "supervisor": "34", "evaluation": "33"}
LEVEL_COLOURS = {"WARNING": "33", "ERROR": "31", "CRITICAL": "31"}
DIM = "2"
# As simul.common.runtime.logs writes it, and the supervisor without a level.
_STAMP = re.compile(r"(?P<time>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:[.,]\d{1,6})?) (?P<rest>.*)")


class LogEntry(NamedTuple):
    """A line with a time, and the lines without one that follow it. `time`: seconds since the epoch."""

    time: float
    process: str  # learner-0, inference-0, worker-1, supervisor
    stamp: str  # the time as the line has it; "" where the entry has no such line
    lines: list[str]  # the first without its time


class LogFile:
    """One log file, which may grow, be emptied, or be renamed while its process goes on writing. Raises OSError."""

    def __init__(self, path: Path) -> None:
        self.process = path.name.removesuffix(OLD_SUFFIX).removesuffix(SUFFIX).removeprefix(PREFIX)
        self._old = path.with_name(path.name + OLD_SUFFIX)
        # A buffer would hide that the file was written again.
        self._file = os.fdopen(open_regular(path), "rb", buffering=0)
        self._head = b""  # its first bytes: others when it was emptied and written again
        self._part = b""  # of a line whose end is not written yet
        self._open: LogEntry | None = None  # the last entry: more of its lines may follow
        self._time = 0.0  # of the last entry; times within a file never go back

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def entries(self, *, last: bool) -> Iterator[LogEntry]:
        """What was written since the last call, each entry once.

        The newest entry is held back until a call finds nothing new, because its traceback may still be written;
        `last`: it is not.
        """
        grown = False
        for line in self._lines(last):
            grown = True
            yield from self._add(line)
        if self._open is not None and (last or not grown):
            entry, self._open = self._open, None
            yield entry if entry.time else entry._replace(time=os.fstat(self._file.fileno()).st_mtime)

    def _add(self, line: str) -> Iterator[LogEntry]:
        found = _STAMP.match(line)
        time = _seconds(found["time"]) if found else None
        if found is None or time is None:
            if self._open is None:  # the first lines of a file, or the rest of an entry that was given out
                self._open = LogEntry(self._time, self.process, "", [])
            self._open.lines.append(line)
            return
        self._time = max(self._time, time)
        if self._open is not None:
            yield self._open if self._open.time else self._open._replace(time=self._time)
        self._open = LogEntry(self._time, self.process, found["time"], [found["rest"]])

    def _lines(self, last: bool) -> Iterator[str]:
        """Whole lines that are new."""
        if self._emptied():
            yield from self._rest_of_rotated()
            self._file.seek(0)
            self._head = b""
        yield from self._read_lines(self._file)
        if last and self._part:
            rest, self._part = self._part, b""
            yield _text(rest)
        if len(self._head) < HEAD_BYTES:
            self._head = self._read_head(HEAD_BYTES)

    def _emptied(self) -> bool:
        """Whether it does not hold any more what was read, as after logrotate's copytruncate."""
        shorter = os.fstat(self._file.fileno()).st_size < self._file.tell()
        return shorter or self._read_head(len(self._head)) != self._head

    def _read_lines(self, file: IO[bytes]) -> Iterator[str]:
        """The whole lines from the position of `file` to its end. Of a line at most LONGEST bytes and one are kept."""
        while data := file.read(CHUNK_BYTES):
            *lines, rest = (self._part + data).split(b"\n")
            self._part = rest[: LONGEST + 1]
            yield from map(_text, lines)

    def _rest_of_rotated(self) -> Iterator[str]:
        """Lines that were appended between the last read and the rotation."""
        with contextlib.suppress(OSError), os.fdopen(open_regular(self._old), "rb") as old:
            if old.read(len(self._head)) == self._head:
                old.seek(self._file.tell())
                yield from self._read_lines(old)
                return
        self._part = b""  # the rotated log is not what was read

    def _read_head(self, size: int) -> bytes:
        """The first bytes of what was read."""
        at = self._file.tell()
        self._file.seek(0)
        head = self._file.read(min(size, at))
        self._file.seek(at)
        return head


class MergedLogs:
    """The logs in a folder, those that appear later included. A context manager: it closes the files.

    Args:
        since: entries before it are left out; seconds since the epoch.
        wanted: which processes; see `process_filter`.
    """

    def __init__(self, folder: Path, since: float, wanted: Callable[[str], bool]) -> None:
        self._folder = folder
        self._since = since
        self._wanted = wanted
        self._files: dict[tuple[int, int], LogFile] = {}  # by device and inode: a renamed file is still read

    def entries(self, *, last: bool) -> Iterator[LogEntry]:
        """New entries of all logs, by time; `last` as in `LogFile.entries`."""
        rotated = [] if self._files else sorted(self._folder.glob(f"*{SUFFIX}{OLD_SUFFIX}"))  # later: shown already
        for path in [*rotated, *sorted(self._folder.glob(f"*{SUFFIX}"))]:
            with contextlib.suppress(OSError):  # removed meanwhile
                status = path.stat()
                if (status.st_dev, status.st_ino) not in self._files:
                    self._files[status.st_dev, status.st_ino] = LogFile(path)
        files = [file for file in self._files.values() if self._wanted(file.process)]
        merged = heapq.merge(*(file.entries(last=last) for file in files), key=attrgetter("time"))
        return (entry for entry in merged if entry.time >= self._since)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for file in self._files.values():
            file.close()


def process_filter(roles: Collection[str]) -> Callable[[str], bool]:
    """Whether a process is one of `roles`: `learner`, `env_worker`, `worker`, `worker-1`, ...; none: every process."""
    named = {ROLE_KINDS.get(role, role) for role in roles}
    return lambda process: not named or process in named or kind_of(process) in named


def kind_of(process: str) -> str:
    """`worker` of `worker-1`."""
    return re.sub(r"-\d+$", "", process)


def check_roles(roles: Iterable[str], folder: Path) -> None:
    """Raises ConfigError for a role of which no log can be: neither a kind of process nor one that has a log."""
    there = {path.name.removesuffix(SUFFIX).removeprefix(PREFIX) for path in folder.glob(f"*{SUFFIX}")}
    for role in roles:
        if role not in {*KINDS, *ROLE_KINDS, *there}:
            raise ConfigError(f"--role {role}: expected one of {', '.join(KINDS)}, or of {', '.join(sorted(there))}.")


def format_entry(entry: LogEntry, *, coloured: bool = False) -> list[str]:
    """The lines to print: time, process, text. `coloured`: with the escape sequences of a terminal."""
    first = _without_name(entry) if entry.stamp else entry.lines[0]
    stamp, process = f"{entry.stamp.replace('.', ','):23}", f"{entry.process:{WIDTH}}"
    level = next((word for word in first.split()[:2] if word in LEVEL_COLOURS), "")
    if coloured:
        stamp, process = _painted(stamp, DIM), _painted(process, ROLE_COLOURS.get(kind_of(entry.process), DIM))
        if level:
            first = first.replace(level, _painted(level, LEVEL_COLOURS[level]), 1)
    below = [f"{'':23} {process} {line}".rstrip() for line in entry.lines[1:]]
    return [f"{stamp} {process} {first}".rstrip(), *below]


def _without_name(entry: LogEntry) -> str:
    """Its first line without the name of the process, which may be followed by the machine: `@10.0.0.2`."""
    line, name = entry.lines[0], f"{PREFIX}{entry.process}"
    return line.removeprefix(name if line.startswith(f"{name}@") else f"{name} ")


def _painted(text: str, colour: str) -> str:
    return f"\x1b[{colour}m{text}\x1b[0m"


def _seconds(stamp: str) -> float | None:
    try:
        return datetime.fromisoformat(stamp.replace(",", ".")).timestamp()
    except (ValueError, OverflowError, OSError):  # such as 2026-13-45
        return None


def _text(line: bytes) -> str:
    """Without what would move a terminal's cursor, and cut where it is longer than LONGEST."""
    cut = f" ... (cut after {LONGEST:,} bytes)" if len(line) > LONGEST else ""
    return printable(line[:LONGEST].decode(errors="replace").rstrip("\r").replace("\t", "    ")) + cut
