"""The outputs of a load test: the table, loadtest.csv and loadtest.json. The plots: plots.py."""

from __future__ import annotations

import csv
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from rich.box import SIMPLE_HEAD
from rich.table import Table

from simul.common.errors import ConfigError
from simul.common.runtime.machine_info import machine
from simul.launch.loadtest.cores import Cores
from simul.launch.loadtest.options import Options
from simul.launch.loadtest.results import Cell, Result
from simul.launch.loadtest.subject import Subject

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
        "torch": subject.torch,
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
