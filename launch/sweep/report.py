"""What a sweep shows and leaves: its table, a picture of what mattered, and the best configuration as YAML."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import matplotlib
import msgspec
import yaml
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullFormatter
from rich.live import Live
from rich.table import Table

from simul.common.runtime.private_files import replace_file
from simul.common.runtime.terminal_console import table_console
from simul.launch.monitoring.view.output import standard_output
from simul.launch.sweep.study import Tried
from simul.launch.sweep.trial import Plan

matplotlib.use("Agg")
matplotlib.rcParams["text.parse_math"] = False

BEST, PICTURE = "best.yaml", "sweep.png"
PLAIN_EVERY_SEC = 5.0
MOST_ROWS = 15  # of the table while the sweep runs
MOST_PANELS = 7  # keys whose values are drawn
ACROSS, SIDE = 4, 3.4  # panels in a row; inches of one
COLORS = {"finished": "#1f77b4", "pruned": "#bbbbbb", "failed": "#d62728", "running": "#ff7f0e"}


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


def draw_picture(folder: Path, tried: Sequence[Tried], shares: Mapping[str, float]) -> Path:
    """sweep.png: scores in order, how much each key mattered, and the score over each key's values. Raises OSError."""
    scored = [each for each in tried if each.steps or each.score is not None]
    names = list(shares) or list(dict.fromkeys(key for each in scored for key in each.values))
    panels = 1 + bool(shares) + len(names[:MOST_PANELS])
    rows = math.ceil(panels / ACROSS)
    figure = Figure(figsize=(SIDE * min(panels, ACROSS), SIDE * rows), layout="constrained")
    axes = [figure.add_subplot(rows, min(panels, ACROSS), place + 1) for place in range(panels)]
    _draw_scores(axes[0], scored)
    if shares:
        ordered = sorted(shares.items(), key=lambda item: item[1])
        axes[1].barh([key for key, _ in ordered], [share for _, share in ordered], color=COLORS["finished"])
        _label(axes[1], "share of the difference in scores", "", "What mattered (PED-ANOVA)")
    for each, name in zip(axes[1 + bool(shares) :], names):
        _draw_values(each, scored, name)
    figure.savefig(folder / PICTURE, dpi=120)
    return folder / PICTURE


def _draw_scores(axes: Axes, scored: Sequence[Tried]) -> None:
    for state, color in COLORS.items():
        own = [each for each in scored if each.state == state]
        if own:
            axes.scatter([each.number for each in own], [_newest(each) for each in own], c=color, s=14, label=state)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    _label(axes, "trial", "score", "Scores; of pruned ones the last")
    if scored:
        axes.legend(frameon=False)


def _draw_values(axes: Axes, scored: Sequence[Tried], name: str) -> None:
    own = [each for each in scored if name in each.values and each.state in ("finished", "pruned")]
    own.sort(key=lambda each: _order(each.values[name]))  # of choices, the axis has that order
    values = [each.values[name] for each in own]
    if (
        not any(isinstance(value, str) for value in values)
        and values
        and min(values) > 0
        and max(values) > 20 * min(values)
    ):
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, place: f"{value:g}"))
        axes.xaxis.set_minor_formatter(NullFormatter())
    axes.scatter(values, [_newest(each) for each in own], c=[COLORS[each.state] for each in own], s=14)
    _label(axes, name, "score", "")


def _order(value: object) -> tuple[bool, float, str]:
    """Numbers by value, also those that are written as choices, before other text."""
    try:
        return (False, float(str(value)), "")
    except ValueError:
        return (True, 0.0, str(value))


def _newest(tried: Tried) -> float:
    return tried.score if tried.score is not None else tried.steps[-1][1]


def _label(axes: Axes, x: str, y: str, title: str) -> None:
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.set_title(title, fontsize=9)
    axes.grid(alpha=0.3)
    axes.set_axisbelow(True)
