"""`make bench-before BEFORE=REVISION`: serving of this tree beside an older one, in alternating pairs.

Both servers run the whole time, pinned to one core, and serve equal clients in turn. Printed is the median
of the ratios this / before, and the interval that holds the median with at least 95% (order statistics of the pairs; of
fewer than six pairs, all that was found).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from math import comb
from pathlib import Path
from statistics import median
from typing import Any

TREE = Path(__file__).resolve().parents[2]
CHILD = Path(__file__).with_name("stand_of_tree.py")
CELLS: dict[str, dict[str, Any]] = {
    "4x32": {"clients": 4, "envs": 32},
    "4x32 recorded": {"clients": 4, "envs": 32, "record": True},
    "1x1": {"clients": 1, "envs": 1},
}
FIGURES = {"cpu_us": "processor time an action", "rate": "actions a second", "p50_us": "p50 of a round trip"}


class ServedTree:
    """A server and its clients from one tree."""

    def __init__(self, tree: Path, precision: str) -> None:
        threads = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
        self._process = subprocess.Popen(
            [sys.executable, "-P", str(CHILD), precision], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=tree,
            env={**os.environ, **threads, "PYTHONPATH": str(tree)}, text=True,
        )  # fmt: skip

    def wait_ready(self) -> None:
        """Raises RuntimeError where the process ends instead."""
        assert self._process.stdout is not None
        if self._process.stdout.readline() != "ready\n":
            raise RuntimeError("the tree's server did not become ready")

    def measure(self, cell: dict[str, Any], seconds: float) -> dict[str, float]:
        """One window of one cell."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({**cell, "seconds": seconds}) + "\n")
        self._process.stdin.flush()
        found: dict[str, float] = json.loads(self._process.stdout.readline())
        return found

    def close(self) -> None:
        """Close its stdin, which ends it and what it started."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


@contextmanager
def worktree(revision: str) -> Iterator[Path]:
    """The tree at `revision`, in a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="simul-before-") as folder:
        tree = Path(folder) / "tree"
        subprocess.run(["git", "worktree", "add", "--quiet", "--detach", str(tree), revision], cwd=TREE, check=True)
        try:
            yield tree
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", str(tree)], cwd=TREE, check=True)


def interval(ratios: list[float]) -> tuple[float, float]:
    """The narrowest pair of order statistics between which the median lies with at least 95%."""
    ordered, n = sorted(ratios), len(ratios)
    cut, outside = 0, 2 * 0.5**n
    while (wider := outside + 2 * comb(n, cut + 1) * 0.5**n) <= 0.05:
        cut, outside = cut + 1, wider
    return ordered[cut], ordered[-1 - cut]


def main() -> int:
    """Exit code 1 where the interval of a ratio of processor times lies wholly beyond 3% loss."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("before", help="the older revision")
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=2.0, help="length of one window")
    parser.add_argument("--precision", choices=("float32", "bfloat16"), action="append", help="default: both")
    options = parser.parse_args()
    lost = False
    with worktree(options.before) as before:
        for precision in options.precision or ("float32", "bfloat16"):
            for name, pairs in _pairs(before, precision, options.pairs, options.seconds).items():
                for figure, words in FIGURES.items():
                    ratios = [this[figure] / that[figure] for this, that in pairs]
                    low, high = interval(ratios)
                    sys.stdout.write(f"{precision} {name}: {words}: {median(ratios):.3f} [{low:.3f}, {high:.3f}]\n")
                    lost |= figure == "cpu_us" and low > 1.03
    return int(lost)


def _pairs(
    before: Path, precision: str, count: int, seconds: float
) -> dict[str, list[tuple[dict[str, float], dict[str, float]]]]:
    """By cell: (this tree's figures, the older tree's), one pair a round; the trees alternate in going first."""
    found: dict[str, list[tuple[dict[str, float], dict[str, float]]]] = {name: [] for name in CELLS}
    with ExitStack() as opened:
        trees = [ServedTree(tree, precision) for tree in (TREE, before)]
        for tree in trees:
            opened.callback(tree.close)
        for tree in trees:
            tree.wait_ready()
        for number in range(count):
            sys.stderr.write(f"{precision}: pair {number + 1} of {count}\n")
            for name, cell in CELLS.items():
                turns = trees if number % 2 else trees[::-1]
                results = {tree: tree.measure(cell, seconds) for tree in turns}
                found[name].append((results[trees[0]], results[trees[1]]))
    return found
