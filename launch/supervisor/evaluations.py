"""Evaluation while training: `simul eval` of the newest checkpoint as a child process, and the best checkpoint.

A process of its own, not sessions of the run's server: every game is played by the weights of one checkpoint, the run's
books do not change, and a child that fails or is killed costs one evaluation. docs/design/supervision.md has the cost.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import IO, Any

import msgspec
import psutil

from simul.common.checkpoints.folders import BEST, RESULT_FILE, link_folder, replace_best
from simul.common.config.game_description import TABLE_PLAYER
from simul.common.config.games import game_called
from simul.common.config.schema import Config
from simul.common.role.run_directory import RunDir
from simul.common.runtime.intervals import format_interval, interval_digits
from simul.common.runtime.private_files import open_to_append, read_regular
from simul.launch.monitoring.alerts import StrengthAlerts
from simul.launch.monitoring.curves.curves_csv import past_evaluations
from simul.launch.processes.role_process import kill_session, low_priority, role_environment

PINNED = ".evaluating-"  # prefix of the checkpoint that is being evaluated: the learner may remove its own
LOG_NAME = "simul-evaluation.log"
STOP_SEC = 3.0
# Settings of the run that an evaluation does not share: one thread, the processor.
OVERRIDES = ("workers.count=1", "server.device=cpu", "server.threads=1")
CommandLine = Callable[[Path], list[str]]  # of the evaluation of a checkpoint


def evaluation_command(config: Config, checkpoint: Path) -> list[str]:
    """`simul eval` of one checkpoint. It stops when its standard input ends, so also when the supervisor is killed."""
    games = config.evaluation.games
    overrides = [*OVERRIDES, f"workers.envs={min(config.workers.envs, games)}"]
    line = [
        sys.executable, "-P", "-m", "simul.launch.cli", "--stop-at-eof", "eval", "--json", "--workers", "1",
        "--checkpoint", str(checkpoint), "--battles", str(games),
    ]  # fmt: skip
    for opponent in config.evaluation.opponents:
        line += ["--opponent", opponent]
    if len(config.evaluation.opponents) > 1:
        line.append("--no-round-robin")
    return [*line, *(word for override in overrides for word in ("--set", override))]


class BestResult(msgspec.Struct):
    """checkpoints/best/evaluation.json. Scores of different measures are not compared."""

    score: float
    measure: str
    result: dict[str, Any]


class Evaluations:
    """Evaluates the newest checkpoint whenever the run has answered `every_decisions` more; never two at once.

    Args:
        begin: decisions of the run at the start of this supervisor.
        command: the command line for a checkpoint.
        say: gets sentences for the view.
    """

    def __init__(
        self, config: Config, run_dir: RunDir, begin: float, say: Callable[[str], None],
        command: CommandLine | None = None,
    ) -> None:  # fmt: skip
        self._config = config
        self._run_dir = run_dir
        self._say = say
        self._command = command or (lambda checkpoint: evaluation_command(config, checkpoint))
        self._every = config.evaluation.every_decisions
        self._next = self._after(begin)
        self._child: _Child | None = None
        self._evaluated = 0  # version of the last checkpoint; version 0 has learned nothing
        self._measure = _measure(config)
        self._strength = StrengthAlerts(self._past_scores())
        self._remove_leftovers()

    @property
    def running(self) -> bool:
        """Whether an evaluation is played, or has ended and not been polled."""
        return self._child is not None

    def poll(self, decisions: float) -> dict[str, Any] | None:
        """Called often. Starts an evaluation that is due; returns the figures of one that has finished."""
        if self._child is not None and self._child.ended:
            child, self._child = self._child, None
            return self._finish(child)
        if self._every and self._child is None and decisions >= self._next:
            self._start(decisions)
        return None

    def close(self) -> None:
        """Stop a running evaluation; nothing of it is kept."""
        if self._child is not None:
            self._child.stop()
            self._child = None
        self._remove_leftovers()

    def _after(self, decisions: float) -> float:
        return (decisions // self._every + 1) * self._every if self._every else 0.0

    def _start(self, decisions: float) -> None:
        newest = max(self._run_dir.checkpoints.glob("[0-9]" * 9), default=None)
        if newest is None or int(newest.name) <= self._evaluated:
            return  # the next checkpoint is evaluated as soon as it is written
        self._next = self._after(decisions)
        pinned = newest.with_name(f"{PINNED}{newest.name}")
        try:
            shutil.rmtree(pinned, ignore_errors=True)
            link_folder(newest, pinned)
            self._child = _Child(self._command(pinned), self._run_dir.logs / LOG_NAME, pinned)
        except OSError as error:
            self._remove_leftovers()
            why = error.strerror or error
            self._say(f"version {int(newest.name)} could not be evaluated: {why}. Training goes on.")
        else:
            self._evaluated = int(newest.name)

    def _finish(self, child: _Child) -> dict[str, Any] | None:
        try:
            result = _result(child.result(), child.checkpoint, child.seconds)
            self._keep_if_best(child.checkpoint, result)
            self._watch_strength(result)
        except (OSError, ValueError, KeyError, TypeError) as error:
            why = child.failure() or f"{type(error).__name__}: {error}"
            log = f"logs/{LOG_NAME}"
            self._say(f"the evaluation of version {self._evaluated} failed: {why}; see {log}. Training goes on.")
            return None
        finally:
            self._remove_leftovers()
        return result

    def _keep_if_best(self, checkpoint: Path, result: dict[str, Any]) -> None:
        best, score = self._read_best(), result["score"]  # from the disk: a store may have brought it meanwhile
        if best is None or score > best.score:
            best, so_far = BestResult(score, self._measure, result), "the best so far"
            replace_best(checkpoint, msgspec.json.format(msgspec.json.encode(best)))
        else:
            so_far = f"the best is {_rounded(best.score, result)}"
        result["best_score"] = best.score
        version = f"evaluation of version {result['policy_version']:.0f}"
        self._say(f"{version}: {self._measure} {_score_text(result)}, {so_far}")

    def _watch_strength(self, result: dict[str, Any]) -> None:
        if alert := self._strength.update(result["score"], _margin(result)):
            self._say(f"{alert}; checkpoints/best is the strongest")

    def _past_scores(self) -> list[float]:
        """Of the evaluations in the run's curves since the best one: all by the measure of its configuration."""
        if not self._every or (best := self._read_best()) is None:
            return []
        if not isinstance(first := best.result.get("policy_version"), int):
            return []
        found = past_evaluations(self._run_dir.root)
        return [each["score"] for each in found if each.get("policy_version", math.nan) >= first]

    def _read_best(self) -> BestResult | None:
        """The best of this run by the measure of its configuration; of another measure the next result is better."""
        try:
            data = read_regular(self._run_dir.checkpoints / BEST / RESULT_FILE)
            best = msgspec.json.decode(data, type=BestResult)
        except (OSError, msgspec.MsgspecError):
            return None
        return best if best.measure == self._measure else None

    def _remove_leftovers(self) -> None:
        for left in self._run_dir.checkpoints.glob(f"{PINNED}*"):
            shutil.rmtree(left, ignore_errors=True)


