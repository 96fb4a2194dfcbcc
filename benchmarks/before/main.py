"""`make bench-before BEFORE=REVISION`: this tree beside an older one, in alternating pairs.

Cells are an inference server with clients, and whole training runs. Printed is the median of the ratios this / before,
and the interval that holds the median with at least 95% (order statistics of the pairs; of fewer than six pairs, all
that was found). `--itself` measures the older tree a second time in each pair: what the machine makes of equal trees.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from math import comb
from pathlib import Path
from statistics import median

from benchmarks.before.subjects import Figures, Served, Subject, Trained
from benchmarks.before.trees import worktree
from simul.common.runtime.installation import ROOT

PRECISIONS = ("float32", "bfloat16")
SERVED = {
    "4x32": {"clients": 4, "envs": 32},
    "4x32 recorded": {"clients": 4, "envs": 32, "record": True},
    "1x1": {"clients": 1, "envs": 1},
}
TRAINED = ("pokemon", "cartpole")
WORDS = {"cpu_us": "processor time an action", "rate": "actions a second", "p50_us": "p50 of a round trip"}
MOST_CPU = 1 / 0.95  # this / before: more processor time than that is a loss
AGAIN = "before again"

Round = dict[str, Figures]  # by `this`, `before` and AGAIN


def main() -> int:
    """Exit code 1 where this tree takes more than MOST_CPU of the older one's processor time in a cell."""
    options = _parser().parse_args()
    cells = options.cell or [*SERVED]
    lost = False
    with worktree(options.before) as before:
        for name in cells:
            for precision in (options.precision or PRECISIONS) if name in SERVED else ("",):
                title = f"{name} {precision}".strip()
                make = _maker(name, precision)
                rounds = measure_rounds(title, make, before, options.pairs, options.seconds, options.itself)
                if loses(rounds):  # of so few pairs: twice as many decide
                    rounds += measure_rounds(title, make, before, options.pairs, options.seconds, options.itself)
                lost |= loses(rounds)
                sys.stdout.write("".join(f"{line}\n" for line in report(title, rounds)))
                sys.stdout.flush()
    return int(lost)


def measure_rounds(
    title: str, make: Callable[[Path], Subject], before: Path, count: int, seconds: float, itself: bool
) -> list[Round]:
    """So many rounds of each tree once; each round begins with another one."""
    trees = {"this": ROOT, "before": before, **({AGAIN: before} if itself else {})}
    rounds = []
    with ExitStack() as opened:
        subjects = {}
        for name, tree in trees.items():
            subjects[name] = make(tree)
            opened.callback(subjects[name].close)
        names = [*subjects]
        for number in range(count):
            first = number % len(names)
            found = {name: subjects[name].measure(seconds) for name in (*names[first:], *names[:first])}
            rounds.append(found)
            shown = ", ".join(f"{name} {found[name]['cpu_us']:.1f}" for name in names)
            sys.stderr.write(f"{title}: pair {number + 1} of {count}: us of processor time: {shown}\n")
    return rounds


def loses(rounds: Sequence[Round]) -> bool:
    """Whether the median pair takes more than MOST_CPU."""
    return median(ratios(rounds, "cpu_us")) > MOST_CPU


def ratios(rounds: Sequence[Round], figure: str, of: str = "this") -> list[float]:
    """`of` / before, a round each."""
    return [found[of][figure] / found["before"][figure] for found in rounds]


def report(title: str, rounds: Sequence[Round]) -> list[str]:
    """A line a figure."""
    lines = []
    for figure in rounds[0]["this"]:
        line = f"{title}: {WORDS[figure]}: {_shown(ratios(rounds, figure))} of {len(rounds)} pairs"
        if AGAIN in rounds[0]:
            line += f"; the older tree beside itself {_shown(ratios(rounds, figure, AGAIN))}"
        lines.append(line)
    return lines


def interval(values: Sequence[float]) -> tuple[float, float]:
    """The narrowest pair of order statistics between which the median lies with at least 95%."""
    ordered, n = sorted(values), len(values)
    cut, outside = 0, 2 * 0.5**n
    while (wider := outside + 2 * comb(n, cut + 1) * 0.5**n) <= 0.05:
        cut, outside = cut + 1, wider
    return ordered[cut], ordered[-1 - cut]


def _shown(values: Sequence[float]) -> str:
    low, high = interval(values)
    return f"{median(values):.3f} [{low:.3f}, {high:.3f}]"


def _maker(name: str, precision: str) -> Callable[[Path], Subject]:
    if name in SERVED:
        return lambda tree: Served(tree, precision, SERVED[name])
    return lambda tree: Trained(tree, name)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("before", help="the older revision")
    parser.add_argument("--cell", choices=(*SERVED, *TRAINED), action="append", help="default: those that serve")
    parser.add_argument("--pairs", type=int, default=10, help="and as many more where this tree loses")
    parser.add_argument("--seconds", type=float, default=2.0, help="length of one window")
    parser.add_argument("--precision", choices=PRECISIONS, action="append", help="of cells that serve; default: both")
    parser.add_argument("--itself", action="store_true", help="the older tree beside itself, too")
    return parser
