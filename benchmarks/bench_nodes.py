"""`make bench-nodes`: the simulator on every Node that is on this machine, stock and accelerated.

The same random battles of generation 9 on each, one live battle, one process at a time; what is compared is processor
time a decision. Which Node runs the simulator is decided by its version (`node.py`): this is why.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parents[1])  # started as a script: import from the checkout

from benchmarks.bench_acceleration import Pair, measure, ratio  # noqa: E402
from simul.common.runtime.machine_info import machine  # noqa: E402
from simul.env_worker.games.pokemon.simulator.node import candidates, find_node  # noqa: E402

GENERATION = 9


def main() -> int:
    """Exit code 0: nothing is promised."""
    parser = argparse.ArgumentParser(prog="bench_nodes")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--battles", type=int, default=60, help="of each repeat, after 20 to warm up")
    options = parser.parse_args()
    if min(options.repeats, options.battles) < 1:
        parser.error("expected at least one repeat of at least one battle")
    nodes = sorted({choice.version: choice for choice in candidates()}.values(), key=lambda choice: choice.major)
    measured: dict[str, list[Pair]] = {choice.version: [] for choice in nodes}
    for repeat in range(options.repeats):
        for choice in nodes:
            pair = measure(choice.path, GENERATION, options.battles, seed=repeat + 1, stock_first=repeat % 2 == 0)
            measured[choice.version].append(pair)
            sys.stderr.write(f"repeat {repeat + 1}, Node {choice.version}: {pair.stock:.0f}, {pair.accelerated:.0f}\n")
    chosen = find_node()
    conditions = {**machine(), "repeats": options.repeats, "battles": options.battles, "chosen": chosen.version}
    sys.stdout.write("\n".join([*table(measured), "", ", ".join(f"{k} {v}" for k, v in conditions.items()), ""]))
    return 0


def table(measured: Mapping[str, Sequence[Pair]]) -> list[str]:
    """Markdown: medians."""
    lines = ["| Node | stock us | accelerated us | stock / accelerated |", "|---|---:|---:|---:|"]
    for version, pairs in measured.items():
        stock, accelerated = (statistics.median(times) for times in zip(*pairs))
        lines.append(f"| {version} | {stock:.0f} | {accelerated:.0f} | {ratio(pairs):.2f} |")
    return lines


if __name__ == "__main__":
    sys.exit(main())