def _measure(config: Config) -> str:
    opponents = config.evaluation.opponents
    evaluation = config.evaluation
    drawn = game_called(config.game).player == TABLE_PLAYER and evaluation.opponents and evaluation.openings
    openings = f" from drawn openings ({evaluation.openings})" if drawn else ""
    games = f"of {evaluation.games} greedy games{openings}"
    return f"mean win rate against {', '.join(opponents)} {games}" if opponents else f"mean return {games}"


def _result(printed: Any, checkpoint: Path, seconds: float) -> dict[str, Any]:
    """Figures of the JSON that `simul eval` printed. Raises KeyError, ValueError, TypeError where it has none."""
    meta = json.loads(read_regular(checkpoint / "meta.json"))
    facts = {"policy_version": meta["version"], "decisions_learned": meta["decisions"], "seconds": round(seconds, 1)}
    if not printed["pairs"]:
        if printed["mean_return"] is None:
            raise ValueError("no episode was played to its end")
        return {
            **facts, "score": float(printed["mean_return"]), "games": printed["episodes"],
            "return_mean": printed["mean_return"], "return_min": printed["lowest_return"],
            "return_max": printed["highest_return"], "return_95": printed.get("t_95"),
        }  # fmt: skip
    pairs = {pair["second"]: pair for pair in printed["pairs"]}
    if any(pair["win_rate"] is None for pair in pairs.values()):
        raise ValueError("no battle was played to its end")
    return {
        **facts, "score": fmean(pair["win_rate"] for pair in pairs.values()),
        "games": sum(pair["battles"] for pair in pairs.values()),
        "win_rate": {name: pair["win_rate"] for name, pair in pairs.items()},
        "win_rate_low": {name: pair["wilson_95"][0] for name, pair in pairs.items()},
        "win_rate_high": {name: pair["wilson_95"][1] for name, pair in pairs.items()},
        "mean_score": {
            name: pair["standings"]["first"]["mean_score"] for name, pair in pairs.items() if pair.get("standings")
        },
    }  # fmt: skip


