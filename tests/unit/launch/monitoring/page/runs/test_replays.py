"""Which replays the page lists and reads, and that it runs nothing that one of others names."""

from __future__ import annotations

import sys

import msgspec
import pytest

from simul.common.errors import ConfigError
from simul.launch.monitoring.page.runs import replays
from simul.launch.monitoring.page.runs.replays import MOST_LISTED, battle_lines, replay_frames, replay_key, replay_names

GAME = {"seed": 1, "players": ["a", "b"], "turns": [], "returns": [0.0, 0.0], "outcome": "unfinished"}


def test_names_are_those_that_workers_give(tmp_path):
    for name in (
        "a-vs-b-0-1.json",
        "a@5-vs-b-0-2.log",
        "a-vs-b-0-1.svg",
        "status.json",
        "a-0-1.html",
        "<b>-0-1.log",
        "a b-0-1.log",
        "0-1-episode-2.json",
        "0-1-episode-2.mp4",
        "episode-2.json",
    ):
        (tmp_path / name).write_text("")
    (tmp_path / "folder-0-1.json").mkdir()
    assert sorted(replay_names(tmp_path)) == ["0-1-episode-2.json", "a-vs-b-0-1.json", "a@5-vs-b-0-2.log"]
    (tmp_path / "replays").mkdir()
    assert replay_names(tmp_path) == [], "those of a run directory are in a folder of their own"
    for number in range(2 * MOST_LISTED):
        (tmp_path / "replays" / f"a-0-{number}.log").write_text("")
    assert len(replay_names(tmp_path)) == MOST_LISTED
    assert replay_names(tmp_path / "nothing") == []


@pytest.mark.parametrize(
    "name", ["../secret-0-1.log", "..", "", "status.json", "a-0-1.log\n", "a-0-1.log/../x-0-1.log", "a-0-2.log"]
)
def test_a_hostile_name_is_no_replay(tmp_path, name):
    folder = tmp_path / "run"
    folder.mkdir()
    (tmp_path / "secret-0-1.log").write_text("secret")
    (folder / "a-0-1.log").write_text("|turn|1\n|win|a\n")
    (folder / "status.json").write_text("{}")
    with pytest.raises(OSError):
        replay_key(folder, name)
    assert battle_lines(replay_key(folder, "a-0-1.log").path) == ["|turn|1", "|win|a"]


@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege there")
def test_links_are_not_followed(tmp_path):
    (tmp_path / "secret-0-1.log").write_text("secret")
    run = tmp_path / "run"
    run.mkdir()
    (run / "a-0-1.log").symlink_to(tmp_path / "secret-0-1.log")
    assert replay_names(run) == []
    with pytest.raises(OSError):
        replay_key(run, "a-0-1.log")
    with pytest.raises(OSError):
        battle_lines(run / "a-0-1.log")
    (run / "replays").symlink_to(tmp_path)
    assert replay_names(run) == []


def test_a_log_that_is_too_large_is_a_sentence_with_both_sizes(tmp_path, monkeypatch):
    (tmp_path / "a-0-1.log").write_text("x" * 4000)
    monkeypatch.setattr(replays, "FILE_BYTES", 3000)
    with pytest.raises(ConfigError, match=r"^a-0-1\.log has 4,000 bytes; the page shows at most 3,000 of them\.$"):
        battle_lines(tmp_path / "a-0-1.log")


def test_what_cannot_be_played_again_is_a_sentence(tmp_path, monkeypatch):
    path = tmp_path / "a-0-1.json"
    for content, words in (
        (
            {**GAME, "game": "x", "settings": {"game": "os:system"}},
            "names what would be run.*, as in `simul watch --replay FILE --trust`",
        ),
        (
            {**GAME, "game": "x", "settings": {"game": "no_such_game", "blokus": {"plyers": 2}}},
            "^2 problems in the settings of the replay: (.*); (.*)$",
        ),
        ({"status": 1}, "is no replay of a table game"),
    ):
        path.write_bytes(msgspec.json.encode(content))
        with pytest.raises(ConfigError, match=words):
            replay_frames(path)
    with pytest.raises(ConfigError, match="not played again"):  # a page that ends waits for none
        replay_frames(path, lambda: True)
    monkeypatch.setattr(replays, "TABLE_PLAYER", "no_such_module")
    with pytest.raises(ConfigError, match=r"^The replay could not be played again: .* named no_such_module\.$"):
        replay_frames(path)
