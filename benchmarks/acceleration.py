"""`make bench-acceleration`: the stock simulator beside the accelerated one, in random battles of every generation.

Both play the same battles with the same choices, one live battle, one process at a time, on the same Node; what is
compared is their processor time a decision. Each repeat plays other battles, stock and accelerated one after the other.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import orjson

from benchmarks.harness.report import conditions, in_one_line, markdown_table
from simul.env_worker.games.pokemon.install.folder import HOST_FOLDER
from simul.env_worker.games.pokemon.install.node import find_node

SCRIPT = HOST_FOLDER / "measure" / "sim_bench.mjs"
GENERATIONS = range(1, 10)
PROMISED = {**dict.fromkeys(range(1, 9), 1.5), 9: 1.8}  # stock / accelerated
LONGEST_SEC = 300.0


class Pair(NamedTuple):
    """Microseconds of processor time a decision, of the same battles."""

    stock: float
    accelerated: float


def main() -> int:
    """Exit code 1 where a promise is not kept."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--battles", type=int, default=100, help="of each repeat, after 20 to warm up")
    parser.add_argument("--generations", type=int, nargs="+", choices=GENERATIONS, default=list(GENERATIONS))
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if min(options.repeats, options.battles) < 1:
        parser.error("expected at least one repeat of at least one battle")
    node = find_node()
    measured: dict[int, list[Pair]] = {gen: [] for gen in options.generations}
    for repeat in range(options.repeats):
        for gen, pairs in measured.items():
            pairs.append(measure(node.path, gen, options.battles, seed=repeat + 1, stock_first=repeat % 2 == 0))
            sys.stderr.write(f"repeat {repeat + 1}, gen {gen}: {pairs[-1].stock / pairs[-1].accelerated:.2f}\n")
    facts = conditions(node=node.version, repeats=options.repeats, battles=options.battles)
    if options.json:
        found = {
            "conditions": facts,
            "pairs": {str(gen): [p._asdict() for p in pairs] for gen, pairs in measured.items()},
        }
        sys.stdout.write(orjson.dumps(found).decode() + "\n")
    else:
        sys.stdout.write(f"{table(measured)}\n\n{in_one_line(facts)}\n")
    return 1 if broken(measured) else 0


def ratio(pairs: Sequence[Pair]) -> float:
    """How many times as fast: the median over the repeats."""
    return statistics.median(pair.stock / pair.accelerated for pair in pairs)


def broken(measured: Mapping[int, Sequence[Pair]]) -> list[int]:
    """Generations that are accelerated less than promised."""
    return [gen for gen, pairs in measured.items() if ratio(pairs) < PROMISED[gen]]


def table(measured: Mapping[int, Sequence[Pair]]) -> str:
    """Markdown: medians, and the range of the ratios."""
    rows = []
    for gen, pairs in measured.items():
        stock, accelerated = (statistics.median(times) for times in zip(*pairs))
        ratios = [pair.stock / pair.accelerated for pair in pairs]
        rows.append(
            [
                f"gen{gen}randombattle", f"{stock:.0f}", f"{accelerated:.0f}", f"{ratio(pairs):.2f}",
                f"{min(ratios):.2f} to {max(ratios):.2f}", f"{PROMISED[gen]}",
            ]
        )  # fmt: skip
    return markdown_table(("format", "stock us", "accelerated us", "stock / accelerated", "range", "promised"), rows)


def measure(node: Path, gen: int, battles: int, seed: int, *, stock_first: bool) -> Pair:
    """`battles` of a generation's random format, stock and accelerated."""
    found = {stock: _play(node, gen, battles, seed, stock=stock) for stock in (stock_first, not stock_first)}
    if found[True]["decisions"] != found[False]["decisions"]:
        raise RuntimeError(f"gen {gen}, seed {seed}: stock and accelerated did not play the same battles")
    return Pair(found[True]["cpu_us_per_decision"], found[False]["cpu_us_per_decision"])


def _play(node: Path, gen: int, battles: int, seed: int, *, stock: bool) -> dict[str, float]:
    command = [str(node), str(SCRIPT), f"--format=gen{gen}randombattle", f"--battles={battles}", f"--seed={seed}"]
    done = subprocess.run(
        [*command, *(["--no-accelerate"] if stock else [])], stdout=subprocess.PIPE, timeout=LONGEST_SEC, check=True
    )
    result: dict[str, float] = orjson.loads(done.stdout)
    if bool(result["accelerated"]) is stock:
        raise RuntimeError(f"the simulator ran {'accelerated' if stock else 'plain'}: is this the pinned version?")
    return result
