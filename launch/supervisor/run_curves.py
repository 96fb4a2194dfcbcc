"""The curves of one run: where they go on after a resume, which writers they have, and when a report is due."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from simul.common.config.named_class import load_class
from simul.common.config.schema import Config
from simul.common.config.trust import EVERYTHING
from simul.common.errors import ConfigError
from simul.common.role.run_directory import RunDir
from simul.common.role.run_lock import read_json
from simul.common.runtime.decode_errors import DECODE_ERRORS
from simul.common.runtime.extras import install_extra
from simul.common.runtime.private_files import read_regular
from simul.launch.monitoring.curves.background_writer import callback_writer
from simul.launch.monitoring.curves.callback_figures import CallbackFigures
from simul.launch.monitoring.curves.curve_log import CurveLog, CurveWriter
from simul.launch.monitoring.curves.curves_csv import CsvWriter, last_position
from simul.launch.monitoring.curves.figures import CurvePosition, CurveRecorder, CurveReport, Figure, evaluation_figures
from simul.launch.monitoring.curves.league_curves import LeagueNames, league_figures
from simul.launch.monitoring.curves.metric_services import mlflow_writer, wandb_writer
from simul.launch.monitoring.curves.tensorboard_file import TensorBoardWriter
from simul.launch.monitoring.snapshot import Snapshot
from simul.launch.ratings.league_file import LeagueFile

if TYPE_CHECKING:
    from simul.launch.monitoring.curves.run_exporter import RunExporter

EXTRAS = ("wandb", "mlflow")  # writers that need a package of an extra of the same name


def check_metrics(config: Config) -> None:
    """Raises ConfigError where a package of `metrics` is not installed, or `metrics_callback` cannot be imported."""
    for name in config.metrics:
        if name in EXTRAS and importlib.util.find_spec(name) is None:
            raise ConfigError(f"metrics: the package {name} is not installed. Run: {install_extra(name)}")
    if config.metrics_callback:
        load_callback(config.metrics_callback)


def load_callback(name: str) -> Callable[[dict[str, Any]], object]:
    """The function called `module:function`, of a run's configuration, which the command line names.

    Raises ConfigError.
    """
    try:
        return load_class(name, "function", trust=EVERYTHING)
    except ConfigError as error:
        raise ConfigError(f"metrics_callback: {error}") from error


class RunCurves:
    """Made before the first status.json of a start is written: that of the last one says where the curves go on."""

    def __init__(self, run_dir: RunDir, config: Config) -> None:
        self._run_dir = run_dir
        self._config = config
        self._recorder = CurveRecorder(read_position(run_dir))
        self._log: CurveLog | None = None
        self._callback: CurveLog | None = None
        self._returned = CallbackFigures()
        self._exporter: RunExporter | None = None
        self._evaluation: list[Figure] = []  # of the last one
        self._new_evaluation: list[Figure] = []  # not reported yet
        self._league_file = LeagueFile(run_dir.root)
        self._league_names = LeagueNames()
        self._league: list[Figure] = []  # of league.json as it was read last
        self._new_league: list[Figure] = []  # not reported yet
        self._sentences: list[str] = []

    def serve_prometheus(self) -> None:
        """Serve the figures where `prometheus_port` is set. Raises ConfigError where the port is taken."""
        if self._config.prometheus_port:
            from simul.launch.monitoring.curves.run_exporter import RunExporter

            self._exporter = RunExporter(self._config.prometheus_port)

    @property
    def position(self) -> CurvePosition:
        """How far the run is."""
        return self._recorder.position

    @property
    def begin(self) -> CurvePosition:
        """Where the last start ended."""
        return self._recorder.start

    def add_evaluation(self, result: Mapping[str, Any]) -> None:
        """The next report has the figures of this evaluation, and is due at once."""
        self._evaluation = self._new_evaluation = evaluation_figures(result)

    def record(self, snapshot: Snapshot, *, last: bool = False) -> tuple[Snapshot, CurveReport | None]:
        """The snapshot with the run's position and newest figures, and a report if one is due."""
        self._read_league()
        position = self._recorder.advance(snapshot)
        report = self._recorder.record(snapshot, [*self._new_evaluation, *self._new_league], last=last)
        if report is not None:
            self._new_evaluation, self._new_league = [], []
            report = msgspec.structs.replace(report, figures={**report.figures, **self._returned.take()})
        newest = self._recorder.last
        completed = msgspec.structs.replace(
            snapshot, run_decisions=position.decisions, training_sec=position.training_sec,
            figures={
                **(newest.figures if newest else {}),
                **{figure.name: figure.value for figure in (*self._evaluation, *self._league)},
            },
            callback_figures=self._returned.last,
            curve_rows_lost=sum(log.lost for log in (self._log, self._callback) if log is not None),
        )  # fmt: skip
        return completed, report

    def write(self, report: CurveReport | None) -> list[str]:
        """Hand the report to every writer. Returns what they, and a league.json that is damaged, have to say."""
        sentences, self._sentences = self._sentences, []
        if report is None:
            return sentences
        self._log = self._log or CurveLog(self._make_writers())
        self._callback = self._callback or CurveLog(self._make_callback())
        if self._exporter is not None:
            self._exporter.publish([*self._recorder.figures, *self._evaluation, *self._league])
        return [*sentences, *self._log.write(report), *self._callback.write(report)]

    def close(self, hurry: Callable[[], bool]) -> list[str]:
        """Finish all writers."""
        if self._exporter is not None:
            self._exporter.close()
        if self._log is None or self._callback is None:
            return []
        sentences = self._callback.close(hurry)
        if (figures := self._returned.take()) and self._recorder.last is not None:  # of the last report
            sentences += self._log.write(msgspec.structs.replace(self._recorder.last, figures=figures))
        return [*sentences, *self._log.close(hurry)]

    def _read_league(self) -> None:
        """The next report has the figures of a league.json that changed, and is due at once."""
        file = self._league_file
        if not file.poll_beside(time.monotonic()):
            return
        if file.fault:
            self._sentences.append(f"{file.fault} The curves go on without it.")
        elif file.figures is None:
            self._league = self._new_league = []
        else:
            self._league, said = self._league_names.admit(league_figures(file.figures))
            self._new_league = self._league
            self._sentences += said

    def _make_writers(self) -> list[CurveWriter]:
        root, config = self._run_dir.root, self._config
        plain, key = msgspec.to_builtins(config), self._run_dir.token()
        writers: dict[str, Callable[[], CurveWriter]] = {
            "csv": lambda: CsvWriter(root),
            "tensorboard": lambda: TensorBoardWriter(root, self._recorder.start.decisions),
            "wandb": lambda: wandb_writer(root, key, plain),
            "mlflow": lambda: mlflow_writer(root, key, plain),
        }
        return [writers[name]() for name in config.metrics]

    def _make_callback(self) -> list[CurveWriter]:
        if not (name := self._config.metrics_callback):
            return []
        return [callback_writer(name, load_callback(name), self._returned)]


def read_position(run_dir: RunDir) -> CurvePosition:
    """Where the run ended, by what it left: status.json, curves.csv, and the checkpoints of a run without either."""
    status, curves = read_json(run_dir, "status.json"), last_position(run_dir.root)
    decisions = [curves.decisions, _number(status.get("run_decisions"))]
    for meta in run_dir.checkpoints.glob("[0-9]" * 9 + "/meta.json"):
        try:
            decisions.append(_number(msgspec.json.decode(read_regular(meta))["decisions"]))
        except (OSError, KeyError, TypeError, *DECODE_ERRORS):
            continue  # damaged: the learner reports it
    return CurvePosition(max(decisions), max(curves.training_sec, _number(status.get("training_sec"))))


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) and value >= 0 else 0.0
