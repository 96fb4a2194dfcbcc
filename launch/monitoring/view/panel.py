"""A snapshot as the live panel in a terminal, and the table of its processes."""

from __future__ import annotations

from pathlib import Path
from textwrap import wrap

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from simul.common.runtime.terminal_text import printable
from simul.launch.monitoring.snapshot import Snapshot
from simul.launch.monitoring.view.figure_texts import (
    TEXT_WIDTH,
    format_clock,
    format_evaluation,
    format_histogram,
    format_league,
    format_replaced,
    format_results,
    format_search,
    format_store,
    long_figures,
    process_name,
    short_figures,
)
from simul.launch.processes.role_reports import counts

MOST_PROCESSES = 6
MOST_EVENTS = 3
USUAL_RESULTS = 2  # lines that results take beside MOST_EVENTS and MOST_PROCESSES


def run_panel(snapshot: Snapshot) -> RenderableType:
    """The live panel of `simul up`; fits 80 x 24."""
    title = Text(f"Simul  {snapshot.phase} {format_clock(snapshot)}", style="bold")
    title.append(f"  {printable(Path(snapshot.run_dir).name)}", style="dim")
    if evaluation := format_evaluation(snapshot.figures):
        title.append(f"  evaluation {evaluation}")
    title.no_wrap, title.overflow = True, "ellipsis"
    # Rows that take the place of events; the last event stays, and processes make room.
    results = sum(len(wrap(text, TEXT_WIDTH)) for _, text in format_results(snapshot.workers))
    own = (
        format_store(snapshot.learner),
        format_search(snapshot),
        snapshot.callback_figures,
        format_replaced(snapshot.workers),
        format_league(snapshot.figures),
    )
    more = sum(map(bool, (*own, snapshot.servers, snapshot.ranks)))
    more += max(results - USUAL_RESULTS, 0)
    shown = max(MOST_EVENTS - more, 1)
    room = MOST_PROCESSES - max(more - (MOST_EVENTS - 1), 0)
    processes = process_table(snapshot, room) if room >= 0 else Text(f"{len(snapshot.processes)} processes")
    events = [Text(printable(e), style="yellow", no_wrap=True, overflow="ellipsis") for e in snapshot.events[-shown:]]
    return Group(title, _figures(snapshot), processes, *events)


def _figures(snapshot: Snapshot) -> Table:
    grid = Table.grid(padding=(0, 2))
    for style, width in (("cyan", 11), ("", 25), ("cyan", 14), ("", None)):
        grid.add_column(style=style, no_wrap=True, overflow="ellipsis", width=width)
    short = short_figures(snapshot)
    for left, right in zip(short[::2], short[1::2]):
        grid.add_row(*left, *right)
    rows = long_figures(snapshot)
    rows.insert(1, ("batches", format_histogram(counts(snapshot.server, "batch_histogram"))))
    wide = Table.grid(padding=(0, 2))
    wide.add_column(style="cyan", no_wrap=True, width=11, min_width=11)
    wide.add_column(overflow="fold")  # wraps, so that a long value does not narrow the labels
    for label, value in rows:
        wide.add_row(label, value)
    both = Table.grid()
    both.add_row(grid)
    both.add_row(wide)
    return both


def process_table(snapshot: Snapshot, most: int = MOST_PROCESSES) -> Table:
    """State, CPU, memory and restarts of each process, `most` of them."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for name, justify in (("process", "left"), ("state", "left"), ("CPU %", "right"), ("MiB", "right"),
                          ("hosts", "right"), ("peak", "right"), ("restarts", "right")):  # fmt: skip
        table.add_column(name, justify=justify, no_wrap=True)  # type: ignore[arg-type]
    for p in snapshot.processes[:most]:
        style = "" if p.state in ("ready", "stopped") else "yellow"
        table.add_row(
            process_name(p), Text(p.state, style=style), f"{p.cpu_percent:.0f}", f"{p.rss_mb + p.children_rss_mb:.0f}",
            f"{p.children_rss_mb:.0f}" if p.children_rss_mb else "",
            f"{p.peak_rss_mb + p.peak_children_rss_mb:.0f}", str(p.restarts or ""),
        )  # fmt: skip
    if len(snapshot.processes) > most:
        table.add_row(f"and {len(snapshot.processes) - most} more")
    return table
