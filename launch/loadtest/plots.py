"""The plots of a load test, as PNG and SVG: what was measured, where, by which commit, and how far windows differed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullLocator

from simul.common.errors import ConfigError
from simul.launch.loadtest.results import Cell, best_setting

matplotlib.use("Agg")

SIZE_INCHES = (10.0, 5.6)
DOTS_PER_INCH = 200  # twice what a screen shows the figure at
STYLE: Any = {"font.size": 12.0, "axes.titlesize": 13.0, "legend.fontsize": 10.5, "svg.fonttype": "none"}
CAPTION_SHARE = 0.14  # of the height
COLORS = {"p50": "#2a6f97", "p90": "#e09f3e", "p99": "#9e2a2b", "rate": "#335c67", "forward": "#8a8a8a"}
PERCENTILES = ("p50", "p90", "p99")
FEW_TICKS = 10
HOLLOW = "hollow: not stable"
BARS = "bars: least and greatest window"

Draw = Callable[[Figure, Sequence[Cell]], Sequence[Cell]]  # returns the cells that are shown


def write_plots(folder: Path, cells: Sequence[Cell], conditions: Mapping[str, Any]) -> list[str]:
    """Draw every plot that the cells allow. Returns file names. Raises ConfigError where one cannot be written."""
    names = []
    with matplotlib.rc_context(STYLE):
        for stem, figure in draw_plots(cells, conditions):
            for suffix in (".png", ".svg"):
                names.append(stem + suffix)
                try:
                    figure.savefig(folder / names[-1], dpi=DOTS_PER_INCH)
                except OSError as error:
                    raise ConfigError(f"--out: {names[-1]} cannot be written: {error.strerror}.") from None
    return names


def draw_plots(cells: Sequence[Cell], conditions: Mapping[str, Any]) -> Iterator[tuple[str, Figure]]:
    """Name and figure of every plot that the cells allow."""
    for stem, draw, notes, wanted in _PLOTS:
        chosen = [cell for cell in cells if cell.latency_us and wanted(cell)]
        if not chosen:
            continue
        above_caption = ConstrainedLayoutEngine(rect=(0.0, CAPTION_SHARE, 1.0, 1.0 - CAPTION_SHARE))
        figure = Figure(figsize=SIZE_INCHES, layout=above_caption)
        shown = draw(figure, chosen)
        words = caption(shown, conditions, notes)
        figure.text(0.012, 0.015, words, fontsize=9.5, color="#444444", linespacing=1.5)
        yield stem, figure


def caption(cells: Sequence[Cell], conditions: Mapping[str, Any], notes: Sequence[str]) -> str:
    """Hardware, network and precision, commit and date, in three lines; with those of `notes` that apply to `cells`."""
    known = {name: str(conditions.get(name) or "unknown") for name in ("cpu", "device", "policy", "commit", "time")}
    precisions = " and ".join(dict.fromkeys(cell.precision or "precision unknown" for cell in cells))
    parameters, observation = conditions.get("parameters"), conditions.get("observation", "unknown")
    size = f", {parameters:,} parameters" if isinstance(parameters, int) else ""
    server, clients = (_cores(conditions.get(f"{who}_cores")) for who in ("server", "client"))
    applies = {BARS: any(cell.spread for cell in cells), HOLLOW: not all(cell.stable for cell in cells)}
    explained = [note for note in notes if applies[note]]
    return "\n".join((
        f"{known['cpu']}; device {known['device']}; server on {server}, clients on {clients}",
        f"{known['policy']}{size}, observation {observation}, {precisions}",
        "; ".join((f"commit {known['commit']}, {known['time'].partition('T')[0]}", *explained)),
    ))  # fmt: skip


def _cores(numbers: Sequence[int] | None) -> str:
    """`core 0`, `cores 1-3`."""
    if not numbers:
        return "any core"
    if len(numbers) == 1:
        return f"core {numbers[0]}"
    whole = list(numbers) == list(range(numbers[0], numbers[-1] + 1))
    return f"cores {numbers[0]}-{numbers[-1]}" if whole else f"cores {', '.join(map(str, numbers))}"


def _batch_plot(figure: Figure, cells: Sequence[Cell]) -> Sequence[Cell]:
    """Batch size against latency and throughput, for the number of clients with the most actions a second."""
    latency, throughput = figure.subplots(1, 2)
    clients = max(cells, key=lambda cell: cell.actions_per_sec).clients
    cells = sorted((cell for cell in cells if cell.clients == clients), key=_rows)
    for own, style, label in _by_precision(cells):
        rows = [_rows(cell) for cell in own]
        for name in PERCENTILES:
            _line(latency, rows, own, name, style, label)
        forwards = [cell.forward_actions_per_sec for cell in own]
        if known := [(n, forward) for n, forward in zip(rows, forwards) if forward]:
            throughput.plot(*zip(*known), style, color=COLORS["forward"], label=f"bare forward{label}")
        _line(throughput, rows, own, "actions_per_sec", style, label)
    what = "rows a forward (mean)" if all(cell.mean_batch is not None for cell in cells) else "envs in flight"
    for axes in (latency, throughput):
        _powers_of_two(axes, [_rows(cell) for cell in cells])
    _latency_axis(latency)
    _rate_axis(throughput)
    title = f"{clients} client{'s' * (clients > 1)}, closed loop"
    _label(latency, what, "latency", f"Latency, {title}")
    _label(throughput, what, "actions a second", f"Throughput, {title}")
    return cells


def _line(axes: Axes, x: Sequence[float], cells: Sequence[Cell], name: str, style: str, label: str) -> None:
    """One figure of the cells: a line, a bar over the windows, a hollow marker where a cell is not stable."""
    served = name == "actions_per_sec"
    values = [cell.actions_per_sec if served else cell.latency_us[name] for cell in cells]
    spread = [cell.spread.get(name, (value, value)) for cell, value in zip(cells, values)]
    below = [max(0.0, value - low) for value, (low, _) in zip(values, spread)]
    above = [max(0.0, high - value) for value, (_, high) in zip(values, spread)]
    color = COLORS["rate" if served else name]
    axes.errorbar(x, values, yerr=(below, above), fmt="none", ecolor=color, elinewidth=1.2, capsize=3, alpha=0.7)
    axes.plot(x, values, style, color=color)
    for stable, face in ((True, color), (False, "white")):
        chosen = [(at, value) for at, value, cell in zip(x, values, cells) if cell.stable is stable]
        if chosen:
            axes.plot(*zip(*chosen), "o", markersize=6, color=color, markerfacecolor=face, zorder=3)
    shown = f"{'served' if served else name}{label}"
    axes.plot([], [], style, color=color, marker="o", markersize=6, label=shown)


def _by_precision(cells: Sequence[Cell]) -> list[tuple[list[Cell], str, str]]:
    """Cells of each precision, the style of their line, and what to add to its label where there are several."""
    names = list(dict.fromkeys(cell.precision for cell in cells))
    return [
        ([cell for cell in cells if cell.precision == name], style, f" {name}" if len(names) > 1 else "")
        for name, style in zip(names, ("-", "--", ":"))
    ]


def _stages(figure: Figure, cells: Sequence[Cell]) -> Sequence[Cell]:
    """The median latency by stage, one bar a setting."""
    axes = figure.subplots()
    cells = sorted(cells, key=lambda cell: (cell.precision or "", cell.clients, cell.envs_per_client))
    split = [latency_split(cell) for cell in cells]
    stages = list(dict.fromkeys(stage for parts in split for stage in parts))
    bottom = [0.0] * len(cells)
    palette = matplotlib.colormaps["tab20"]
    for number, stage in enumerate(stages):
        values = [parts.get(stage, 0.0) for parts in split]
        axes.bar(range(len(cells)), values, bottom=bottom, label=stage, color=palette(number % 20))
        bottom = [b + v for b, v in zip(bottom, values)]
    for at, (cell, height) in enumerate(zip(cells, bottom)):
        low, high = cell.spread.get("p50", (height, height))
        errors = ([max(0.0, height - low)], [max(0.0, high - height)])
        axes.errorbar([at], [height], yerr=errors, color="#222222", capsize=4, elinewidth=1.2)
    labels = [
        f"{_setting(cell)}{label}{'' if cell.stable else ' ~'}"
        for own, _, label in _by_precision(cells) for cell in own
    ]  # fmt: skip
    axes.set_xticks(
        range(len(cells)), labels, rotation=30 if len(cells) > 6 else 0, ha="right" if len(cells) > 6 else "center"
    )
    axes.yaxis.set_major_formatter(FuncFormatter(_microseconds))
    where = "" if all(cell.stable for cell in cells) else " (~ not stable)"
    _label(axes, f"clients x envs{where}", "median latency", "Median latency by stage, closed loop")
    axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5), reverse=True)
    axes.grid(visible=False, axis="x")
    return cells


def latency_split(cell: Cell) -> dict[str, float]:
    """Microseconds of the median latency by stage: a row goes through the server's stages with its whole batch.

    What the stages do not explain is `wait`: for another batch, on the wire, in the client.
    """
    assert cell.stages_us is not None
    assert cell.mean_batch is not None
    parts = {stage: value * cell.mean_batch for stage, value in cell.stages_us.items()}
    return {**parts, "wait": max(0.0, cell.latency_us["p50"] - sum(parts.values()))}


def _histogram(figure: Figure, cells: Sequence[Cell]) -> Sequence[Cell]:
    """Batch sizes of the recommended setting."""
    cell = best_setting(cells)
    histogram = {int(size): count for size, count in (cell.batch_histogram or {}).items()}
    sizes = [1 << n for n in range(max(histogram).bit_length())]
    axes = figure.subplots()
    axes.bar(range(len(sizes)), [histogram.get(size, 0) for size in sizes], color=COLORS["rate"])
    axes.set_xticks(range(len(sizes)), [str(size) if size < 3 else f"{size // 2 + 1}-{size}" for size in sizes])
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    axes.yaxis.set_major_formatter(FuncFormatter(_count))
    note = "" if cell.stable else ", not stable"
    _label(axes, "rows a forward", "forwards", f"Batch sizes, {_setting(cell)} envs, mean {cell.mean_batch:.1f}{note}")
    axes.grid(visible=False, axis="x")
    return [cell]


def _rate(figure: Figure, cells: Sequence[Cell]) -> Sequence[Cell]:
    """Offered rate against latency, counted from the time a row was due."""
    axes = figure.subplots()
    for own, style, label in _by_precision(sorted(cells, key=lambda cell: cell.offered_per_sec or 0.0)):
        rates = [cell.offered_per_sec or 0.0 for cell in own]
        for name in PERCENTILES:
            _line(axes, rates, own, name, style, label)
    _latency_axis(axes)
    axes.xaxis.set_major_formatter(FuncFormatter(_count))
    axes.set_xlim(left=0)
    _label(axes, "actions a second offered, Poisson arrivals", "latency from due time", "Latency by rate, open loop")
    axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return cells


def _powers_of_two(axes: Axes, rows: Sequence[float]) -> None:
    """A logarithmic axis whose ticks are powers of two, written as numbers."""
    axes.set_xscale("log", base=2)
    first, last = int(max(min(rows), 1)).bit_length() - 1, (math.ceil(max(rows)) - 1).bit_length()
    step = 1 + (last - first) // FEW_TICKS
    axes.xaxis.set_major_locator(FixedLocator([2**power for power in range(first, last + 1, step)]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(_count))


def _latency_axis(axes: Axes) -> None:
    """A logarithmic axis of microseconds, 1-2-5, written with their unit."""
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(10, subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(_microseconds))


def _rate_axis(axes: Axes) -> None:
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter(FuncFormatter(_count))


def _microseconds(value: float, _: int | None = None) -> str:
    """`500 us`, `2 ms`, `1.5 s`."""
    for size, unit in ((1e6, "s"), (1e3, "ms")):
        if value >= size:
            return f"{value / size:g} {unit}"
    return f"{value:g} us" if value else "0"


def _count(value: float, _: int | None = None) -> str:
    return f"{value:,.0f}" if value == int(value) else f"{value:g}"


def _label(axes: Axes, x: str, y: str, title: str) -> None:
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.set_title(title)
    axes.grid(alpha=0.3)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    if axes.get_legend_handles_labels()[1]:
        axes.legend(frameon=False, loc="upper left")  # a place of its own choice may take seconds to find


def _rows(cell: Cell) -> float:
    return cell.mean_batch if cell.mean_batch is not None else float(cell.clients * cell.envs_per_client)


def _setting(cell: Cell) -> str:
    return f"{cell.clients} x {cell.envs_per_client}"


_PLOTS: tuple[tuple[str, Draw, tuple[str, ...], Callable[[Cell], bool]], ...] = (
    ("batch", _batch_plot, (BARS, HOLLOW), lambda cell: cell.mode == "closed"),
    ("stages", _stages, (BARS,), lambda cell: cell.mode == "closed" and bool(cell.stages_us)),
    ("batch_histogram", _histogram, (), lambda cell: cell.mode == "closed" and bool(cell.batch_histogram)),
    ("rate", _rate, (BARS, HOLLOW), lambda cell: cell.mode == "open"),
)
