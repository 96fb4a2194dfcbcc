"""TensorBoard's event files, written row by row.

Not `torch.utils.tensorboard.SummaryWriter`: that writes on a thread, which ends for good at the first row that finds no
room on the disk, and its constructor raises then.
"""

from __future__ import annotations

import io
import math
import os
import socket
import time
from collections.abc import Mapping
from pathlib import Path

from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.record_writer import RecordWriter


def new_event_file(folder: Path, purge_step: int) -> tuple[Path, bytes]:
    """A new file's path, and its first bytes. `purge_step`: rows of older files from there on are not shown (0: all).

    Raises OSError where the folder cannot be made.
    """
    folder.mkdir(parents=True, exist_ok=True)
    seconds, nanoseconds = divmod(time.time_ns(), 10**9)  # files are read in the order of their names
    name = f"events.out.tfevents.{seconds:010d}.{socket.gethostname()}.{os.getpid()}.{nanoseconds:09d}"
    begin = _record(Event(wall_time=time.time(), file_version="brain.Event:2"))
    if purge_step:
        start = SessionLog(status=SessionLog.START)
        begin += _record(Event(wall_time=time.time(), step=purge_step, session_log=start))
    return folder / name, begin


def scalars(row: Mapping[str, float], step: int) -> bytes:
    """One record with all numbers of a row; those that are not finite are left out."""
    values = [Summary.Value(tag=tag, simple_value=value) for tag, value in row.items() if math.isfinite(value)]
    return _record(Event(wall_time=time.time(), step=step, summary=Summary(value=values)))


def _record(event: Event) -> bytes:
    buffer = io.BytesIO()
    RecordWriter(buffer).write(event.SerializeToString())
    return buffer.getvalue()
