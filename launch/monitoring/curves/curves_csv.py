"""Writers of a run's curves: curves.csv, TensorBoard, Weights & Biases, MLflow, and a callback of the user's.

A writer may fail and recover without ending the run. Files of our own are written by the supervisor's loop, each row
whole or not at all. What is not ours (`BackgroundWriter`) runs in a thread, so that it may be slow or hang.

TensorBoard's file is not written by `torch.utils.tensorboard.SummaryWriter`: its thread ends for good at the first row
that finds no room on the disk, its constructor then raises, and it needs torch.
"""

from __future__ import annotations

import csv
import hashlib
import io
import math
import os
import queue
import socket
import struct
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from tensorboard.compat.proto.summary_pb2 import Summary

from simul.common.runtime.private_files import open_regular, open_to_append, open_to_change, replace_file
from simul.launch.monitoring.curves.callback_figures import CallbackFigures
from simul.launch.monitoring.curves.figures import CURVES, CurvePosition, CurveReport

CSV_NAME = "curves.csv"
BASE_COLUMNS = ("decisions", "training_sec", "time")
MOST_WAITING = 3600  # rows kept for a file that cannot be written: hours
SAY_EVERY_SEC = 60.0  # a failure that lasts is repeated so often
MOST_QUEUED = 600  # reports that a slow writer is behind; beyond, the oldest are dropped
FINISH_SEC = 20.0  # what a writer in the background has at the end of a run
HANGS_SEC = 30.0  # a writer that is at one report for so long is said to hang
HANGING_FINISH_SEC = 1.0  # what it has at the end of a run
ATTEMPTS = 3  # to hand a report to a service, 1 s and 2 s apart; then the service is dropped
Write = Callable[[CurveReport], None]


class CurveWriter(Protocol):
    """Takes each report. Neither method raises; both return sentences for the view."""

    @property
    def lost(self) -> int:
        """Reports dropped since the start."""

    def write(self, report: CurveReport, now: float) -> list[str]:
        """Write a report; `now` from time.monotonic()."""

    def close(self, hurry: Callable[[], bool]) -> list[str]:
        """Finish; `hurry()` turns true where nothing may be waited for any longer."""


class CurveLog:
    """Several writers as one."""

    def __init__(self, writers: Sequence[CurveWriter]) -> None:
        self._writers = writers

    @property
    def lost(self) -> int:
        """Rows dropped, of all writers together."""
        return sum(writer.lost for writer in self._writers)

    def write(self, report: CurveReport) -> list[str]:
        """Hand a report to every writer. Returns what they have to say."""
        now = time.monotonic()
        return [sentence for writer in self._writers for sentence in writer.write(report, now)]

    def close(self, hurry: Callable[[], bool] = lambda: False) -> list[str]:
        """Finish all."""
        return [sentence for writer in self._writers for sentence in writer.close(hurry)]


