"""`make learn-check`: does the system learn? Problems with known answers, through all processes.

CartPole must be solved by each network for vectors, with normalisation too, and so must a task seen as images, one with
actions of several components, and a memory task. The same memory task must stay near chance when the recurrent state is
zeroed at every step. Entities in random order must be pooled or attended to, and ids embedded: a network that reads the
one as a row of numbers, or the other as a number, must fail. Each case trains from random weights, then plays fresh
greedy episodes.

    make learn-check ARGS="--only memory --json learn.json"
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.harness.report import conditions, markdown_table, write_json
from simul.common.runtime.installation import ROOT

LIMIT_SEC = 180.0  # training and evaluation together
GRACE_SEC = 30.0  # from SIGINT to SIGKILL


@dataclass(frozen=True)
class Case:
    """One problem: the mean greedy return must be at least `at_least`, or less than `below`."""

    name: str
    config: str
    decisions: int
    episodes: int
    at_least: float | None = None
    below: float | None = None
    overrides: tuple[str, ...] = ()

    def target(self) -> str:
        """The expected mean return, as text."""
        return f">= {self.at_least:g}" if self.at_least is not None else f"< {self.below:g}"

    def met(self, mean: float) -> bool:
        """Whether a mean return is as expected."""
        return (self.at_least is None or mean >= self.at_least) and (self.below is None or mean < self.below)


@dataclass(frozen=True)
class Outcome:
    """Outcome of a case. `problem` is empty where it passed."""

    case: str
    target: str
    mean_return: float | None
    episodes: int
    decisions: int
    train_sec: float
    total_sec: float
    problem: str


ZERO_STATE = ("server.zero_state=true",)  # the learner reads the same key
IMAGES = (
    "gymnasium.id=benchmarks.learn_envs:SeekEnv", "gymnasium.reward_scale=1", "network.name=conv_lstm",
    "network.options={channels: [16], blocks: 1, hidden: 64, memory: false}",
)  # fmt: skip
CHORDS = ("gymnasium.id=benchmarks.learn_envs:ChordEnv", "gymnasium.reward_scale=1", "learner.discount=0.9")
NORMALIZED = ("gymnasium.reward_scale=1", "network.normalize_observations=true", "learner.normalize_rewards=true")
ENTITIES = (
    "gymnasium.id=benchmarks.learn_envs:StrongestEnv", "gymnasium.max_entities=12", "gymnasium.ids=columns",
    "gymnasium.reward_scale=1", "learner.discount=0",
)  # fmt: skip
IDS = (
    "gymnasium.id=benchmarks.learn_envs:CodeBookEnv", "gymnasium.ids=columns", "gymnasium.reward_scale=1",
    "learner.discount=0",
)  # fmt: skip
CARTPOLE, MEMORY = "configs/cartpole.yaml", "configs/memory.yaml"


def network(name: str, options: str = "{}") -> tuple[str, ...]:
    """Overrides that choose a network."""
    return f"network.name={name}", f"network.options={options}"


GRU = network("mlp_gru", "{hidden: 64, layers: 1}")
ATTENTION_GRU = network("attention", "{width: 32, hidden: 64, memory: gru}")
ATTENTION_LSTM = network("attention", "{width: 32, hidden: 64, memory: lstm}")
ATTENTION = network("attention", "{width: 32, hidden: 64}")
MLP, FLAT = network("mlp", "{hidden: 64}"), network("mlp", "{hidden: 64, entities: flat}")
SCALED = network("mlp_lstm", "{hidden: 64, layers: 2, memory: false}")
CASES = (
    Case("cartpole", CARTPOLE, 200_000, 100, at_least=475.0),
    Case("cartpole_normalized", CARTPOLE, 200_000, 100, at_least=475.0, overrides=NORMALIZED),
    Case("cartpole_mlp", CARTPOLE, 200_000, 100, at_least=475.0, overrides=MLP),
    Case("cartpole_gru", CARTPOLE, 200_000, 100, at_least=475.0, overrides=GRU),
    Case("cartpole_attention", CARTPOLE, 200_000, 100, at_least=475.0, overrides=ATTENTION),
    Case("cartpole_attention_gru", CARTPOLE, 200_000, 100, at_least=475.0, overrides=ATTENTION_GRU),
    Case("images", CARTPOLE, 60_000, 500, at_least=0.95, overrides=IMAGES),
    Case("chords", CARTPOLE, 60_000, 500, at_least=3.8, overrides=CHORDS),
    Case("memory", MEMORY, 350_000, 1000, at_least=0.95),
    Case("memory_without_state", MEMORY, 350_000, 1000, below=0.35, overrides=ZERO_STATE),
    Case("memory_gru", MEMORY, 350_000, 1000, at_least=0.95, overrides=GRU),
    Case("memory_gru_without_state", MEMORY, 350_000, 1000, below=0.35, overrides=GRU + ZERO_STATE),
    Case("memory_attention_gru", MEMORY, 350_000, 1000, at_least=0.95, overrides=ATTENTION_GRU),
    Case("memory_attention_lstm", MEMORY, 350_000, 1000, at_least=0.95, overrides=ATTENTION_LSTM),
    Case("memory_attention_gru_without_state", MEMORY, 350_000, 1000, below=0.35, overrides=ATTENTION_GRU + ZERO_STATE),
    Case(
        "memory_attention_lstm_without_state", MEMORY, 350_000, 1000, below=0.35, overrides=ATTENTION_LSTM + ZERO_STATE
    ),
    Case("entities_pooled", CARTPOLE, 100_000, 1000, at_least=0.9, overrides=ENTITIES + MLP),
    Case("entities_attended", CARTPOLE, 100_000, 1000, at_least=0.9, overrides=ENTITIES + ATTENTION),
    Case("entities_flat", CARTPOLE, 100_000, 1000, below=0.7, overrides=ENTITIES + FLAT),
    Case("ids_embedded", CARTPOLE, 60_000, 1000, at_least=0.95, overrides=IDS + MLP),
    Case("ids_scaled", CARTPOLE, 60_000, 1000, below=0.6, overrides=IDS + SCALED),
)


class Failed(Exception):
    """A command failed. `check` catches it: the case fails with this sentence."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 0 if every case passed, else 1."""
    options = _parser().parse_args(arguments)
    cases = [case for case in CASES if not options.only or case.name in options.only]
    outcomes = []
    with tempfile.TemporaryDirectory(prefix="simul-learn-") as folder:
        for case in cases:
            print(f"{case.name}: {case.decisions:,} decisions, then {case.episodes:,} greedy episodes ...", flush=True)
            outcomes.append(check(case, Path(folder) / case.name, options.limit_sec, options.set))
    print(table(outcomes))
    if options.json:
        write_json(options.json, {**conditions(cpus=os.cpu_count()), "cases": [asdict(o) for o in outcomes]})
    return int(any(outcome.problem for outcome in outcomes))


