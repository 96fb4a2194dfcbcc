"""A run directory as the page shows it, hostile ones included."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import msgspec
import pytest

from simul.common.errors import ConfigError
from simul.common.role.run_directory import RunDir
from simul.common.role.run_lock import this_process
from simul.launch.monitoring.page.runs.league_panel import MOST_MEMBERS
from simul.launch.monitoring.page.runs.short_text import TEXT_LETTERS
from simul.launch.monitoring.page.runs.watched_run import MOST_ENTRIES, RARELY_SEC, WatchedRun, check_run
from tests.support.league import write_league
from tests.support.recorded_run import process, snapshot

MARKUP = "<img src=x onerror=alert(1)>"


def show(root: Path, **changes) -> WatchedRun:
    write(root, **changes)
    run = WatchedRun(root, "run")
    run.poll(0.0)
    return run


def write(root: Path, **changes) -> None:
    (root / "status.json").write_bytes(msgspec.json.encode(snapshot(**changes)))


def claim(root: Path) -> None:
    (root / "supervisor.pid").write_bytes(msgspec.json.encode(this_process()))


def test_the_figures_are_those_of_the_view(tmp_path):
    claim(tmp_path)
    run = show(tmp_path)
    assert run.urgent["phase"] == "training"
    assert run.urgent["fault"] == ""
    assert run.urgent["states"]["simul-worker-0"] == ["ready", 3, ""]
    assert run.gradual["figures"]["decisions/s"].startswith("12,346")
    assert run.gradual["figures"]["latency"] == "12.3 ms p50, 234.6 ms p99"
    assert run.gradual["batches"]["256"] == 80
    assert len(run.events) == run.events_seen == 9


@pytest.mark.skipif(sys.platform == "win32", reason="no such names there")
@pytest.mark.parametrize("status", [None, b"{}"])
def test_a_refusal_writes_the_name_of_a_folder_on_one_line(tmp_path, status):
    folder = tmp_path / "x\ny\x1b"
    folder.mkdir()
    if status is not None:
        (folder / "status.json").write_bytes(status)
    with pytest.raises(ConfigError, match=r"^[^\n\x1b]*x\\ny\\u001b[^\n\x1b]*$"):
        check_run(RunDir(folder))


def test_events_are_counted_once_also_when_the_run_starts_again(tmp_path):
    run = show(tmp_path, events=["a", "b"])
    for events in (["a", "b", "c"], ["b", "c", "c"], ["d"]):
        write(tmp_path, events=events)
        run.poll(0.0)
    assert run.events == ["a", "b", "c", "c", "d"]
    assert run.events_seen == 5


def test_a_run_whose_supervisor_was_killed_is_not_active(tmp_path):
    run = show(tmp_path)
    assert "not active" in run.urgent["fault"]
    claim(tmp_path)
    run.poll(1.0)
    assert run.urgent["fault"] == ""
    (tmp_path / "supervisor.pid").unlink()
    write(tmp_path, phase="stopped")
    run.poll(2.0)
    assert run.urgent["fault"] == ""


def test_what_others_wrote_is_text_short_and_finite(tmp_path):
    names = [process(f"{MARKUP}{n}", state=MARKUP * 100, cpu_percent=1e308, rss_mb=1e308, children_rss_mb=1e308)
             for n in range(2 * MOST_ENTRIES)]  # fmt: skip
    server = {"batch_histogram": {MARKUP: 1, "x" * 10_000: 1e308}, "latency_us": "none", "batches": [], "decisions": {}}
    run = show(
        tmp_path, processes=names, events=[MARKUP, "y" * 10_000] * MOST_ENTRIES, phase=MARKUP * 100, game=MARKUP,
        server=server, learner={}, workers={"recent": {MARKUP: {"games": 1, "win_rate": 1.0}}},
    )  # fmt: skip
    assert run.events[0] == MARKUP, "the browser sets it as text"
    shown = msgspec.json.decode(msgspec.json.encode([run.urgent, run.gradual, run.events]))
    assert texts(shown)
    assert max(map(len, texts(shown))) <= TEXT_LETTERS + len("...") + len("@")
    assert len(msgspec.json.encode(shown)) < 500_000
    assert len(run.urgent["states"]) == MOST_ENTRIES


def texts(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for item in value.items() for part in item for text in texts(part)]
    return [text for part in value for text in texts(part)] if isinstance(value, list) else []


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"{", "not a status of this version"),
        (b"[]" * 10, "not a status of this version"),
        (b"\xff" * 100, "not a status of this version"),
        (msgspec.json.encode(snapshot()).replace(b'"game":"pokemon"', b'"game":"caf\xe9"'), "not a status"),
        (msgspec.json.encode(snapshot()).replace(b'"game":"pokemon"', b'"learner":' + b"[" * 100_000), "not a status"),
        (b" " * 9_000_000, "larger than"),
        (msgspec.json.encode({**msgspec.to_builtins(snapshot()), "phase": 1}), "not a status of this version"),
        (msgspec.json.encode({**msgspec.to_builtins(snapshot()), "workers": {"recent": 5}}), "does not know"),
    ],
    ids=["broken", "a list", "no text", "another encoding", "deep", "large", "another version", "other figures"],
)
def test_a_status_that_cannot_be_shown_is_a_sentence(tmp_path, content, fault):
    claim(tmp_path)
    (tmp_path / "status.json").write_bytes(content)
    run = WatchedRun(tmp_path, "run")
    run.poll(0.0)
    assert fault in run.urgent["fault"]
    write(tmp_path)
    run.poll(1.0)
    assert run.urgent["fault"] == "", "the next one is shown"


@pytest.mark.parametrize(
    "content",
    [
        b'{"pid":-1,"create_time":1.0}', b'{"pid":99999999999999999999,"create_time":1.0}', b"{", b"\xff",
        b'{"pid":1,"create_time":1.0,"machine":"caf\xe9"}', b'{"pid":1,"create_time":1.0,"x":' + b"[" * 100_000,
        b'{"pid":1,"create_time":1.0,"machine":"' + b"m" * 3_000_000 + b'"}',
    ],
    ids=["negative", "too large", "broken", "no text", "another encoding", "deep", "long"],
)  # fmt: skip
def test_an_owner_that_can_be_none_is_none(tmp_path, content):
    (tmp_path / "supervisor.pid").write_bytes(content)
    (tmp_path / "evaluation.json").write_bytes(b'{"game":"caf\xe9"}')
    run = show(tmp_path)
    assert run.urgent["fault"].startswith("The run is not active")
    assert len(run.urgent["fault"]) <= TEXT_LETTERS


@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege there")
def test_links_are_refused(tmp_path):
    real, root = tmp_path / "real", tmp_path / "run"
    real.mkdir()
    root.mkdir()
    write(real)
    (real / "batch.png").write_bytes(b"\x89PNG\r\n\x1a\n" + b"secret")
    (root / "status.json").symlink_to(real / "status.json")
    (root / "batch.png").symlink_to(real / "batch.png")
    run = WatchedRun(root, "run")
    run.poll(0.0)
    assert "cannot be read" in run.urgent["fault"]
    with pytest.raises(OSError):
        run.picture("batch.png")
    (root / "status.json").unlink()
    os.mkfifo(root / "status.json")
    run.poll(1.0)
    assert "not a regular file" in run.urgent["fault"]


def test_only_plots_that_are_png_are_shown(tmp_path):
    run = show(tmp_path)
    (tmp_path / "batch.png").write_bytes(b"<svg onload=alert(1)>")
    (tmp_path / "token").write_bytes(b"\x89PNG\r\n\x1a\n")
    for name in ("batch.png", "token", "../run/token", "rate.png"):
        with pytest.raises(OSError):
            run.picture(name)
    (tmp_path / "batch.png").write_bytes(b"\x89PNG\r\n\x1a\n...")
    assert run.picture("batch.png").endswith(b"...")


def test_evaluations_beside_the_run(tmp_path):
    pair = {"first": MARKUP, "second": "random", "battles": 50, "win_rate": 0.5, "wilson_95": [0.4, 0.6], "more": 1}
    rating = {"label": "a", "elo": 12.4, "elo_95": [-3.0, 28.0]}
    (tmp_path / "evaluation.json").write_bytes(msgspec.json.encode({"pairs": [pair], "ratings": [rating]}))
    best = tmp_path / "checkpoints" / "best"
    best.mkdir(parents=True)
    rates = {name: {"heuristics": 0.25} for name in ("win_rate", "win_rate_low", "win_rate_high")}
    result = {"score": 0.25, "measure": "mean win rate", "result": {"policy_version": 7, **rates}}
    (best / "evaluation.json").write_bytes(msgspec.json.encode(result))
    pairs = show(tmp_path).urgent["pairs"]
    assert pairs["best"] == "The best checkpoint is version 7: mean win rate 0.25."
    assert pairs["rates"] == [
        ["version 7", "heuristics", "0.250", "0.250 to 0.250", ""],
        [MARKUP, "random", "0.500", "0.400 to 0.600", "50"],
    ]
    assert pairs["ratings"] == [["a", "+12", "-3 to +28"]]
    (tmp_path / "evaluation.json").write_text('{"pairs": [{"first": 3}]}')
    assert len(show(tmp_path).urgent["pairs"]["rates"]) == 1


def test_payoffs_and_ratings_of_the_league_change_with_its_file(tmp_path):
    claim(tmp_path)
    run = show(tmp_path)
    assert run.urgent["league"] == {}
    assert "league" not in run.gradual["figures"]
    write_league(tmp_path, ["random", MARKUP * 10, "learner@7"])
    run.poll(RARELY_SEC)
    league = run.urgent["league"]
    assert league["columns"][:2] == ["learner@7", "random"]
    assert max(map(len, league["columns"])) <= 103
    latest = league["rows"][0]
    assert latest[3:6] == ["200", "", "0.25 (0.18 to 0.34)"]
    assert latest[2].count(" to ") == 1
    assert run.gradual["figures"]["league"].endswith("rank 3 of 3"), "the view's line, of the same file"
    write_league(tmp_path, [f"past/{n}" for n in range(MOST_MEMBERS + 2)])
    run.poll(2 * RARELY_SEC)
    assert len(run.urgent["league"]["rows"]) == MOST_MEMBERS
    assert "2 more members are left out" in run.urgent["league"]["about"]
    (tmp_path / "league.json").write_text("{")
    run.poll(3 * RARELY_SEC)
    assert "does not hold results of pairs" in run.urgent["fault"]
    (tmp_path / "league.json").unlink()
    run.poll(4 * RARELY_SEC)
    assert (run.urgent["league"], run.urgent["fault"]) == ({}, "")