class SideFile:
    """Rows at the end of a file, each whole or not at all. `now` from time.monotonic().

    While the file cannot be written, its rows wait; the oldest are dropped and counted beyond MOST_WAITING, and a
    sentence says so once a minute. Waiting rows are written as soon as the file can be.

    Attributes:
        lost: rows dropped since the start.
    """

    def __init__(self, name: str, begin: Callable[[], tuple[Path, bytes]]) -> None:
        """`name`: in sentences. `begin`: the file and its header, written where it is empty; may raise OSError."""
        self.lost = 0
        self._name = name
        self._begin = begin
        self._waiting: deque[bytes] = deque()
        self._file = -1
        self._broken = False
        self._say_at = 0.0

    def append(self, row: bytes, now: float) -> str:
        """Write the waiting rows and this one. A sentence on a failure and on the first success after it."""
        self._waiting.append(row)
        if len(self._waiting) > MOST_WAITING:
            self._waiting.popleft()
            self.lost += 1
        try:
            self._write()
        except OSError as error:
            self.close()
            return self._failed(error, now)
        rows = len(self._waiting)
        self._waiting.clear()
        if not self._broken:
            return ""
        self._broken = False
        return f"{self._name} is written again, with the {rows} rows that waited; {self.lost} were lost."

    def close(self) -> None:
        """Close the file; the next row opens it again."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _write(self) -> None:
        data = b"".join(self._waiting)
        if self._file < 0:
            path, header = self._begin()
            self._file = open_to_append(path)
            if os.fstat(self._file).st_size == 0:
                data = header + data
        size = os.fstat(self._file).st_size
        try:
            while data:
                data = data[os.write(self._file, data) :]
        except OSError:
            os.ftruncate(self._file, size)  # remove a row that was written in part
            raise

    def _failed(self, error: OSError, now: float) -> str:
        if self._broken and now < self._say_at:
            return ""
        self._broken, self._say_at = True, now + SAY_EVERY_SEC
        waiting = f"{len(self._waiting)} rows wait for it, {self.lost} were lost"
        return f"{self._name} could not be written: {error.strerror or error}. {waiting}. Training goes on."


class CsvWriter:
    """curves.csv: one row a report, one column a name. A name that is new gets a column at the end.

    Earlier rows then are shorter than the header: their last cells are empty. A resumed run keeps the columns.
    """

    def __init__(self, root: Path) -> None:
        self._path = root / CSV_NAME
        self._columns: list[str] = []
        self._file = SideFile(CSV_NAME, self._begin)

    @property
    def lost(self) -> int:
        """Rows dropped."""
        return self._file.lost

    def write(self, report: CurveReport, now: float) -> list[str]:
        """Append a row."""
        if not self._columns:
            self._columns = read_header(self._path) or [*BASE_COLUMNS, *(name for name in CURVES if "<" not in name)]
        if new := [name for name in report.figures if name not in self._columns]:
            self._columns += new
            self._file.close()  # `_begin` extends the header
        cells: Mapping[str, float] = {
            **report.figures, "decisions": report.decisions, "training_sec": report.training_sec, "time": report.time
        }  # fmt: skip
        row = _csv_line(_cell(cells[name]) if name in cells else "" for name in self._columns)
        return list(filter(None, [self._file.append(row, now)]))

    def close(self, hurry: Callable[[], bool] = lambda: False) -> list[str]:
        """Close the file."""
        self._file.close()
        return []

    def _begin(self) -> tuple[Path, bytes]:
        header = _csv_line(self._columns)
        if self._path.exists() and self._path.stat().st_size:
            _keep_whole_rows(self._path)
            old = read_header(self._path)
            if not old or old != self._columns[: len(old)]:
                _set_aside(self._path)
            elif old != self._columns:
                _replace_header(self._path, header)
        return self._path, header


def read_header(path: Path) -> list[str]:
    """The columns of a curves.csv; [] where there is none, or the file is something else."""
    try:
        with os.fdopen(open_regular(path), encoding="utf-8", errors="replace", newline="") as file:
            columns = next(csv.reader([file.readline()]), [])
    except (OSError, csv.Error):  # Error: a field of more than 131,072 characters
        return []
    return columns if tuple(columns[: len(BASE_COLUMNS)]) == BASE_COLUMNS else []


def last_position(root: Path) -> CurvePosition:
    """Where the curves of a run end; the beginning where there are none."""
    path, found = root / CSV_NAME, CurvePosition()
    if not read_header(path):
        return found
    try:
        with os.fdopen(open_regular(path), "rb") as file:
            file.seek(max(0, path.stat().st_size - 65_536))
            tail = file.read().decode(errors="replace").splitlines()[1:]  # the first one may be cut
    except OSError:
        return found
    for line in tail:
        try:
            decisions, training_sec = (float(cell) for cell in line.split(",")[:2])
        except ValueError:
            continue
        found = CurvePosition(max(found.decisions, decisions), max(found.training_sec, training_sec))
    return found


def past_evaluations(root: Path) -> list[dict[str, float]]:
    """The evaluations in the curves of a run, oldest first: figures by their name behind `evaluation/`.

    Each has a `score`; what is not known is nan. [] where there are no curves, or they cannot be read.
    """
    path, prefix = root / CSV_NAME, "evaluation/"
    columns = read_header(path)
    places = {name.removeprefix(prefix): at for at, name in enumerate(columns) if name.startswith(prefix)}
    if "score" not in places:
        return []
    try:
        with os.fdopen(open_regular(path), encoding="utf-8", errors="replace", newline="") as file:
            rows = csv.reader(line for line in file if line.endswith("\n"))  # a killed run may have left half a line
            known = ({name: read_cell(row[at]) for name, at in places.items() if at < len(row)} for row in rows)
            return [figures for figures in known if math.isfinite(figures.get("score", math.nan))]
    except (OSError, csv.Error):
        return []


def read_cell(cell: str) -> float:
    """A number of curves.csv; nan where the cell is empty, or no number."""
    try:
        return float(cell)
    except ValueError:
        return math.nan


def _cell(value: float) -> str:
    return f"{value:.0f}" if float(value).is_integer() and abs(value) < 1e15 else f"{value:.6g}" if abs(
        value
    ) < 1e9 else f"{value:.3f}"  # fmt: skip


def _csv_line(values: Iterable[str]) -> bytes:
    text = io.StringIO()
    csv.writer(text).writerow(values)
    return text.getvalue().encode()


def _keep_whole_rows(path: Path) -> None:
    """Remove a last row that a killed supervisor left in part."""
    with os.fdopen(open_to_change(path), "rb+") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - 65_536))
        tail = file.read()
        if not tail.endswith(b"\n"):
            file.truncate(size - len(tail) + tail.rfind(b"\n") + 1)


def _set_aside(path: Path) -> None:
    """Rename a file that has other columns, or none."""
    number = 1
    while (aside := path.with_suffix(f".{number}.csv")).exists():
        number += 1
    path.rename(aside)


def _replace_header(path: Path, header: bytes) -> None:
    """Write the file anew with a longer header. Raises OSError and then leaves the old one."""
    with os.fdopen(open_regular(path), "rb") as file:
        rows = file.read().partition(b"\n")[2]
    replace_file(path, header + rows)


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


class BackgroundWriter:
    """Hands each report to `write` in a thread. What it raises is said once, and nothing more is handed to it.

    Args:
        name: in sentences.
        start: called in the thread, before the first report; returns `write` and what ends it.
        attempts: how often `write` may fail in a row before it is dropped.
    """

    def __init__(self, name: str, start: Callable[[], tuple[Write, Callable[[], None]]], attempts: int = 1) -> None:
        self._lost = 0
        self._name = name
        self._start = start
        self._attempts = attempts
        self._reports: queue.Queue[CurveReport | None] = queue.Queue()
        self._sentences: queue.Queue[str] = queue.Queue()
        self._dropped = False
        self._busy_since = math.inf  # time.monotonic() at which the thread began what it is at
        self._said_busy_since = math.inf
        self._thread = threading.Thread(target=self._work, name=f"simul-{name}", daemon=True)
        self._thread.start()

    @property
    def lost(self) -> int:
        """Reports dropped, because the writer was too slow."""
        return self._lost

    def write(self, report: CurveReport, now: float) -> list[str]:
        """Queue a report. A writer that is far behind loses the oldest ones."""
        if not self._dropped:
            if self._reports.qsize() >= MOST_QUEUED:
                self._reports.get_nowait()
                self._lost += 1
            self._reports.put(report)
        return [*self._said(), *self._hangs(now)]

    def close(self, hurry: Callable[[], bool]) -> list[str]:
        """Wait until everything is handed over, at most FINISH_SEC, or HANGING_FINISH_SEC where the writer hangs."""
        self._reports.put(None)
        now = time.monotonic()
        deadline = now + (HANGING_FINISH_SEC if now - self._busy_since > HANGS_SEC else FINISH_SEC)
        while self._thread.is_alive() and time.monotonic() < deadline and not hurry():
            self._thread.join(0.1)
        late = [f"{self._name} did not finish in time: its last reports may be missing."]
        return [*self._said(), *(late if self._thread.is_alive() else [])]

    def say(self, sentence: str) -> None:
        """A sentence of `write`, for the next call of `write` or `close` to return."""
        self._sentences.put(sentence)

    def _said(self) -> list[str]:
        sentences = []
        while not self._sentences.empty():
            sentences.append(self._sentences.get())
        return sentences

    def _hangs(self, now: float) -> list[str]:
        """A sentence, once for each report that the writer does not return from."""
        since = self._busy_since
        if now - since <= HANGS_SEC or since == self._said_busy_since:
            return []
        self._said_busy_since = since
        return [
            f"{self._name} has not returned for {now - since:.0f} s. Training goes on; its reports wait, and beyond "
            f"{MOST_QUEUED} the oldest are dropped."
        ]

    def _work(self) -> None:
        try:
            self._busy_since = time.monotonic()
            write, end = self._start()
            self._busy_since = math.inf
            for report in self._queued():
                self._busy_since = time.monotonic()
                self._hand_over(write, report)
                self._busy_since = math.inf
            self._busy_since = time.monotonic()
            end()
        except (Exception, SystemExit) as error:  # noqa: BLE001 - others' code may raise anything, sys.exit() included
            self._dropped, self._busy_since = True, math.inf
            self._sentences.put(
                f"{self._name} failed and gets no more reports, training goes on: {_what_was_raised(error)}"
            )

    def _hand_over(self, write: Write, report: CurveReport) -> None:
        for attempt in range(1, self._attempts):
            try:
                write(report)
            except Exception:  # noqa: BLE001 - others' code may raise anything
                time.sleep(attempt)
            else:
                return
        write(report)

    def _queued(self) -> Iterator[CurveReport]:
        while (report := self._reports.get()) is not None:
            yield report


def _what_was_raised(error: BaseException) -> str:
    """Type, message, and the line of the innermost frame."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({frames[-1].filename}:{frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {str(error)[:500]}{where}"


