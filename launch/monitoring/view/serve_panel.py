"""What `simul serve` shows: where to connect, and whether it works."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from simul.common.config.schema import ServerConfig
from simul.common.protocol.specs import GameSpec
from simul.common.transport import connectable
from simul.launch.monitoring.snapshot import Snapshot
from simul.launch.monitoring.view.figure_texts import (
    format_causes,
    format_clock,
    format_histogram,
    format_latency,
    format_number,
    format_rate,
    mean_batch,
)
from simul.launch.monitoring.view.panel import process_table
from simul.launch.processes.role_reports import add_metrics, counts, number

MOST_EVENTS = 3


@dataclass(frozen=True)
class ServedCheckpoint:
    """What is served; `root`: the temporary run directory."""

    checkpoint: Path
    spec: GameSpec
    server: ServerConfig
    root: Path

    @property
    def name(self) -> str:
        """The end of the checkpoint's path: `gymnasium/checkpoints/000000042`."""
        return "/".join(self.checkpoint.parts[-3:])


def serve_panel(snapshot: Snapshot) -> RenderableType:
    """The live panel of `simul serve`; fits 80 x 24."""
    title = Text(f"Simul  {snapshot.phase} {format_clock(snapshot)}", style="bold")
    title.append(f"  {snapshot.run_dir}", style="dim")
    figures = Table.grid(padding=(0, 2))
    figures.add_column(style="cyan", no_wrap=True, width=11)
    figures.add_column(overflow="fold")  # wraps, so that a long value does not narrow the labels
    for label, text in _figures(snapshot):
        figures.add_row(label, text)
    figures.add_row("batches", format_histogram(counts(snapshot.server, "batch_histogram")))
    events = [Text(e, style="yellow", no_wrap=True, overflow="ellipsis") for e in snapshot.events[-MOST_EVENTS:]]
    return Group(title, figures, process_table(snapshot), *events)


def serve_line(snapshot: Snapshot) -> str:
    """The figures in one line, for logs and pipes."""
    return " | ".join(f"{label} {text}" for label, text in _figures(snapshot))


def _figures(snapshot: Snapshot) -> list[tuple[str, str]]:
    """(label, text). Rate and batch are of the last 10 seconds, latency of the last 20,000 actions or more."""
    server, rate, batches = snapshot.server, snapshot.decisions_per_sec, snapshot.batches_per_sec
    return [
        ("actions/s", format_rate(snapshot, rate)),
        (
            "clients",
            f"{format_number(number(server, 'clients'))}, sessions {format_number(number(server, 'sessions'))}",
        ),
        ("batch", format_number(rate / batches if rate and batches else None, 1)),
        ("latency", format_latency(server)),
        ("answered", format_number(number(server, "decisions"))),
        ("refused", refused_by_code(snapshot)),
    ]


def refused_by_code(snapshot: Snapshot) -> str:
    """Refused rows and refused whole messages, by error code, and `handshakes`: connections refused before any."""
    rows, messages = (counts(snapshot.server, what) for what in ("rows_errored", "messages_refused"))
    handshakes = {"handshakes": counts(snapshot.server, "connections").get("failed", 0)}
    return format_causes(add_metrics(add_metrics(rows, messages), handshakes)) or "nothing"


def startup_lines(facts: ServedCheckpoint, snapshot: Snapshot, seconds: float) -> list[str]:
    """Checkpoint, endpoint, game and the commands to try, line by line."""
    server, spec = facts.server, facts.spec
    version = format_number(number(snapshot.server, "policy_version"))
    keys = f" --keys {server.curve_keys}" if server.curve_keys else ""
    lines = [
        f"serving {facts.checkpoint} (policy_version {version}) as the policy `learner` on "
        f"{snapshot.server.get('device')} in {snapshot.server.get('precision')}; ready after {seconds:.1f} s",
        f"endpoint {server.endpoint}; game {spec.name}: observation {spec.observation_dtype}[{spec.observation_size}], "
        f"{spec.num_actions} actions, spec fingerprint {spec.fingerprint()}",
        f"try it: simul connect {connectable(server.endpoint)}{keys}; "
        f"serve more beside it: simul policies load NAME D --run-dir {facts.root}",
    ]
    if server.prometheus_port:
        lines.append(f"figures for Prometheus: http://127.0.0.1:{server.prometheus_port}/metrics")
    return [*lines, "Ctrl-C stops"]


def closing_line(snapshot: Snapshot) -> str:
    """The figures of the whole run in one line."""
    return (
        f"answered {format_number(number(snapshot.server, 'decisions') or 0)} in {snapshot.ready_sec:.0f} s "
        f"({format_number(snapshot.decisions_per_sec or 0)} a second), "
        f"mean batch {format_number(mean_batch(snapshot.server), 1)}, "
        f"latency {format_latency(snapshot.server)}, refused {refused_by_code(snapshot)}"
    )