def check(case: Case, root: Path, limit_sec: float, extra: Sequence[str] = ()) -> Outcome:
    """Train and evaluate one case."""
    root.mkdir()
    run_dir = root / "run"
    horizon = f"learner.total_decisions={case.decisions}"  # schedules end where the run does
    overrides = [part for value in (horizon, *case.overrides, *extra) for part in ("--set", value)]
    began = time.monotonic()
    train_sec, decisions, episodes, mean, problem = 0.0, 0, 0, None, ""
    try:
        simul(
            ["up", case.config, "--run-dir", str(run_dir), "--plain",
             "--stop-after-decisions", str(case.decisions), *overrides],
            root / "up.log", limit_sec,
        )  # fmt: skip
        train_sec = time.monotonic() - began
        decisions = int(json.loads((run_dir / "summary.json").read_text())["decisions"])
        left_sec = max(limit_sec - train_sec, 30.0)
        answer = simul(
            ["eval", "--checkpoint", str(run_dir), "--episodes", str(case.episodes), "--json", *overrides],
            root / "eval.log", left_sec,
        )  # fmt: skip
        result = json.loads(answer)
        episodes, mean = int(result["episodes"]), result["mean_return"]
        problem = judge(case, mean, episodes, decisions)
    except Failed as failure:
        problem = str(failure)
    except (OSError, ValueError, KeyError) as error:
        problem = f"{type(error).__name__}: {error}"
    total_sec = time.monotonic() - began
    if not problem and total_sec > limit_sec:
        problem = f"took {total_sec:.0f} s; allowed are {limit_sec:.0f} s"
    return Outcome(case.name, case.target(), mean, episodes, decisions, train_sec, total_sec, problem)


