"""`make bench-tables`: what the rules of the board and card games cost, and the start of their workers.

Every figure is measured once in each repeat, with other games; printed is the median, and the least and the most.
Times of calls are processor time of one thread.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median

from benchmarks.harness.promises import Promise
from benchmarks.harness.report import conditions, in_one_line, markdown_table, write_json
from benchmarks.tables.games import evaluate_hands, legal_moves, play_ofc, set_fantasyland
from benchmarks.tables.memory import UNROLL_LENGTH, session_memory
from benchmarks.tables.worker_start import start_worker

START_PROMISES = {"s": 10.0, "MB": 400.0}


@dataclass(frozen=True)
class Measure:
    """One measurement.

    Attributes:
        run: by the number of the repeat; its figures, each named by its unit.
        promised: upper bounds of figures.
    """

    name: str
    title: str
    run: Callable[[int], Mapping[str, float]]
    promised: Mapping[str, float]


@dataclass(frozen=True)
class Found:
    """One figure, in every repeat."""

    title: str
    values: Sequence[float]
    promised: float | None

    @property
    def promise(self) -> Promise | None:
        """None where nothing is promised."""
        return None if self.promised is None else Promise(self.title, median(self.values), self.promised, False)

    def row(self) -> tuple[str, ...]:
        """Title, median, least and most, what is promised, verdict."""
        bound = ("", "") if (promise := self.promise) is None else (promise.shown[1], promise.verdict)
        least, most = min(self.values), max(self.values)
        return self.title, _short(median(self.values)), f"{_short(least)} to {_short(most)}", *bound


def measures(games: int, folder: Path) -> list[Measure]:
    """All of them; `games` random games of Blokus, and as much else in proportion."""
    starts = [
        Measure(
            f"start_{config}_{name}", f"worker of {title}, {what} numba's cache: to its first decision", run,
            START_PROMISES,
        )
        for config, title in (("blokus", "Blokus"), ("ofc", "OFC"))
        for name, what, run in (
            ("compiled", "without", partial(_start, config, folder, cached=False)),
            ("cached", "with", partial(_start, config, folder, cached=True)),
        )
    ]  # fmt: skip
    return [
        Measure(
            "duo", "Blokus Duo, legal moves of a position",
            partial(legal_moves, ["blokus.variant=duo"], games), {"median us": 40.0},
        ),
        Measure(
            "classic", "Blokus Classic, four players, legal moves of a position",
            partial(legal_moves, ["blokus.variant=classic"], games), {"median us": 120.0},
        ),
        Measure("evaluator", "OFC, a hand of five cards", partial(evaluate_hands, 1_000 * games), {}),
        *(
            Measure(
                f"fantasyland_{cards}", f"OFC, a board of {cards} cards in Fantasyland",
                partial(set_fantasyland, cards, 5 * games), {"most ms": most},
            )
            for cards, most in ((14, 50.0), (17, 2000.0))
        ),
        Measure(
            "self_play", "OFC, random self-play of three with observation and mask", partial(play_ofc, 20 * games), {}
        ),
        *starts,
        Measure(
            "memory", f"recorded session of Blokus Classic, unroll of {UNROLL_LENGTH}, by its layout",
            lambda _: session_memory(), {},
        ),
    ]  # fmt: skip


def _start(config: str, folder: Path, repeat: int, *, cached: bool) -> Mapping[str, float]:
    """`cached`: with what the start before, without a cache, has compiled in this repeat."""
    cache = folder / f"numba-{config}-{repeat}"
    if not cached:
        cache.mkdir()
    elif not cache.exists():
        start_worker(config, folder / f"{config}-{repeat}-first", cache)
    return start_worker(config, folder / f"{config}-{repeat}-{cached}", cache)


def main() -> int:
    """Exit code 1 where a promise is not kept."""
    options = _options()
    found: dict[tuple[str, str], list[float]] = {}
    with tempfile.TemporaryDirectory(prefix="simul-tables-") as folder:
        wanted = [m for m in measures(options.games, Path(folder)) if not options.only or m.name in options.only]
        for repeat in range(options.repeats):
            for measure in wanted:
                sys.stderr.write(f"repeat {repeat + 1} of {options.repeats}: {measure.title}\n")
                for unit, value in measure.run(repeat).items():
                    found.setdefault((measure.name, unit), []).append(value)
    by_name = {measure.name: measure for measure in wanted}
    rows = [
        Found(f"{by_name[name].title}, {unit}", values, by_name[name].promised.get(unit))
        for (name, unit), values in found.items()
    ]
    facts = conditions(repeats=options.repeats, games=options.games)
    sys.stdout.write(f"{table(rows) if options.markdown else text(rows)}\n\n{in_one_line(facts)}\n")
    if options.json:
        figures = [{"name": f"{name}, {unit}", "values": values} for (name, unit), values in found.items()]
        write_json(options.json, {"conditions": facts, "figures": figures})
    return int(any(row.promise is not None and not row.promise.kept for row in rows))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--games", type=int, default=60, help="of Blokus in each repeat; hands of OFC in proportion")
    parser.add_argument("--only", nargs="+", choices=[m.name for m in measures(1, Path())], help="default: all")
    parser.add_argument("--markdown", action="store_true", help="print a Markdown table")
    parser.add_argument("--json", type=Path, metavar="F", help="write what was found to F")
    options = parser.parse_args()
    if min(options.repeats, options.games) < 1:
        parser.error("expected at least one repeat of at least one game")
    return options


def table(rows: Sequence[Found]) -> str:
    """As Markdown."""
    return markdown_table(("what", "found", "least to most", "promised", ""), [row.row() for row in rows])


def text(rows: Sequence[Found]) -> str:
    """A line each."""
    return "\n".join("  ".join(part for part in row.row() if part) for row in rows)


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


if __name__ == "__main__":
    sys.exit(main())
