"""What `simul serve` shows fits a small terminal and lives with figures that are missing."""

from __future__ import annotations

import io
from pathlib import Path

from rich.console import Console

from simul.common.config.schema import ServerConfig
from simul.common.protocol.specs import GameSpec
from simul.launch.monitoring.snapshot import Snapshot
from simul.launch.monitoring.view.serve_panel import (
    ServedCheckpoint,
    closing_line,
    serve_line,
    serve_panel,
    startup_lines,
)
from tests.support.recorded_run import process, server, snapshot

SERVER = {**server(1.0), "policy_version": 42}


def serving(**changes) -> Snapshot:
    one = [process("simul-inference-0", children_rss_mb=0.0)]
    full = {"phase": "serving", "ready_sec": 100.0, "server": SERVER, "learner": {}, "workers": {}, "processes": one}
    return snapshot(**{**full, **changes})


def drawn(**changes) -> str:
    console = Console(file=io.StringIO(), width=80, height=24, force_terminal=False)
    console.print(serve_panel(serving(**changes)))
    return console.file.getvalue()


def test_the_panel_fits_80_by_24() -> None:
    text = drawn()
    assert len(text.splitlines()) <= 23
    assert max(map(len, text.splitlines())) <= 80
    for words in ("serving 0:01:40", "12,346", "300, sessions 4,096", "12.3 ms p50, 234.6 ms p99",
                  "ERR_BUSY 8, handshakes 5, ERR_SPEC 2",
                  "simul-inference-0", "256"):  # fmt: skip
        assert words in text


def test_the_batch_is_that_of_now_and_not_of_all_times() -> None:
    assert "batch 50.0" in serve_line(serving(decisions_per_sec=2500.0, batches_per_sec=50.0))
    assert "batch -" in serve_line(serving(decisions_per_sec=0.0, batches_per_sec=0.0))


def test_a_server_without_any_figure() -> None:
    nothing = serving(server={}, decisions_per_sec=None)
    words = "actions/s - | clients -, sessions - | batch - | latency - | answered - | refused nothing"
    assert serve_line(nothing) == words
    assert closing_line(nothing) == "answered 0 in 100 s (0 a second), mean batch -, latency -, refused nothing"


def test_the_author_of_a_client_is_told_where_to_connect() -> None:
    settings = ServerConfig(endpoint="tcp://0.0.0.0:5555", curve_keys="/keys", prometheus_port=9100)
    facts = ServedCheckpoint(
        Path("/runs/gymnasium/checkpoints/000000042"), GameSpec("test/x", 3, 2), settings, Path("/tmp/x")
    )
    assert facts.name == "gymnasium/checkpoints/000000042"
    text = "\n".join(startup_lines(facts, serving(), 1.5))
    for words in ("policy_version 42", "on cpu in bfloat16; ready after 1.5 s", "endpoint tcp://0.0.0.0:5555",
                  "game test/x: observation float32[3], 2 actions", "simul connect tcp://127.0.0.1:5555 --keys /keys",
                  "http://127.0.0.1:9100/metrics", "--run-dir /tmp/x"):  # fmt: skip
        assert words in text