def _intervals(result: Mapping[str, Any]) -> dict[str, tuple[float, float]]:
    """95% intervals: by opponent of the win rate, of the mean return by ""; {} where a single game has none."""
    if "win_rate" in result:
        return {name: (result["win_rate_low"][name], high) for name, high in result["win_rate_high"].items()}
    return {"": tuple(result["return_95"])} if result.get("return_95") else {}


def _margin(result: Mapping[str, Any]) -> float:
    """Half of the score's 95% interval: the upper halves of independent rates' intervals add in quadrature."""
    means, intervals = result.get("win_rate", {"": result["score"]}), _intervals(result)
    halves = [high - means[name] for name, (_, high) in intervals.items()]
    return math.hypot(*halves) / max(len(halves), 1)


def _rounded(score: float, result: Mapping[str, Any]) -> str:
    """With the decimal places of the result's intervals."""
    digits = [interval_digits(*interval) for interval in _intervals(result).values()]
    return f"{score:.{max(digits)}f}" if digits else f"{score:.4g}"


def _score_text(result: Mapping[str, Any]) -> str:
    """`0.960 (95% interval 0.902 to 0.984)`; against several opponents the win rate against each with its own."""
    score, intervals = _rounded(result["score"], result), _intervals(result)
    if not intervals:
        return score
    if len(intervals) == 1:
        return f"{score} (95% interval {format_interval(*next(iter(intervals.values())))})"
    rates = [
        f"{name} {result['win_rate'][name]:.{interval_digits(*each)}f}, 95% interval {format_interval(*each)}"
        for name, each in intervals.items()
    ]
    return f"{score} ({'; '.join(rates)})"


class _Child:
    """One evaluation: a process that leads its own session, with low priority."""

    def __init__(self, line: Sequence[str], log: Path, checkpoint: Path) -> None:
        self.checkpoint = checkpoint
        self._began = time.monotonic()
        self._ended_at = 0.0
        self._log = log
        self._printed = tempfile.TemporaryFile()  # noqa: SIM115 as long as this object; a child blocks at a full pipe
        weakref.finalize(self, self._printed.close)
        with _opened(log) as errors:
            self._process = subprocess.Popen(
                line, stdin=subprocess.PIPE, stdout=self._printed, stderr=errors, env=role_environment(1),
                start_new_session=sys.platform != "win32",
            )  # fmt: skip
        with contextlib.suppress(psutil.Error):  # before it has started others, which inherit it
            psutil.Process(self._process.pid).nice(low_priority())

    @property
    def ended(self) -> bool:
        """Whether the process has ended."""
        if self._process.poll() is not None and not self._ended_at:
            self._ended_at = time.monotonic()
        return bool(self._ended_at)

    @property
    def seconds(self) -> float:
        """How long it took."""
        return self._ended_at - self._began

    def result(self) -> Any:
        """What it printed. Raises ValueError where that is no JSON, as after a failure."""
        self._close()
        self._printed.seek(0)
        return json.loads(self._printed.read())

    def failure(self) -> str:
        """How the process ended, with its last words; "" for exit code 0."""
        code = self._process.returncode
        if not code:
            return ""
        try:
            lines = self._log.read_text(errors="replace").rstrip().splitlines()
        except OSError:
            lines = []
        ended = f"signal {-code}" if code < 0 else f"exit code {code}"
        return f"{ended}{f', {lines[-1][:300]}' if lines and code > 0 else ''}"

    def stop(self) -> None:
        """End it and all that it started."""
        family: list[psutil.Process] = []
        with contextlib.suppress(psutil.Error):
            family = psutil.Process(self._process.pid).children(recursive=True)
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(STOP_SEC)
        kill_session(self._process)
        for member in family:
            with contextlib.suppress(psutil.Error):
                member.kill()
        self._close()

    def _close(self) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()


def _opened(log: Path) -> IO[bytes]:
    """The log, emptied, for appending (see `rotate_logs`), or the null device where it cannot be opened."""
    try:
        opened = os.fdopen(open_to_append(log), "ab")
        opened.truncate(0)
        return opened
    except OSError:
        return open(os.devnull, "ab")
