"""`make bench-strength`: how strong a policy becomes from random weights. Rows that are finished are not run again.

Each row has a folder in runs/strength: its run, which is resumed where it was stopped, and a JSON file of each match.
`--table levers --row annealed` fills single rows; without `--table` all there are. `--picture` draws their curves.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.harness.report import conditions, in_one_line, markdown_table
from benchmarks.learn_check import Failed, simul
from benchmarks.strength.curves import draw
from benchmarks.strength.rows import TABLES, Row
from simul.common.config.checkpoint_meta import checkpoint_folders, read_meta
from simul.common.runtime.installation import ROOT

GAMES = 3000  # mirrored, of each match
ENOUGH = 0.999  # of a row's decisions: a run stops a few short of them, or after them
FOLDER = ROOT / "runs" / "strength"
LIMIT_SEC = 24 * 3600.0
USED = "used.json"  # seconds, and those of one core, of all starts of a row's run


def main() -> int:
    """Exit code 0; 1 where a command failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--table", action="append", choices=TABLES, help="default: all")
    parser.add_argument("--row", action="append", metavar="NAME", help="only these rows")
    parser.add_argument("--games", type=int, default=GAMES, help="of each match (default: %(default)s)")
    parser.add_argument("--show", action="store_true", help="print what is finished, and run nothing")
    parser.add_argument("--picture", type=Path, metavar="FILE", help="draw the rows' curves, .png or .svg")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="default: %(default)s")
    options = parser.parse_args()
    shown: list[Row] = []
    for name in options.table or TABLES:
        rows = [row for row in TABLES[name] if not options.row or row.name in options.row]
        if not options.show:
            for row in rows:
                try:
                    fill(row, options.folder / row.name, options.games)
                except Failed as failure:
                    sys.stderr.write(f"{row.name}: {failure}\n")
                    return 1
        if rows:
            sys.stdout.write(f"{name}\n\n{table(rows, options.folder)}\n\n")
        shown += [row for row in rows if (options.folder / row.name / "run" / "curves.csv").exists()]
    if options.picture is not None:
        draw(shown, options.folder, options.picture)
    sys.stdout.write(f"{in_one_line(conditions(games=options.games))}\n")
    return 0


def fill(row: Row, folder: Path, games: int) -> None:
    """Train what the row lacks, then play the matches that it lacks. Raises Failed."""
    folder.mkdir(parents=True, exist_ok=True)
    while (answered := decisions_so_far(folder)) < ENOUGH * row.decisions:
        _say(row, f"trains from {answered:,} of {row.decisions:,} decisions")
        _train(row, folder, row.decisions - answered)
    for opponent in row.opponents:
        if not (file := folder / f"{opponent}.json").exists():
            _say(row, f"plays {games:,} battles against {opponent}")
            wanted = ["--checkpoint", str(folder / "run"), "--opponent", opponent, "--games", str(games)]
            file.write_text(simul(["eval", *wanted, "--workers", "2", "--json"], folder / "eval.log", LIMIT_SEC))


def decisions_so_far(folder: Path) -> int:
    """Answered decisions of all starts of a row's run; after a kill those learned until its newest checkpoint."""
    newest = checkpoint_folders(folder / "run" / "checkpoints")[:1]
    learned = read_meta(newest[0]).decisions if newest else 0
    try:
        summary: Mapping[str, Any] = json.loads((folder / "run" / "summary.json").read_text())
    except FileNotFoundError:
        return learned
    return max(int(summary["run_decisions"]), learned)


def table(rows: Sequence[Row], folder: Path) -> str:
    """The finished rows as a Markdown table: win rates with Wilson's 95% interval, and what they took."""
    opponents = list(dict.fromkeys(name for row in rows for name in row.opponents))
    lines = []
    for row in rows:
        used = _used(folder / row.name)
        lines.append((
            row.name, f"{row.decisions:,}", str(row.seed),
            *(_rate(folder / row.name / f"{name}.json") if name in row.opponents else "" for name in opponents),
            f"{used['core_sec'] / 3600:.2f}", f"{used['sec'] / 60:.0f}",
        ))  # fmt: skip
    return markdown_table(("row", "decisions", "seed", *opponents, "core-hours", "minutes"), lines)


def _rate(file: Path) -> str:
    if not file.exists():
        return "-"
    result = json.loads(file.read_text())
    low, high = result["wilson_95"]
    return f"{result['win_rate']:.3f} [{low:.3f}, {high:.3f}]"


def _train(row: Row, folder: Path, decisions: int) -> None:
    """One start of its run. Raises Failed."""
    changes = [part for setting in (f"seed={row.seed}", *row.settings) for part in ("--set", setting)]
    began, cores = time.monotonic(), _core_sec()
    try:
        simul(
            ["up", row.config, "--plain", "--run-dir", str(folder / "run"),
             "--stop-after-decisions", str(decisions), *changes],
            folder / "up.log", LIMIT_SEC,
        )  # fmt: skip
    finally:
        before = _used(folder)
        used = {
            "sec": before["sec"] + time.monotonic() - began,
            "core_sec": before["core_sec"] + _core_sec() - cores,
        }
        (folder / USED).write_text(json.dumps(used))


def _used(folder: Path) -> Mapping[str, float]:
    if not (folder / USED).exists():
        return {"sec": 0.0, "core_sec": 0.0}
    found: dict[str, float] = json.loads((folder / USED).read_text())
    return found


def _core_sec() -> float:
    """Processor time of all processes that this one has waited for, in seconds of one core."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _say(row: Row, sentence: str) -> None:
    sys.stderr.write(f"{time.strftime('%H:%M:%S')} {row.name}: {sentence}\n")


if __name__ == "__main__":
    sys.exit(main())
