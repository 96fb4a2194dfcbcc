"""Recorded episodes of Gymnasium's environments as the page shows them."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from simul.common.errors import ConfigError
from simul.env_worker.games.gymnasium.replays import EpisodeRecorder
from simul.launch.monitoring.page.runs import episodes
from simul.launch.monitoring.page.runs.episodes import episode_frames


def recorded(folder):
    recorder = EpisodeRecorder(folder, "CartPole-v1", 0, 1)
    recorder.begin(2, 7)
    recorder.observe(np.array([0.25, np.nan]), np.array([1, 1], dtype=np.uint8))
    recorder.act(1, 1.0)
    recorder.observe(np.array([0.5, 2e-9]), None)
    recorder.end("terminated", 1.0)
    return folder / "0-1-episode-2.json"


def test_an_episode_is_a_frame_for_each_observation(tmp_path):
    first, last = episode_frames(recorded(tmp_path))
    assert first.text == "step 0\n0.25 NaN"
    assert first.said == ["CartPole-v1, seed 7", "2 legal actions", "action 1, reward 1"]
    assert last.text == "step 1\n0.5 2e-09"
    assert last.said == ["terminated after 1 decisions; return 1"]


def test_an_image_and_an_episode_without_steps_are_said(tmp_path):
    file = tmp_path / "0-1-episode-2.json"
    episode = {"game": "x", "seed": 1, "outcome": "env_error", "return": None, "length": 0}
    file.write_bytes(msgspec.json.encode({**episode, "steps": [{}]}))
    assert episode_frames(file)[0].text == "step 0\nthe observation is not recorded"
    file.write_bytes(msgspec.json.encode({**episode, "steps": []}))
    assert episode_frames(file)[0].said == ["x, seed 1", "env_error after 0 decisions; return NaN"]


def test_of_very_many_steps_the_first_are_shown(tmp_path, monkeypatch):
    monkeypatch.setattr(episodes, "MOST_FRAMES", 1)
    (only,) = episode_frames(recorded(tmp_path))
    assert "1 steps after this one are not shown" in only.said


@pytest.mark.parametrize("content", [b"", b"\xff", b"[" * 5000, b'{"game": 1}'])
def test_what_is_no_episode_is_a_sentence(tmp_path, content):
    file = tmp_path / "0-1-episode-2.json"
    file.write_bytes(content)
    with pytest.raises(ConfigError, match=r"^0-1-episode-2\.json is no episode that this version of Simul recorded: "):
        episode_frames(file)
