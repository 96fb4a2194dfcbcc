"""`python -m benchmarks.strength.curves ROW... --file PICTURE`: how strong the milestones of finished rows are.

Each milestone of a row's run plays each of the row's opponents; results are kept in the row's folder, so a second call
plays what is lacking only. Milestones before the end are those of a rate that has not fallen yet: only the last point
of a line is a run that ended its schedule.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.learn_check import Failed, simul
from benchmarks.strength.main import FOLDER, LIMIT_SEC
from benchmarks.strength.rows import TABLES, Row
from simul.common.config.checkpoint_meta import checkpoint_folders, read_meta

GAMES = 1000  # mirrored, of each match

Curve = list[tuple[int, float, float, float]]  # decisions, win rate, ends of its interval


def main() -> int:
    """Exit code 0; 1 where a match failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    rows = {row.name: row for table in TABLES.values() for row in table}
    parser.add_argument("row", nargs="+", choices=sorted(rows))
    parser.add_argument("--file", type=Path, required=True, help="the picture, .png or .svg")
    parser.add_argument("--games", type=int, default=GAMES, help="of each match (default: %(default)s)")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="of the rows (default: %(default)s)")
    options = parser.parse_args()
    try:
        curves = {
            f"{name}, {opponent}": curve(rows[name], options.folder / name, opponent, options.games)
            for name in options.row
            for opponent in rows[name].opponents
        }
    except Failed as failure:
        sys.stderr.write(f"{failure}\n")
        return 1
    draw(curves, options.file)
    return 0


def curve(row: Row, folder: Path, opponent: str, games: int) -> Curve:
    """Win rates of the milestones of a row's run, and of its end. Raises Failed."""
    points: Curve = []
    newest, *others = checkpoint_folders(folder / "run" / "checkpoints")
    for checkpoint in (*(other for other in reversed(others) if read_meta(other).milestone), newest):
        decisions = read_meta(checkpoint).decisions
        file = folder / f"{opponent}-{checkpoint.name}.json"
        if not file.exists():
            sys.stderr.write(f"{row.name}: {decisions:,} decisions against {opponent}\n")
            wanted = ["--checkpoint", str(checkpoint), "--opponent", opponent, "--games", str(games)]
            file.write_text(simul(["eval", *wanted, "--workers", "2", "--json"], folder / "eval.log", LIMIT_SEC))
        result = json.loads(file.read_text())
        points.append((decisions, result["win_rate"], *result["wilson_95"]))
    return points


def draw(curves: dict[str, Curve], file: Path) -> None:
    """A line for each curve."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.0), layout="constrained")
    axes = figure.subplots()
    for name, points in curves.items():
        decisions, rates, low, high = (_column(points, place) for place in range(4))
        (line,) = axes.plot(decisions, rates, marker=".", label=name)
        axes.fill_between(decisions, low, high, color=line.get_color(), alpha=0.15, linewidth=0)
    axes.set(xlabel="decisions learned from", ylabel="win rate", ylim=(0, 1), xlim=(0, None))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value / 1e6:g} M")
    axes.grid(color="0.9")
    axes.legend(loc="lower right")
    figure.savefig(file, metadata={"Date": None} if file.suffix == ".svg" else None)


def _column(points: Sequence[tuple[float, ...]], place: int) -> list[float]:
    return [point[place] for point in points]


if __name__ == "__main__":
    sys.exit(main())
