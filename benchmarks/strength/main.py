"""`make bench-strength`: how strong a policy becomes from random weights. Rows that are finished are not run again.

Each row has a folder in runs/strength: its run, which is resumed where it was stopped, and a JSON file of each match.
`--table ablation --row wide` fills single rows; without `--table` all there are. `--picture` draws their curves.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.harness.report import markdown_table
from benchmarks.learn_check import GRACE_SEC, Failed, simul
from benchmarks.strength.curves import draw
from benchmarks.strength.results import (
    UNKNOWN,
    Match,
    Summary,
    Used,
    conditions_now,
    read_file,
    read_match,
    read_used,
    write_match,
    write_used,
)
from benchmarks.strength.rows import TABLES, Row
from simul.common.checkpoints.meta import checkpoint_folders, read_meta
from simul.common.errors import ConfigError, SimulError
from simul.common.role.run_directory import RunDir
from simul.common.role.run_lock import living_owner
from simul.common.runtime.file_lock import hold_lock
from simul.common.runtime.installation import ROOT
from simul.launch.evaluation.picture import check_picture
from simul.launch.option_types import count

GAMES = 3000  # mirrored, of each match
ENOUGH = 0.999  # of a row's decisions: a run stops a few short of them, or after them
FOLDER = ROOT / "runs" / "strength"
LIMIT_SEC = 24 * 3600.0
LOCK = "row.lock"


def main() -> int:
    """Exit code 0; 1 where a row could not be filled."""
    options = _options()
    shown: list[Row] = []
    try:
        for name in options.table:
            rows = [row for row in TABLES[name] if not options.row or row.name in options.row]
            for row in rows if not options.show else ():
                fill(row, options.folder / row.name, options.games)
            if rows:
                sys.stdout.write(f"{name}\n\n{table(rows, options.folder)}\n\n")
            shown += rows
        if options.picture is not None and not draw(shown, options.folder, options.picture):
            sys.stderr.write(f"None of these rows has a curve yet; {options.picture} is not drawn.\n")
    except (Failed, SimulError, OSError) as failure:
        sys.stderr.write(f"{failure}\n")
        return 1
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--table", action="append", choices=TABLES, help="default: all")
    parser.add_argument("--row", action="append", default=[], metavar="NAME", help="only these rows")
    parser.add_argument("--games", type=count, default=GAMES, help="of each match (default: %(default)s)")
    parser.add_argument("--show", action="store_true", help="print what is finished, and run nothing")
    parser.add_argument("--picture", type=Path, metavar="FILE", help="draw the rows' curves, .png or .svg")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="default: %(default)s")
    options = parser.parse_args()
    options.table = options.table or list(TABLES)
    names = [row.name for table in options.table for row in TABLES[table]]
    for name in options.row:
        if name not in names:
            parser.error(f"--row {name}: expected one of {', '.join(names)}")
    try:
        if options.picture is not None:
            check_picture("--picture", options.picture)
    except ConfigError as error:
        parser.error(str(error))
    return options


def fill(row: Row, folder: Path, games: int) -> None:
    """Train what the row lacks, then play the matches that it lacks, or of which fewer games were played.

    Raises Failed, OSError, and SimulError where another process fills the row.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with hold_lock(folder / LOCK, f"Another process fills {folder}. Wait for it, stop it, or choose another --folder."):
        _await_end(folder)
        while (answered := decisions_so_far(folder)) < ENOUGH * row.decisions:
            _say(row, f"trains from {answered:,} of {row.decisions:,} decisions")
            _train(row, folder, row.decisions - answered)
        for opponent in row.opponents:
            played = read_match(folder, opponent)
            if played is None or played.episodes < games:
                _say(row, f"plays {games:,} battles against {opponent}")
                _play(folder, opponent, games)


def decisions_so_far(folder: Path) -> int:
    """Answered decisions of all starts of a row's run; after a kill those learned until its newest checkpoint."""
    newest = checkpoint_folders(folder / "run" / "checkpoints")[:1]
    learned = read_meta(newest[0]).decisions if newest else 0
    summary = read_file(folder / "run" / "summary.json", Summary)
    return max(int(summary.run_decisions), learned) if summary else learned


