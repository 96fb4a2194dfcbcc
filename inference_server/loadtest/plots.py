"""Pictures for a talk, as PNG."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter

from simul.common.protocol.errors import ConfigError
from simul.inference_server.loadtest.cells import Cell
from simul.inference_server.loadtest.recommend import best_setting

matplotlib.use("Agg")

SIZE_INCHES = (7.0, 4.2)
DOTS_PER_INCH = 110
COLORS = {"p50": "#2a6f97", "p90": "#e09f3e", "p99": "#9e2a2b", "rate": "#335c67"}
DOTS: dict[str, Any] = {"marker": "o", "markersize": 4}

Draw = Callable[[Figure, Sequence[Cell]], None]


def write_plots(folder: Path, cells: Sequence[Cell]) -> list[str]:
    """Draw what the cells allow. Returns the files' names. Raises ConfigError where the disk refuses."""
    names = []
    for name, draw, wanted in _PLOTS:
        chosen = [cell for cell in cells if cell.latency_us and wanted(cell)]
        if not chosen:
            continue
        figure = Figure(figsize=SIZE_INCHES, layout="constrained")
        draw(figure, chosen)
        try:
            figure.savefig(folder / name, dpi=DOTS_PER_INCH)
        except OSError as error:
            raise ConfigError(f"--out: {name} cannot be written: {error.strerror}.") from None
        names.append(name)
    return names


def _batch(figure: Figure, cells: Sequence[Cell]) -> None:
    """Batch size against latency and throughput, for the number of clients that reached most."""
    latency, throughput = figure.subplots(1, 2)
    clients = max(cells, key=lambda cell: cell.actions_per_sec).clients
    cells = sorted((cell for cell in cells if cell.clients == clients), key=_rows)
    for own, style, label in _by_precision(cells):
        rows = [_rows(cell) for cell in own]
        for name in ("p50", "p90", "p99"):
            values = [cell.latency_us[name] / 1000 for cell in own]
            latency.plot(rows, values, style, color=COLORS[name], label=f"{name}{label}", **DOTS)
        values = [cell.actions_per_sec / 1000 for cell in own]
        throughput.plot(rows, values, style, color=COLORS["rate"], label=f"served{label}", **DOTS)
        forwards = [cell.forward_actions_per_sec for cell in own]
        if known := [(n, forward / 1000) for n, forward in zip(rows, forwards) if forward]:
            throughput.plot(*zip(*known), style, color="#999999", label=f"bare forward{label}", **DOTS)
    what = "rows a forward (mean)" if all(cell.mean_batch is not None for cell in cells) else "envs in flight"
    title = f"{clients} client{'s' * (clients > 1)}, closed loop"
    _axes(latency, what, "latency (ms)", f"Latency, {title}", log=True)
    _axes(throughput, what, "thousand actions/s", f"Throughput, {title}", log=False)


def _by_precision(cells: Sequence[Cell]) -> list[tuple[list[Cell], str, str]]:
    """Cells of each precision, the style of their line, and what to add to its label where there are several."""
    names = list(dict.fromkeys(cell.precision for cell in cells))
    return [
        ([cell for cell in cells if cell.precision == name], style, f" {name}" if len(names) > 1 else "")
        for name, style in zip(names, ("-", "--", ":"))
    ]


def _stages(figure: Figure, cells: Sequence[Cell]) -> None:
    """What a median answer's time is made of, one bar a setting."""
    axes = figure.subplots()
    cells = sorted(cells, key=lambda cell: (cell.precision or "", cell.clients, cell.envs_per_client))
    split = [latency_split(cell) for cell in cells]
    stages = list(dict.fromkeys(stage for parts in split for stage in parts))
    bottom = [0.0] * len(cells)
    palette = matplotlib.colormaps["tab20"]
    for number, stage in enumerate(stages):
        values = [parts.get(stage, 0.0) / 1000 for parts in split]
        axes.bar(range(len(cells)), values, bottom=bottom, label=stage, color=palette(number % 20))
        bottom = [b + v for b, v in zip(bottom, values)]
    labels = [f"{_label(cell)}{label}" for own, _, label in _by_precision(cells) for cell in own]
    axes.set_xticks(range(len(cells)), labels, rotation=30, ha="right", fontsize=8)
    _axes(axes, "clients x envs", "ms of the median latency", "Latency by stage", log=None)


