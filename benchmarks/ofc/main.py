"""`make bench-ofc`: decisions of Open Face Chinese learned from a second, beside sb3-contrib's MaskablePPO.

The same rules, observations, masks, rewards and cores, one side after the other in each repeat. Ours plays all three
seats itself and learns from all; MaskablePPO (SubprocVecEnv of 4 envs) learns from one seat against two scripted ones.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

from benchmarks.harness.cores import claim_cores
from benchmarks.harness.processes import MeasurementFailed, last_lines, start, stop
from benchmarks.harness.promises import Promise, promises_table
from benchmarks.harness.report import conditions, in_one_line, markdown_table, write_json
from benchmarks.ofc.ours import learn
from benchmarks.ofc.settings import OURS, PEERS, TITLES

PROMISED = 5.0  # times the better of the peer's settings
Rate = Mapping[str, float]  # per_sec, cpu_us


def main() -> int:
    """Exit code 0 when the promise is kept, 1 when not, 2 without the peers' environment."""
    options = _options()
    if importlib.util.find_spec("sb3_contrib") is None:
        sys.stderr.write("Stable-Baselines3 is not installed; `make bench-ofc` installs it into .venv-sb3.\n")
        return 2
    facts = conditions(
        cores_used=len(claim_cores()), repeats=options.repeats, seconds=options.seconds, opponent=options.opponent
    )
    found: dict[str, list[Rate]] = {name: [] for name in TITLES if not options.only or name in options.only}
    with tempfile.TemporaryDirectory(prefix="simul-ofc-") as folder:
        for repeat in range(options.repeats):
            for name in list(found)[:: -1 if repeat % 2 else 1]:
                found[name].append(measure(name, repeat, Path(folder), options))
                sys.stderr.write(f"repeat {repeat + 1}, {name}: {found[name][-1]['per_sec']:,.0f} a second\n")
    lines = promises(found)
    verdicts = promises_table(lines) if options.markdown and lines else "\n".join(map(str, lines))
    sys.stdout.write(f"{table(found)}\n\n{verdicts}\n\n{in_one_line(facts)}\n")
    if options.json:
        write_json(options.json, {"conditions": facts, "found": found, "lines": [line.as_dict() for line in lines]})
    return 0 if all(line.kept for line in lines) else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=20.0, help="length of one window")
    parser.add_argument("--warm-up-sec", type=float, default=5.0, help="of ours, before the window")
    parser.add_argument("--only", nargs="+", choices=TITLES, help="default: all")
    opponents = ("random", "rule_based", "fantasy_rules")
    parser.add_argument("--opponent", choices=opponents, default="random", help="in the peer's env")
    parser.add_argument("--set", action="append", default=[], metavar="K=V", help="further settings of ours")
    parser.add_argument("--markdown", action="store_true", help="print the promise as a table, too")
    parser.add_argument("--json", type=Path, metavar="F", help="write what was found to F")
    options = parser.parse_args()
    if options.repeats < 1:
        parser.error("expected at least one repeat")
    return options


def measure(name: str, repeat: int, folder: Path, options: argparse.Namespace) -> Rate:
    """One window of one side. Raises MeasurementFailed."""
    if name in OURS:
        overrides = [*OURS[name], f"seed={repeat + 1}", *options.set]
        return learn(folder / f"{name}-{repeat}", overrides, options.seconds, options.warm_up_sec)
    command = [
        sys.executable, "-P", "-m", "benchmarks.ofc.peer", name, "--seconds", str(options.seconds),
        "--seed", str(repeat + 1), "--opponent", options.opponent,
    ]  # fmt: skip
    log = folder / f"{name}-{repeat}.log"
    with log.open("wb") as output:
        process = start(command, output, stdout=subprocess.PIPE)
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
        finally:
            stop(process)
    if not line:
        raise MeasurementFailed(f"MaskablePPO ended without a result; the end of its log:\n{last_lines(log)}")
    rate: Rate = json.loads(line)
    return rate


def promises(found: Mapping[str, Sequence[Rate]]) -> list[Promise]:
    """Ours with the MLP against the faster setting of the peer; none where one side was not measured."""
    speeds, costs = ratios(found, "mlp"), ratios(found, "mlp", "cpu_us")
    if not speeds:
        return []
    title = "decisions learned from a second, ours with the MLP / the faster MaskablePPO"
    return [Promise(title, median(speeds), PROMISED, by_cpu=1 / median(costs))]


def ratios(found: Mapping[str, Sequence[Rate]], name: str, figure: str = "per_sec") -> list[float]:
    """By repeat: a figure of one side as a multiple of that of the peer's faster setting."""
    if name not in found or not (peers := [found[peer] for peer in PEERS if peer in found]):
        return []
    fastest = [max(each, key=lambda rate: rate["per_sec"]) for each in zip(*peers)]
    return [one[figure] / other[figure] for one, other in zip(found[name], fastest)]


def table(found: Mapping[str, Sequence[Rate]]) -> str:
    """As Markdown."""
    rows = []
    for name, rates in found.items():
        speeds, times = [rate["per_sec"] for rate in rates], ratios(found, name)
        rows.append((
            TITLES[name], f"{median(speeds):,.0f}", f"{min(speeds):,.0f} to {max(speeds):,.0f}",
            f"{median(rate['cpu_us'] for rate in rates):,.0f}", f"{median(times):.2f}" if times else "-",
        ))  # fmt: skip
    heads = ("", "learned from a second", "least to most", "us of processor time each", "times the faster MaskablePPO")
    return markdown_table(heads, rows)


if __name__ == "__main__":
    sys.exit(main())
