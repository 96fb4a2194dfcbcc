"""The outputs of a load test: the table, loadtest.csv, loadtest.json and the plots."""

from __future__ import annotations

import csv
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import matplotlib
import msgspec
import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter
from rich.box import SIMPLE_HEAD
from rich.table import Table

from simul.common.protocol.errors import ConfigError
from simul.common.runtime.machine_info import machine
from simul.inference_server.loadtest.cores import Cores
from simul.inference_server.loadtest.options import Options
from simul.inference_server.loadtest.results import Cell, Result, best_setting
from simul.inference_server.loadtest.subject import Subject

matplotlib.use("Agg")

SIZE_INCHES = (7.0, 4.2)
DOTS_PER_INCH = 110
COLORS = {"p50": "#2a6f97", "p90": "#e09f3e", "p99": "#9e2a2b", "rate": "#335c67"}
DOTS: dict[str, Any] = {"marker": "o", "markersize": 4}

Draw = Callable[[Figure, Sequence[Cell]], None]
UNKNOWN = "—"
SHORT = {"float32": "fp32", "bfloat16": "bf16"}


def conditions(options: Options, subject: Subject, cores: Cores) -> dict[str, Any]:
    """The conditions that belong beside every figure."""
    return {
        "policy": f"{subject.config.network.name} {subject.config.network.options or ''}".strip(),
        "parameters": subject.parameters,
        "observation": f"{subject.spec.observation_dtype}[{subject.spec.observation_size}]",
        "actions": subject.spec.num_actions,
        "game": subject.spec.name,
        "server": options.connect or msgspec.to_builtins(subject.config.server),
        "server_cores": list(cores.server),
        "client_cores": list(cores.clients),
        **machine(),
        "numpy": np.__version__,
        "torch": str(torch.__version__),
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "warm_up_sec": options.warm_up_sec,
        "window_sec": options.window_sec,
    }


def results_table(cells: Sequence[Cell]) -> Table:
    """One row a cell; `~` marks cells that did not become stable, — what is not known."""
    found = Table(
        caption="envs: clients x envs of each; offered and actions a second; latency in ms; "
        "batch: mean rows a forward / with all envs in one; of fwd: share of the bare forward at that mean batch; "
        "lost: of the bare forward, because batches were not full; ~ not stable; — not known",
        box=SIMPLE_HEAD, show_edge=False, padding=0, caption_justify="left",
    )  # fmt: skip
    precisions = {cell.precision for cell in cells}
    found.add_column("mode", no_wrap=True)
    refused = any(cell.errors for cell in cells)  # also said in a sentence; a column of zeros would waste width
    heads = ["envs", "offered", "actions/s", "p50", "p90", "p99", "batch", "of fwd", "lost", "samples"]
    for head in [*heads, "errors"] if refused else heads:
        found.add_column(head, justify="right", no_wrap=True)
    for cell in cells:
        precision = f" {SHORT.get(cell.precision, '')}" if len(precisions) > 1 and cell.precision else ""
        found.add_row(
            f"{cell.mode}{precision}", f"{cell.clients} x {cell.envs_per_client}", _number(cell.offered_per_sec),
            f"{'' if cell.stable else '~'}{cell.actions_per_sec:,.0f}",
            *(_milliseconds(cell, name) for name in ("p50", "p90", "p99")),
            _batch(cell), _of_forward(cell), _lost(cell), f"{cell.samples:,}",
            *([f"{sum(cell.errors.values()):,}"] if refused else []),
        )  # fmt: skip
    return found


def write_results(folder: Path, result: Result) -> None:
    """Write loadtest.json and loadtest.csv. Raises ConfigError where that fails."""
    columns = ["mode", "clients", "envs_per_client", "precision", "offered_per_sec", "actions_per_sec", "p50_us",
               "p90_us", "p99_us", "samples", "stable", "mean_batch", "full_batch", "forward_actions_per_sec",
               "full_forward_actions_per_sec", "lost_to_small_batches", "errors", "client_busy"]  # fmt: skip
    try:
        (folder / "loadtest.json").write_bytes(msgspec.json.format(msgspec.json.encode(result), indent=2) + b"\n")
        with (folder / "loadtest.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, columns, extrasaction="ignore")
            writer.writeheader()
            for cell in result.cells:
                percentiles = {f"{name}_us": value for name, value in cell.latency_us.items()}
                plain = msgspec.to_builtins(cell)
                writer.writerow({**plain, **percentiles, "errors": sum(cell.errors.values())})
    except OSError as error:
        raise ConfigError(f"--out: the results cannot be written: {error.strerror}. Choose another folder.") from None


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}"


def _milliseconds(cell: Cell, percentile: str) -> str:
    if percentile not in cell.latency_us:
        return UNKNOWN
    value = cell.latency_us[percentile] / 1000
    return f"{value:.2f}" if value < 100 else f"{value:.0f}"


def _batch(cell: Cell) -> str:
    if cell.mean_batch is None:
        return UNKNOWN
    return f"{cell.mean_batch:.0f}" if cell.full_batch is None else f"{cell.mean_batch:.0f}/{cell.full_batch}"


def _lost(cell: Cell) -> str:
    if cell.mode != "closed":  # no batch to fill: rows come when they are due, or all together
        return ""
    return UNKNOWN if cell.lost_to_small_batches is None else f"{cell.lost_to_small_batches:.0%}"


def _of_forward(cell: Cell) -> str:
    if not cell.forward_actions_per_sec:
        return UNKNOWN
    if cell.mode == "open":  # the rate was given, so its share of the forward says nothing
        return ""
    return f"{cell.actions_per_sec / cell.forward_actions_per_sec:.0%}"


def write_plots(folder: Path, cells: Sequence[Cell]) -> list[str]:
    """Draw every plot that the cells allow. Returns file names. Raises ConfigError where one cannot be written."""
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


def _batch_plot(figure: Figure, cells: Sequence[Cell]) -> None:
    """Batch size against latency and throughput, for the number of clients with the most actions a second."""
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
    """The median latency by stage, one bar a setting."""
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
    """Plain numbers, few of them, on a logarithmic axis."""
    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter(NullFormatter())
    if decades:
        axis.set_major_locator(LogLocator(10, subs=(1.0, 2.0, 5.0)))


def _rows(cell: Cell) -> float:
    return cell.mean_batch if cell.mean_batch is not None else float(cell.clients * cell.envs_per_client)


def _label(cell: Cell) -> str:
    return f"{cell.clients} x {cell.envs_per_client}"


_PLOTS: tuple[tuple[str, Draw, Callable[[Cell], bool]], ...] = (
    ("batch.png", _batch_plot, lambda cell: cell.mode == "closed"),
    ("stages.png", _stages, lambda cell: cell.mode == "closed" and bool(cell.stages_us)),
    ("batch_histogram.png", _histogram, lambda cell: cell.mode == "closed" and bool(cell.batch_histogram)),
    ("rate.png", _rate, lambda cell: cell.mode == "open"),
)