def latency_split(cell: Cell) -> dict[str, float]:
    """Microseconds of the median latency by stage: a row goes through the server's stages with its whole batch.

    What the stages do not explain is `wait`: for another batch, on the wire, in the client.
    """
    assert cell.stages_us is not None
    assert cell.mean_batch is not None
    parts = {stage: value * cell.mean_batch for stage, value in cell.stages_us.items()}
    return {**parts, "wait": max(0.0, cell.latency_us["p50"] - sum(parts.values()))}


def _histogram(figure: Figure, cells: Sequence[Cell]) -> None:
    """Batch sizes of the recommended setting."""
    cell = best_setting(cells)
    histogram = {int(size): count for size, count in (cell.batch_histogram or {}).items()}
    sizes = [1 << n for n in range(max(histogram).bit_length())]
    axes = figure.subplots()
    axes.bar(range(len(sizes)), [histogram.get(size, 0) for size in sizes], color=COLORS["rate"])
    labels = [str(size) if size < 3 else f"{size // 2 + 1}-{size}" for size in sizes]
    axes.set_xticks(range(len(sizes)), labels, fontsize=8)
    axes.set_xlabel("rows a forward")
    axes.set_ylabel("forwards")
    axes.set_title(f"Batch sizes, clients x envs {_label(cell)} (mean {cell.mean_batch:.1f})")
    axes.grid(axis="y", alpha=0.3)


def _rate(figure: Figure, cells: Sequence[Cell]) -> None:
    """Offered rate against latency, counted from the time a row was due."""
    axes = figure.subplots()
    for own, style, label in _by_precision(sorted(cells, key=lambda cell: cell.offered_per_sec or 0.0)):
        rates = [(cell.offered_per_sec or 0.0) / 1000 for cell in own]
        for name in ("p50", "p90", "p99"):
            values = [cell.latency_us[name] / 1000 for cell in own]
            axes.plot(rates, values, style, color=COLORS[name], label=f"{name}{label}", **DOTS)
    axes.set_yscale("log")
    _plain(axes.yaxis, decades=True)
    axes.set_xlim(left=0)
    _axes(
        axes, "thousand actions/s offered, Poisson arrivals", "latency from due time (ms)", "Latency by rate", log=None
    )


def _axes(axes: Axes, x: str, y: str, title: str, *, log: bool | None) -> None:
    """Labels and grid; `log`: rows on a logarithmic axis (None: leave the axis), latency too where True."""
    if log is not None:
        axes.set_xscale("log", base=2)
        _plain(axes.xaxis, decades=False)
    if log:
        axes.set_yscale("log")
        _plain(axes.yaxis, decades=True)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.set_title(title)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8, frameon=False)


def _plain(axis: Axis, *, decades: bool) -> None:
    """Numbers as people write them on a logarithmic axis, few of them."""
    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter(NullFormatter())
    if decades:
        axis.set_major_locator(LogLocator(10, subs=(1.0, 2.0, 5.0)))


def _rows(cell: Cell) -> float:
    return cell.mean_batch if cell.mean_batch is not None else float(cell.clients * cell.envs_per_client)


def _label(cell: Cell) -> str:
    return f"{cell.clients} x {cell.envs_per_client}"


_PLOTS: tuple[tuple[str, Draw, Callable[[Cell], bool]], ...] = (
    ("batch.png", _batch, lambda cell: cell.mode == "closed"),
    ("stages.png", _stages, lambda cell: cell.mode == "closed" and bool(cell.stages_us)),
    ("batch_histogram.png", _histogram, lambda cell: cell.mode == "closed" and bool(cell.batch_histogram)),
    ("rate.png", _rate, lambda cell: cell.mode == "open"),
)