def callback_writer(
    name: str, function: Callable[[dict[str, Any]], object], figures: CallbackFigures
) -> BackgroundWriter:
    """`metrics_callback`: called with `CurveReport.as_dict`; `figures` gets what it returns."""

    def write(report: CurveReport) -> None:
        for words in figures.add(function(report.as_dict())):
            writer.say(f"metrics_callback {name} {words}")

    writer = BackgroundWriter(f"metrics_callback {name}", lambda: (write, lambda: None))
    return writer


def wandb_writer(root: Path, run_key: str, config: Mapping[str, Any]) -> BackgroundWriter:
    """Weights & Biases (extra `[wandb]`): a run named after the run directory, resumed with it.

    Its own variables apply: WANDB_MODE=offline, WANDB_PROJECT (default: simul), WANDB_ENTITY.

    Args:
        run_key: identifies the run directory for as long as it exists.
        config: settings of the run, shown beside its curves.
    """

    def start() -> tuple[Write, Callable[[], None]]:
        import wandb

        run = wandb.init(
            project=os.environ.get("WANDB_PROJECT", "simul"), name=root.name, id=run_id(run_key), resume="allow",
            dir=str(root), config=dict(config), settings=wandb.Settings(console="off", silent=True),
        )  # fmt: skip

        def write(report: CurveReport) -> None:
            run.log({**report.figures, "training_sec": report.training_sec}, step=report.decisions)

        return write, run.finish

    return BackgroundWriter("wandb", start, ATTEMPTS)