def table(rows: Sequence[Row], folder: Path) -> str:
    """The finished rows as a Markdown table: win rates with Wilson's 95% interval, and what they took.

    `?`: a start was killed, or goes on. Conditions are shown where they were kept.
    """
    opponents = list(dict.fromkeys(name for row in rows for name in row.opponents))
    lines = []
    for row in rows:
        played = {name: read_match(folder / row.name, name) for name in row.opponents}
        used = read_used(folder / row.name)
        lines.append((
            row.name, f"{row.decisions:,}", str(row.seed),
            *(_rate(played[name]) if name in played else "" for name in opponents),
            _battles([match for match in played.values() if match]),
            _time(used, used.core_sec / 3600, 2), _time(used, used.sec / 60, 0),
            _conditions([*used.conditions, *(match.conditions for match in played.values() if match)]),
        ))  # fmt: skip
    heads = ("row", "decisions", "seed", *opponents, "battles", "core-hours", "minutes", "conditions")
    return markdown_table(heads, lines)


def _rate(match: Match | None) -> str:
    if match is None:
        return "-"
    low, high = match.wilson_95
    return f"{match.win_rate:.3f} [{low:.3f}, {high:.3f}]"


def _battles(matches: Sequence[Match]) -> str:
    """Of each match, or once where all have as many."""
    numbers = [f"{match.episodes:,}" for match in matches]
    return numbers[0] if len(set(numbers)) == 1 else " and ".join(numbers) or "-"


def _time(used: Used, value: float, digits: int) -> str:
    return "?" if used.uncounted else f"{value:.{digits}f}" if used.sec else "-"


def _conditions(found: Sequence[str]) -> str:
    different = list(dict.fromkeys(found))
    return "" if different == [UNKNOWN] else "; ".join(different)


def _await_end(folder: Path) -> None:
    """Of a run whose starter was killed: it stops by itself, and writes its last checkpoint."""
    deadline = time.monotonic() + GRACE_SEC
    while living_owner(RunDir(folder / "run")) is not None and time.monotonic() < deadline:
        time.sleep(0.2)


def _train(row: Row, folder: Path, decisions: int) -> None:
    """One start of its run. Raises Failed."""
    changes = [part for setting in (f"seed={row.seed}", *row.settings) for part in ("--set", setting)]
    before = read_used(folder)
    under = list(dict.fromkeys([*before.conditions, conditions_now()]))
    write_used(folder, Used(before.sec, before.core_sec, before.uncounted + 1, under))
    began, cores = time.monotonic(), _core_sec()
    try:
        simul(
            ["up", row.config, "--plain", "--run-dir", str(folder / "run"),
             "--stop-after-decisions", str(decisions), *changes],
            folder / "up.log", LIMIT_SEC,
        )  # fmt: skip
    finally:
        sec, core_sec = before.sec + time.monotonic() - began, before.core_sec + _core_sec() - cores
        write_used(folder, Used(sec, core_sec, before.uncounted, under))


def _play(folder: Path, opponent: str, games: int) -> None:
    """One match. Raises Failed."""
    under = conditions_now()
    wanted = ["--checkpoint", str(folder / "run"), "--opponent", opponent, "--games", str(games)]
    printed = simul(["eval", *wanted, "--workers", "2", "--json"], folder / "eval.log", LIMIT_SEC)
    try:
        write_match(folder, opponent, printed, under)
    except ValueError as error:
        raise Failed(f"`simul eval` printed no result of a match: {error}") from None


def _core_sec() -> float:
    """Processor time of all processes that this one has waited for, in seconds of one core."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _say(row: Row, sentence: str) -> None:
    sys.stderr.write(f"{time.strftime('%H:%M:%S')} {row.name}: {sentence}\n")


if __name__ == "__main__":
    sys.exit(main())