def judge(case: Case, mean: float | None, episodes: int, decisions: int) -> str:
    """What is wrong with the figures, or nothing."""
    if decisions < case.decisions:
        return f"only {decisions:,} of {case.decisions:,} decisions"
    if episodes != case.episodes or mean is None:
        return f"only {episodes} of {case.episodes} episodes"
    return "" if case.met(mean) else f"mean return {mean:.3f}; expected {case.target()}"


def simul(arguments: Sequence[str], log: Path, limit_sec: float) -> str:
    """Run a command of `simul`; its standard output. Its errors are appended to `log`. Raises Failed.

    The command stops when this process ends, a kill -9 included.
    """
    command = [sys.executable, "-m", "simul.launch.cli", "--stop-at-eof", *arguments]
    stdin, held = os.pipe()  # not subprocess.PIPE, which `communicate` closes
    with log.open("a") as errors, os.fdopen(held, "wb"):
        with os.fdopen(stdin, "rb") as at_end:
            process = subprocess.Popen(
                command, cwd=ROOT, stdin=at_end, stdout=subprocess.PIPE, stderr=errors, text=True,
                start_new_session=True,  # Ctrl-C comes once, from `_stop`
            )  # fmt: skip
        try:
            output, _ = process.communicate(timeout=limit_sec)
        except subprocess.TimeoutExpired:
            output = _stop(process)
            raise Failed(f"`simul {arguments[0]}` was not done after {limit_sec:.0f} s; {_tail(log, output)}") from None
        except BaseException:
            _stop(process)
            raise
    if process.returncode != 0:
        raise Failed(f"`simul {arguments[0]}` ended with code {process.returncode}; {_tail(log, output)}")
    return output


def _stop(process: subprocess.Popen[str]) -> str:
    process.send_signal(signal.SIGINT)
    try:
        return process.communicate(timeout=GRACE_SEC)[0]
    except subprocess.TimeoutExpired:
        process.kill()
        return process.communicate()[0]


def _tail(log: Path, output: str = "") -> str:
    lines = (output + "\n" + log.read_text()).split("\n")
    return "the end of its output: " + " | ".join([line.strip() for line in lines if line.strip()][-3:])


def table(outcomes: Sequence[Outcome]) -> str:
    """The outcomes as a Markdown table."""
    rows = []
    for o in outcomes:
        mean = "-" if o.mean_return is None else f"{o.mean_return:.3f}"
        result = f"FAIL: {o.problem}" if o.problem else "PASS"
        times = (f"{o.train_sec:.0f}", f"{o.total_sec:.0f}")
        rows.append((o.case, mean, o.target, f"{o.episodes:,}", f"{o.decisions:,}", *times, result))
    heads = ("case", "mean greedy return", "expected", "episodes", "decisions", "training s", "total s", "result")
    return markdown_table(heads, rows)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Problems with known answers, through all processes.")
    parser.add_argument("--only", nargs="+", choices=[case.name for case in CASES], help="these cases (default: all)")
    parser.add_argument("--set", action="append", default=[], metavar="K=V", help="further overrides, for every case")
    parser.add_argument("--limit-sec", type=float, default=LIMIT_SEC, help="wall time of a case")
    parser.add_argument("--json", type=Path, metavar="F", help="write the figures as JSON")
    return parser


if __name__ == "__main__":
    sys.exit(main())
