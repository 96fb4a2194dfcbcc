"""TensorBoard's file of a run's curves.

It is not written by `torch.utils.tensorboard.SummaryWriter`: its thread ends for good at the first row that finds no
room on the disk, its constructor then raises, and it needs torch.
"""

from __future__ import annotations

import os
import socket
import struct
import time
from collections.abc import Callable
from pathlib import Path

from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from tensorboard.compat.proto.summary_pb2 import Summary

from simul.launch.monitoring.curves.figures import CurveReport
from simul.launch.monitoring.curves.side_file import SideFile


class TensorBoardWriter:
    """A file of events in `tensorboard/`, a new one in each start of the run.

    `decisions`: where this start begins. TensorBoard hides rows of older files from there on; there are some only
    where a run lost its files of state.
    """

    def __init__(self, root: Path, decisions: float) -> None:
        self._folder = root / "tensorboard"
        self._purge_step = round(decisions) + 1 if decisions else 0
        self._begun: tuple[Path, bytes] | None = None
        self._file = SideFile("TensorBoard's file", self._begin)

    @property
    def lost(self) -> int:
        """Rows dropped."""
        return self._file.lost

    def write(self, report: CurveReport, now: float) -> list[str]:
        """Append a record with all figures."""
        values = [Summary.Value(tag=tag, simple_value=value) for tag, value in report.figures.items()]
        event = Event(wall_time=report.time, step=report.decisions, summary=Summary(value=values))
        return list(filter(None, [self._file.append(_record(event), now)]))

    def close(self, hurry: Callable[[], bool] = lambda: False) -> list[str]:
        """Close the file."""
        self._file.close()
        return []

    def _begin(self) -> tuple[Path, bytes]:
        self._begun = self._begun or new_event_file(self._folder, self._purge_step)
        self._folder.mkdir(parents=True, exist_ok=True)
        return self._begun


def new_event_file(folder: Path, purge_step: int) -> tuple[Path, bytes]:
    """A new file's path and first bytes. `purge_step`: TensorBoard hides rows of older files from there on (0: none).

    Raises OSError where the folder cannot be made.
    """
    folder.mkdir(parents=True, exist_ok=True)
    seconds, nanoseconds = divmod(time.time_ns(), 10**9)  # TensorBoard reads files in the order of their names
    name = f"events.out.tfevents.{seconds:010d}.{socket.gethostname()}.{os.getpid()}.{nanoseconds:09d}"
    begin = _record(Event(wall_time=time.time(), file_version="brain.Event:2"))
    if purge_step:
        start = SessionLog(status=SessionLog.START)
        begin += _record(Event(wall_time=time.time(), step=purge_step, session_log=start))
    return folder / name, begin


def _record(event: Event) -> bytes:
    """A TFRecord: length, its checksum, data, its checksum."""
    # Not RecordWriter of tensorboard.summary, whose import takes seconds.
    from tensorboard.compat.tensorflow_stub.pywrap_tensorflow import masked_crc32c

    data = event.SerializeToString()
    length = struct.pack("<Q", len(data))
    return length + struct.pack("<I", masked_crc32c(length)) + data + struct.pack("<I", masked_crc32c(data))