def mlflow_writer(root: Path, run_key: str, config: Mapping[str, Any]) -> BackgroundWriter:
    """MLflow (extra `[mlflow]`): a run named after the run directory, in the experiment `simul`, resumed with it.

    MLFLOW_TRACKING_URI applies; without it the run is in `mlflow.db` of the run directory. MLFLOW_EXPERIMENT_NAME names
    another experiment. Arguments as for `wandb_writer`.
    """

    def start() -> tuple[Write, Callable[[], None]]:
        from mlflow.entities import Metric, Param
        from mlflow.tracking import MlflowClient

        uri = os.environ.get("MLFLOW_TRACKING_URI", "")
        if not uri:
            os.close(open_to_append(root / "mlflow.db"))  # raises for a link, which SQLite follows
            uri = f"sqlite:///{root / 'mlflow.db'}"
        client = MlflowClient(tracking_uri=uri)
        name = os.environ.get("MLFLOW_EXPERIMENT_NAME", "simul")
        found = client.get_experiment_by_name(name)
        experiment = found.experiment_id if found is not None else client.create_experiment(name)
        key = run_id(run_key)
        earlier = client.search_runs([experiment], f"tags.`simul.run` = '{key}'", max_results=1)
        if earlier:
            mlflow_run = earlier[0].info.run_id
            client.update_run(mlflow_run, status="RUNNING")
        else:
            mlflow_run = client.create_run(experiment, tags={"simul.run": key}, run_name=root.name).info.run_id
            params = [Param(name, str(value)[:500]) for name, value in _flat(config)]
            client.log_batch(mlflow_run, params=params[:100])  # MLflow's limit of one request

        def write(report: CurveReport) -> None:
            at_ms = round(report.time * 1000)
            figures = {**report.figures, "training_sec": report.training_sec}
            rows = [Metric(name, value, at_ms, report.decisions) for name, value in figures.items()]
            client.log_batch(mlflow_run, metrics=rows)

        return write, lambda: client.set_terminated(mlflow_run)

    return BackgroundWriter("mlflow", start, ATTEMPTS)


def run_id(run_key: str) -> str:
    """Identifies a run directory in services: 16 hex digits that tell nothing about its key."""
    return hashlib.sha256(f"curves/{run_key}".encode()).hexdigest()[:16]


def _flat(tree: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in tree.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{above}{key}.")
        else:
            yield f"{above}{key}", value
