"""What a sweep shows and leaves: its table, and the best configuration as YAML."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec
import yaml
from rich.live import Live
from rich.table import Table

from simul.common.runtime.private_files import replace_file
from simul.common.runtime.terminal_console import table_console
from simul.launch.monitoring.view.output import standard_output
from simul.launch.sweep.study import Tried
from simul.launch.sweep.trial import Plan

BEST = "best.yaml"
PLAIN_EVERY_SEC = 5.0
MOST_ROWS = 15  # of the table while the sweep runs


class SweepView:
    """A table that follows the trials on a terminal, plain lines elsewhere; at the end the whole table."""

    def __init__(self, trials: int, decisions: int) -> None:
        """`trials`: of the sweep; `decisions`: of each."""
        self._trials, self._decisions = trials, decisions
        self._console = table_console(standard_output())
        self._live: Live | None = None
        self._next = 0.0
        if self._console.is_terminal:
            self._live = Live(console=self._console, auto_refresh=False, transient=True)
            self._live.start()

    def say(self, sentence: str) -> None:
        """Show an event."""
        self._console.print(sentence, soft_wrap=True)

    def update(self, trials: Callable[[], Sequence[Tried]], decisions: Mapping[int, int]) -> None:
        """Show new figures; called often. `decisions`: of those that run, by number."""
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + (0.5 if self._live is not None else PLAIN_EVERY_SEC)
        tried = trials()
        if self._live is not None:
            self._live.update(trial_table(tried[-MOST_ROWS:], self._progress(decisions)), refresh=True)
            return
        ended = sum(each.state != "running" for each in tried)
        parts = [f"trial {number} {words}" for number, words in self._progress(decisions).items()]
        self.say(f"{ended} of {self._trials} trials ended; {', '.join(parts) or 'none runs'}")

    def close(self, tried: Sequence[Tried]) -> None:
        """Restore the terminal and print the whole table."""
        if self._live is not None:
            self._live.stop()
            self._live = None
        self._console.print(trial_table(tried))

    def _progress(self, decisions: Mapping[int, int]) -> dict[int, str]:
        return {number: f"at {count:,} of {self._decisions:,}" for number, count in decisions.items()}


def trial_table(tried: Sequence[Tried], progress: Mapping[int, str] | None = None) -> Table:
    """One row a trial, with its newest score and its settings. `progress`: of those that run, by number."""
    best = max((each.score for each in tried if each.score is not None), default=None)
    keys = list(dict.fromkeys(key for each in tried for key in each.values))
    table = Table("trial", "state", "score")
    for key in keys:
        table.add_column(key, overflow="fold")
    for each in tried:
        newest = each.score if each.score is not None else (each.steps[-1][1] if each.steps else None)
        state = f"{each.state} {(progress or {}).get(each.number, '')}".rstrip()
        mark = " *" if each.score is not None and each.score == best else ""
        score = "" if newest is None else f"{newest:.4g}{mark}"
        table.add_row(str(each.number), state, score, *(_short(each.values.get(key, "")) for key in keys))
    return table


def _short(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def write_best(folder: Path, plan: Plan, best: Tried, trials: int) -> Path:
    """best.yaml: a configuration that `simul up` takes; its run directory is one of its own. Raises OSError."""
    config = plan.load_best(best.number, best.settings, f"runs/{folder.name}-best")
    head = (
        f"# The best of {trials} trials of `simul sweep {plan.config}`: trial {best.number}, score {best.score:.4g}.\n"
        f"# {', '.join(best.settings)}\n\n"
    )
    replace_file(folder / BEST, (head + yaml.safe_dump(msgspec.to_builtins(config), sort_keys=False)).encode())
    return folder / BEST
