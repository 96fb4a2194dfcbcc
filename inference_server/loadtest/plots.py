"""Pictures for a talk, as PNG."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from common.errors import ConfigError
from inference_server.loadtest.cells import Cell
from inference_server.loadtest.recommend import best_setting

matplotlib.use("Agg")

SIZE_INCHES = (7.0, 4.2)
DOTS_PER_INCH = 110
COLORS = {"p50": "#2a6f97", "p90": "#e09f3e", "p99": "#9e2a2b", "rate": "#335c67"}

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
    """Mean batch (rows offered at once where the server does not say) against latency and throughput."""
    latency, throughput = figure.subplots(1, 2)
    precisions = list(dict.fromkeys(cell.precision for cell in cells))
    known = all(cell.mean_batch is not None for cell in cells)
    for precision, style in zip(precisions, ("-", "--", ":")):
        own = sorted((cell for cell in cells if cell.precision == precision), key=_rows)
        own = _frontier(own)
        rows = [_rows(cell) for cell in own]
        label = f" {precision}" if len(precisions) > 1 else ""
        for name in ("p50", "p90", "p99"):
            values = [cell.latency_us[name] / 1000 for cell in own]
            latency.plot(rows, values, style, marker="o", markersize=4, color=COLORS[name], label=f"{name}{label}")
        values = [cell.actions_per_sec / 1000 for cell in own]
        throughput.plot(rows, values, style, marker="o", markersize=4, color=COLORS["rate"], label=f"served{label}")
        forwards = [
            (n, cell.forward_actions_per_sec / 1000) for n, cell in zip(rows, own) if cell.forward_actions_per_sec
        ]
        if forwards:
            throughput.plot(*zip(*forwards), style, color="#999999", label=f"bare forward{label}")
    what = "rows a forward (mean)" if known else "envs in flight"
    _axes(latency, what, "latency (ms)", "Latency by batch size", log=True)
    _axes(throughput, what, "thousand actions/s", "Throughput by batch size", log=False)


def _frontier(cells: Sequence[Cell]) -> list[Cell]:
    """Of cells with about the same batch the one with the most actions a second."""
    best: dict[int, Cell] = {}
    for cell in cells:
        size = round(_rows(cell))
        if size not in best or cell.actions_per_sec > best[size].actions_per_sec:
            best[size] = cell
    return [best[size] for size in sorted(best)]


def _stages(figure: Figure, cells: Sequence[Cell]) -> None:
    """Where the server's time goes, one bar a setting."""
    axes = figure.subplots()
    cells = sorted(cells, key=_rows)
    labels = [_label(cell) for cell in cells]
    stages = list(dict.fromkeys(stage for cell in cells for stage in cell.stages_us or {}))
    bottom = [0.0] * len(cells)
    palette = matplotlib.colormaps["tab20c"]
    for number, stage in enumerate(stages):
        values = [(cell.stages_us or {}).get(stage, 0.0) for cell in cells]
        axes.bar(range(len(cells)), values, bottom=bottom, label=stage, color=palette(number % 20))
        bottom = [b + v for b, v in zip(bottom, values)]
    axes.set_xticks(range(len(cells)), labels, rotation=30, ha="right", fontsize=8)
    _axes(axes, "clients x envs", "us an action in the server", "Server time by stage", log=None)


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
    axes.set_title(f"Batch sizes, {_label(cell)} (mean {cell.mean_batch:.1f})")
    axes.grid(axis="y", alpha=0.3)


def _rate(figure: Figure, cells: Sequence[Cell]) -> None:
    """Offered rate against latency, counted from the time a row was due."""
    axes = figure.subplots()
    cells = sorted(cells, key=lambda cell: cell.offered_per_sec or 0.0)
    precisions = list(dict.fromkeys(cell.precision for cell in cells))
    for precision, style in zip(precisions, ("-", "--", ":")):
        own = [cell for cell in cells if cell.precision == precision]
        for name in ("p50", "p99"):
            rates = [(cell.offered_per_sec or 0.0) / 1000 for cell in own]
            values = [cell.latency_us[name] / 1000 for cell in own]
            label = f"{name} {precision}" if len(precisions) > 1 else name
            axes.plot(rates, values, style, marker="o", markersize=4, color=COLORS[name], label=label)
    axes.set_yscale("log")
    _axes(axes, "thousand actions/s offered, Poisson", "latency from due time (ms)", "Latency by rate", log=None)


def _axes(axes: Axes, x: str, y: str, title: str, *, log: bool | None) -> None:
    """Labels and grid; `log`: rows on a logarithmic axis (None: leave the axis), latency too where True."""
    if log is not None:
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_formatter("{x:g}")
    if log:
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_formatter("{x:g}")
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.set_title(title)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8, frameon=False)


def _rows(cell: Cell) -> float:
    return cell.mean_batch if cell.mean_batch is not None else float(cell.clients * cell.envs_per_client)


def _label(cell: Cell) -> str:
    return f"{cell.clients} x {cell.envs_per_client}{f' {cell.precision}' if cell.precision else ''}"


_PLOTS: tuple[tuple[str, Draw, Callable[[Cell], bool]], ...] = (
    ("batch.png", _batch, lambda cell: cell.mode == "closed"),
    ("stages.png", _stages, lambda cell: cell.mode == "closed" and bool(cell.stages_us)),
    ("batch_histogram.png", _histogram, lambda cell: cell.mode == "closed" and bool(cell.batch_histogram)),
    ("rate.png", _rate, lambda cell: cell.mode == "open"),
)
