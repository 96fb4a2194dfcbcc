"""`make bench-sb3`: Simul and Stable-Baselines3 on the same tasks, steps and cores, one run of each in turn."""

from __future__ import annotations

import argparse
import importlib.util
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.harness.cores import claim_cores
from benchmarks.harness.report import conditions, in_one_line, write_json
from benchmarks.learn_check import Failed, simul
from benchmarks.sb3 import pokemon
from benchmarks.sb3.results import Comparison, Outcome, speed_promises, table
from benchmarks.sb3.tasks import SPEED_TASKS, TASKS, Task, task_called
from simul.common.runtime.installation import ROOT

EPISODES = 100  # greedy, of each run
SEEDS = 5
LIMIT_SEC = 4 * 3600.0  # of one run
OVERRUN = 1.1  # a run stops a little after its last step; the peer makes as many as it is told


def main() -> int:
    """Exit code 0 when no return is worse, 1 when one is, 2 without the peers' environment."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--task", action="append", choices=[task.name for task in (*TASKS, *SPEED_TASKS)], help="default: all"
    )
    parser.add_argument("--seeds", type=int, default=SEEDS, help="runs of each side (default: %(default)s)")
    parser.add_argument("--steps", type=int, help="of each run; default: the task's own")
    parser.add_argument("--peer-threads", type=int, help="of torch in the peers; default: its own choice")
    parser.add_argument("--speed", action="store_true", help="steps a second of a toy task; nothing is evaluated")
    parser.add_argument("--pokemon", action="store_true", help="MaskablePPO with poke-env beside `make up`")
    parser.add_argument("--json", type=Path, metavar="F", help="write what was found to F")
    options = parser.parse_args()
    if importlib.util.find_spec("sb3_contrib") is None:
        sys.stderr.write("Stable-Baselines3 is not installed; `make bench-sb3` installs it into .venv-sb3.\n")
        return 2
    if options.pokemon:
        claim_cores()
        return pokemon.compare()
    facts = conditions(cores_used=len(claim_cores()), seeds=options.seeds, episodes=EPISODES)
    found: list[Comparison] = []
    for task in (SPEED_TASKS if options.speed else TASKS) if not options.task else map(task_called, options.task):
        ended = list(found)
        steps = options.steps or task.steps
        with tempfile.TemporaryDirectory(prefix="simul-sb3-") as folder:
            for comparison in compare(task, steps, options.seeds, Path(folder), options.peer_threads):
                found = [*ended, comparison]
                if options.json:  # after each pair of runs: a break loses the pair in hand alone
                    write_json(options.json, {"conditions": facts, "tasks": [one.as_dict() for one in found]})
        sys.stdout.write(table(found[-1:]) + "\n\n")
        sys.stdout.flush()
    sys.stdout.write(f"{table(found)}\n\n{in_one_line(facts)}\n")
    promises = speed_promises(found)
    sys.stdout.write("".join(f"{promise}\n" for promise in promises))
    return int(any(one.verdict == "FAIL" for one in found) or not all(promise.kept for promise in promises))


def compare(task: Task, steps: int, seeds: int, folder: Path, peer_threads: int | None = None) -> Iterator[Comparison]:
    """Train both sides with each seed, and yield what all so far say; who begins changes with every seed.

    Raises Failed.
    """
    ours: list[Outcome] = []
    theirs: list[Outcome] = []
    for seed in range(1, seeds + 1):
        for own in (True, False) if seed % 2 else (False, True):
            who = "Simul" if own else task.algorithm
            sys.stderr.write(f"{task.name}, seed {seed}: {who}, {steps:,} steps\n")
            if own:
                ours.append(run_ours(task, steps, seed, folder))
            else:
                theirs.append(run_peer(task, steps, seed, folder, peer_threads))
        yield Comparison(task.name, task.algorithm, list(ours), list(theirs), task.speed)


def run_ours(task: Task, steps: int, seed: int, folder: Path) -> Outcome:
    """Train with the shipped configuration, then evaluate. Raises Failed."""
    run_dir = folder / f"ours-{seed}"
    settings = (f"gymnasium.id={task.env}", f"seed={seed}", f"learner.total_decisions={steps}", *task.overrides)
    changes = [part for setting in settings for part in ("--set", setting)]
    simul(
        ["up", task.config, "--plain", "--run-dir", str(run_dir), "--stop-after-decisions", str(steps), *changes],
        folder / "up.log", LIMIT_SEC,
    )  # fmt: skip
    summary = json.loads((run_dir / "summary.json").read_text())
    if summary["decisions"] > OVERRUN * steps:
        raise Failed(f"Simul made {summary['decisions']:,} steps of {steps:,}: the machine held up its supervisor.")
    if task.speed is not None:
        return Outcome(0.0, float(summary["decisions_per_sec"]))
    answer = simul(
        ["eval", "--checkpoint", str(run_dir), "--episodes", str(EPISODES), "--json"], folder / "eval.log", LIMIT_SEC
    )
    return Outcome(float(json.loads(answer)["mean_return"]), float(summary["decisions_per_sec"]))


def run_peer(task: Task, steps: int, seed: int, folder: Path, threads: int | None = None) -> Outcome:
    """Train and evaluate the peer in a process of its own. Raises Failed."""
    episodes = EPISODES if task.speed is None else 0
    command = [sys.executable, "-m", "benchmarks.sb3.peer", task.name, "--seed", str(seed), "--steps", str(steps),
               "--episodes", str(episodes), *([] if threads is None else ["--threads", str(threads)])]  # fmt: skip
    with (folder / "peer.log").open("w") as errors:
        done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=errors, text=True, timeout=LIMIT_SEC)
    if done.returncode:
        raise Failed(f"{task.algorithm} ended with code {done.returncode}: {(folder / 'peer.log').read_text()[-1000:]}")
    found = json.loads(done.stdout.splitlines()[-1])
    mean = sum(found["returns"]) / len(found["returns"]) if found["returns"] else 0.0
    return Outcome(mean, found["steps"] / found["seconds"])


if __name__ == "__main__":
    sys.exit(main())
