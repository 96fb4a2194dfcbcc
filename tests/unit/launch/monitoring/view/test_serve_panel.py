"""What `simul serve` shows fits a small terminal and lives with figures that are missing."""

from __future__ import annotations

import io
from pathlib import Path

from rich.console import Console

from simul.common.config.schema import ServerConfig
from simul.common.protocol.specs import GameSpec
from simul.launch.monitoring.snapshot import ProcessFigures, Snapshot
from simul.launch.monitoring.view.serve_panel import (
    ServedCheckpoint,
    closing_line,
    serve_line,
    serve_panel,
    startup_lines,
)

SERVER = {
    "decisions": 123456, "batches": 2000, "batch_histogram": {str(2**n): 10 * n for n in range(9)}, "clients": 300,
    "sessions": 4096, "latency_us": {"p50": 12345.6, "p99": 234567.8}, "policy_version": 42,
    "rows_errored": {"ERR_BUSY": 7}, "messages_refused": {"ERR_SPEC": 2, "ERR_BUSY": 1},
    "device": "cpu", "precision": "bfloat16", "connections": {"opened": 9, "failed": 5, "closed": 6},
}  # fmt: skip


def snapshot(**changes) -> Snapshot:
    process = ProcessFigures("simul-inference-0", 1, 0.0, "ready", 3, 99.0, 150.0, 0.0, 160.0, 0.0)
    full = {
        "phase": "serving", "run_dir": "gymnasium/checkpoints/000000042", "time": 0.0, "elapsed_sec": 4000.0,
        "ready_sec": 100.0, "decisions_per_sec": 12345.6, "battles_per_sec": None, "server": SERVER, "learner": {},
        "workers": {}, "processes": [process], "events": ["12:00:00 the server died" + " long" * 30],
    }  # fmt: skip
    return Snapshot(**{**full, **changes})


def test_the_panel_fits_80_by_24() -> None:
    console = Console(file=io.StringIO(), width=80, height=24, force_terminal=False)
    console.print(serve_panel(snapshot()))
    lines = console.file.getvalue().splitlines()
    assert len(lines) <= 23
    assert max(map(len, lines)) <= 80
    text = "\n".join(lines)
    for words in ("serving 0:01:40", "12,346", "300, sessions 4,096", "12.3 ms p50, 234.6 ms p99",
                  "ERR_BUSY 8, handshakes 5, ERR_SPEC 2",
                  "simul-inference-0", "256"):  # fmt: skip
        assert words in text


def test_long_refusals_wrap_and_labels_stay_whole() -> None:
    console = Console(file=io.StringIO(), width=80, height=24, force_terminal=False)
    console.print(
        serve_panel(snapshot(server={**SERVER, "rows_errored": {f"ERR_NUMBER_{n}": 10**n for n in range(8)}}))
    )
    text = console.file.getvalue()
    assert "\nanswered " in text
    assert "\nrefused " in text
    assert "ERR_NUMBER_0 1" in text


def test_the_batch_is_that_of_now_and_not_of_all_times() -> None:
    assert "batch 50.0" in serve_line(snapshot(decisions_per_sec=2500.0, batches_per_sec=50.0))
    assert "batch -" in serve_line(snapshot(decisions_per_sec=0.0, batches_per_sec=0.0))


def test_a_server_without_any_figure() -> None:
    nothing = snapshot(server={}, decisions_per_sec=None)
    words = "actions/s - | clients -, sessions - | batch - | latency - | answered - | refused nothing"
    assert serve_line(nothing) == words
    assert closing_line(nothing) == "answered 0 in 100 s (0 a second), mean batch -, latency -, refused nothing"


def test_the_author_of_a_client_is_told_where_to_connect() -> None:
    server = ServerConfig(endpoint="tcp://0.0.0.0:5555", curve_keys="/keys", prometheus_port=9100)
    facts = ServedCheckpoint(
        Path("/runs/gymnasium/checkpoints/000000042"), GameSpec("test/x", 3, 2), server, Path("/tmp/x")
    )
    assert facts.name == "gymnasium/checkpoints/000000042"
    text = "\n".join(startup_lines(facts, snapshot(), 1.5))
    for words in ("policy_version 42", "on cpu in bfloat16; ready after 1.5 s", "endpoint tcp://0.0.0.0:5555",
                  "game test/x: observation float32[3], 2 actions", "simul connect tcp://127.0.0.1:5555 --keys /keys",
                  "http://127.0.0.1:9100/metrics", "--run-dir /tmp/x"):  # fmt: skip
        assert words in text
