"""Samples on disk: append-only files of records, the oldest file deleted when the limit is reached.

    replay/000000000000000  replay/000000000065536 ...      named after the number of their first sample

A file begins with a line that names the format and the game spec; then records, each a header, the columns of one
batch, and nothing else. A file is written aside with its first line and renamed, then appended to by one process only.
A record that is cut off or damaged ends its file: the process was killed while it wrote. Nothing is synced: the files
protect against the death of processes.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simul.common.runtime.private_files import open_to_append, read_regular, replace_file
from simul.learner.io.samples import ReceivedSamples
from simul.learner.replay.sample_layout import SampleLayout

FORMAT = "simul-replay-1"
FORMAT_WITH_ENDING = "simul-replay-2"  # of a game that tells of its end: the column `ending` comes last
HEADER = struct.Struct("<IIQQII")  # MARK, samples, batch, number of the first sample, bytes that follow, CRC-32 of them
MARK = 0x504D4153
MOST_FILE_BYTES = 16 << 30  # of a file that is read
FILES = 16  # the limit is kept by deleting one of so many
COLUMNS = (
    "outcome", "policy_version", "target_count", "observation", "mask", "target_action", "target_probability",
)  # fmt: skip


class ReplayFiles:
    """The files of one run. Disk full stops nothing: what cannot be written is said once, and training goes on."""

    def __init__(self, folder: Path, layout: SampleLayout, limit_bytes: int) -> None:
        self._folder = folder
        self._layout = layout
        self._limit = limit_bytes
        self._columns = (*COLUMNS, "ending") if layout.ending_bytes else COLUMNS
        form = FORMAT_WITH_ENDING if layout.ending_bytes else FORMAT
        self._first_line = f"{form} {layout.spec.fingerprint()}\n".encode()
        self._sizes: dict[Path, int] = {}  # oldest first
        self._open = -1
        self._broken = False

    @property
    def used_bytes(self) -> int:
        """Bytes of all files."""
        return sum(self._sizes.values())

    def load(self, notes: list[str]) -> Iterator[tuple[int, ReceivedSamples]]:
        """Every whole record, oldest first: the number of its first sample, and the samples.

        `notes` gets a sentence for each file that is not of this game, and for each damaged record.
        """
        for path in sorted(self._folder.glob("[0-9]*")):
            try:
                data = read_regular(path, MOST_FILE_BYTES)
            except OSError as error:
                notes.append(self._set_aside(path, f"cannot be read: {error.strerror or error}"))
                continue
            if not data.startswith(self._first_line):
                notes.append(self._set_aside(path, "holds no samples of this game and format"))
                continue
            self._sizes[path] = len(data)
            at = len(self._first_line)
            while (record := self._read(data, at)) is not None:
                at, first, samples = record
                yield first, samples
            if at < len(data):
                notes.append(f"The last {len(data) - at} bytes of {path} are no whole record: they are not read.")

    def _set_aside(self, path: Path, why: str) -> str:
        """Rename a file that is not read, so that no new one takes its place. Returns a sentence about it."""
        aside = path.with_name(f"unread-{path.name}")
        words = f"{path} {why}. Its samples are not used"
        try:
            path.rename(aside)
        except OSError:
            return f"{words}, and a new file may take its place."
        return f"{words}; it is {aside.name} now."

    def append(self, first: int, samples: ReceivedSamples) -> str:
        """Write one batch. Returns why that failed, at the first failure in a row; else an empty string.

        `first`: number of its first sample.
        """
        record = self._record(first, samples)
        try:
            self._make_room(first, len(record))
            if os.write(self._open, record) < len(record):
                raise OSError(0, "the disk is full")
        except OSError as error:
            self._cut_off()
            again, self._broken = self._broken, True
            reason = error.strerror or error
            return "" if again else f"Samples could not be written to {self._folder}: {reason}. Training goes on."
        self._sizes[self._newest] += len(record)
        self._broken = False
        return ""

    def _cut_off(self) -> None:
        """Remove a record that is there in part; where that fails, the next one begins a new file."""
        if self._open >= 0:
            try:
                os.ftruncate(self._open, self._sizes[self._newest])
            except OSError:
                self.close()

    def close(self) -> None:
        """Close the file that is written to."""
        if self._open >= 0:
            os.close(self._open)
            self._open = -1

    def _make_room(self, first: int, size: int) -> None:
        """Begin a file where the newest is long enough, and delete old ones until `size` bytes fit the limit."""
        if len(self._first_line) + size > self._limit:
            raise OSError(0, f"a message has {size:,} bytes, more than replay.disk_mb allows")
        if self._open >= 0 and self._sizes[self._newest] + size > min(self._limit // FILES, MOST_FILE_BYTES):
            self.close()
        if self._open < 0:
            self._begin(first)
        for path in list(self._sizes)[:-1]:
            if self.used_bytes + size <= self._limit:
                return
            path.unlink(missing_ok=True)
            del self._sizes[path]

    def _begin(self, first: int) -> None:
        self._folder.mkdir(exist_ok=True)
        self._newest = self._folder / f"{first:015d}"
        replace_file(self._newest, self._first_line, aside=".aside")
        self._open = open_to_append(self._newest)
        self._sizes.pop(self._newest, None)
        self._sizes[self._newest] = len(self._first_line)

    def _record(self, first: int, samples: ReceivedSamples) -> bytes:
        body = b"".join(np.ascontiguousarray(samples.columns[name]).tobytes() for name in self._columns)
        return HEADER.pack(MARK, samples.length, samples.batch, first, len(body), zlib.crc32(body)) + body

    def _read(self, data: bytes, at: int) -> tuple[int, int, ReceivedSamples] | None:
        """The record at `at`: where the next one begins, the number of its first sample, and its samples; or None."""
        if len(data) < at + HEADER.size:
            return None
        mark, rows, batch, first, size, crc = HEADER.unpack_from(data, at)
        body = memoryview(data)[at + HEADER.size : at + HEADER.size + size]
        if mark != MARK or len(body) < size or zlib.crc32(body) != crc:
            return None
        try:
            columns = self._parse(body, rows)
        except ValueError:  # the checksum does not cover the header
            return None
        return at + HEADER.size + size, first, ReceivedSamples(batch, columns)

    def _parse(self, body: memoryview, rows: int) -> Mapping[str, NDArray[Any]]:
        """Raises ValueError where the columns of so many rows do not fill `body`."""
        spec = self._layout.spec
        shapes: dict[str, tuple[np.dtype[Any], tuple[int, ...]]] = {
            "outcome": (np.dtype(np.float32), (rows,)),
            "policy_version": (np.dtype(np.int64), (rows,)),
            "target_count": (np.dtype(np.int32), (rows,)),
            "observation": (spec.dtype(), (rows, spec.observation_size)),
            "mask": (np.dtype(np.uint8), (rows, self._layout.mask_bytes)),
            "target_action": (np.dtype(np.int32), (-1,)),
            "target_probability": (np.dtype(np.float32), (-1,)),
            "ending": (np.dtype(np.uint8), (rows, self._layout.ending_bytes)),
        }
        columns: dict[str, NDArray[Any]] = {}
        at, entries = 0, 0
        for name in self._columns:
            dtype, shape = shapes[name]
            count = entries if shape == (-1,) else int(np.prod(shape))
            columns[name] = np.frombuffer(body, dtype, count, at).reshape(shape)
            at += count * dtype.itemsize
            if name == "target_count":
                entries = int(columns[name].sum())
        if not rows or at != len(body):
            raise ValueError(f"{rows} samples take {at} bytes, not {len(body)}")
        return columns
