"""Replays of Gymnasium episodes: every step in a JSON file, a video where the env draws and moviepy is there."""

from __future__ import annotations

import importlib.util
import json
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.error import DependencyNotInstalled

from simul.common.config.games.gymnasium import GymnasiumConfig
from simul.common.config.schema import Config, WorkersConfig
from simul.common.config.trust import EVERYTHING
from simul.common.errors import ConfigError
from simul.env_worker.games.gymnasium import replays
from simul.env_worker.games.gymnasium.hosted_env import episode_seed
from simul.env_worker.games.loading import build_source
from tests.support.gym_envs import Counting, play

GAME = "tests.support.gym_envs:Counting"
DRAWING = f"{__name__}:Drawing"


class Drawing(Counting):
    """Draws its number of steps as a colour."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}

    def __init__(self, render_mode=None, **options):
        super().__init__(**options)
        self.render_mode = render_mode

    def render(self):
        return np.full((32, 48, 3), 20 * self.steps, np.uint8)


class Wide(Counting):
    """Observes more numbers than a replay keeps."""

    def __init__(self):
        super().__init__()
        self.observation_space = spaces.Box(-np.inf, np.inf, (100,), np.float64)

    def reset(self, **options):
        _, info = super().reset(**options)
        return np.zeros(100), info

    def step(self, action):
        return np.zeros(100), *super().step(action)[1:]


class WithoutPackage(Drawing):
    def render(self):
        raise DependencyNotInstalled("pygame is not installed")


def played(folder, game, *, episodes=3, envs=2, player="none", **options):
    config = Config(game=game, game_options=options, workers=WorkersConfig(envs=envs))
    source = build_source(
        config,
        index=4,
        episodes=episodes,
        greedy=True,
        record=False,
        replays=folder,
        replay_player=player,
        trust=EVERYTHING,
    )
    source.start()
    play(source)
    source.close()
    return source


def test_every_episode_is_a_json_of_its_steps(tmp_path):
    source = played(tmp_path / "new" / "folder", GAME)
    files = sorted((tmp_path / "new" / "folder").iterdir())
    assert [file.name for file in files] == ["4-0-episode-0.json", "4-0-episode-1.json", "4-1-episode-0.json"]
    episode = json.loads(files[1].read_bytes())
    assert episode["seed"] == episode_seed(source._seed, 0, 1)
    draw = np.random.default_rng(np.random.PCG64(episode["seed"])).random()
    observations = [step["observation"] for step in episode["steps"]]
    assert observations == [[pytest.approx(draw, abs=1e-5), float(step)] for step in range(3)], (
        "the terminal one is unseen"
    )
    assert [step["action"] for step in episode["steps"]] == [0, 0, 0]
    assert [step["reward"] for step in episode["steps"]] == [1.0, 2.0, 3.0]
    assert [step["legal_actions"] for step in episode["steps"]] == [2, 2, 2]
    assert {name: episode[name] for name in ("game", "worker", "env", "episode", "outcome", "return", "length")} == {
        "game": GAME, "worker": 4, "env": 0, "episode": 1, "outcome": "terminated", "return": 6.0, "length": 3,
    }  # fmt: skip


def test_a_truncated_episode_ends_with_what_it_saw_last(tmp_path):
    played(tmp_path, GAME, episodes=1, truncates=True)
    episode = json.loads((tmp_path / "4-0-episode-0.json").read_bytes())
    assert (episode["outcome"], episode["length"], len(episode["steps"])) == ("truncated", 3, 4)
    assert list(episode["steps"][-1]) == ["observation"]


def test_a_long_observation_is_left_out(tmp_path):
    played(tmp_path, f"{__name__}:Wide", episodes=1)
    episode = json.loads((tmp_path / "4-0-episode-0.json").read_bytes())
    assert episode["observation_size"] == 100
    assert all("observation" not in step for step in episode["steps"])


def test_an_aborted_episode_says_why(tmp_path):
    config = Config(game=GAME, workers=WorkersConfig(envs=1))
    source = build_source(config, index=0, episodes=1, greedy=True, record=False, replays=tmp_path, trust=EVERYTHING)
    source.start()
    source.abort([0], "server_lost")
    source.close()
    outcomes = [json.loads((tmp_path / f"0-0-episode-{n}.json").read_bytes())["outcome"] for n in (0, 1)]
    assert outcomes == ["server_lost", "shutdown"]


def test_a_source_of_ones_own_writes_none(tmp_path):
    config = Config(game="tests.unit.env_worker.games.test_loading:OwnSource")
    with pytest.raises(ConfigError, match="writes no replays"):
        build_source(config, index=0, episodes=1, greedy=True, record=False, replays=tmp_path, trust=EVERYTHING)


def test_without_moviepy_a_sentence_comes_before_anything_is_played(tmp_path, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"need moviepy, .*--replay-player none, or run: .*pip install 'moviepy"):
        played(tmp_path, DRAWING, player="own")
    assert list(tmp_path.iterdir()) == []
    played(tmp_path, DRAWING, player="none")
    assert len(list(tmp_path.iterdir())) == 3


def test_an_env_that_lacks_what_it_draws_with_is_a_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: SimpleNamespace())
    with pytest.raises(ConfigError, match="cannot draw its pictures: pygame is not installed"):
        played(tmp_path, f"{__name__}:WithoutPackage", player="own")


def test_an_env_that_draws_is_recorded_by_gymnasium_one_env_at_a_time(tmp_path, monkeypatch):
    """The wrapper is Gymnasium's own; only the encoder of the file is another."""
    written = {}

    class Clip:
        def __init__(self, frames, fps):
            self.frames, self.fps = frames, fps

        def write_videofile(self, path, logger):
            written[path] = ([int(frame[0, 0, 0]) for frame in self.frames], self.fps)

    for name in ("moviepy", "moviepy.video", "moviepy.video.io", "moviepy.video.io.ImageSequenceClip"):
        monkeypatch.setitem(sys.modules, name, SimpleNamespace(ImageSequenceClip=Clip))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: SimpleNamespace())
    source = played(tmp_path, DRAWING, player="own")
    assert source.envs == 1
    assert written == {str(tmp_path / f"4-0-episode-{n}.mp4"): ([0, 20, 40, 60], 10) for n in range(3)}
    assert len(list(tmp_path.glob("*.json"))) == 3


@pytest.mark.skipif(importlib.util.find_spec("moviepy") is None, reason="the extra [video] is not installed")
def test_the_video_of_cartpole_is_a_file(tmp_path):
    config = Config(game="gymnasium", gymnasium=GymnasiumConfig(id="CartPole-v1"))
    source = build_source(config, index=0, episodes=1, greedy=True, record=False, replays=tmp_path, trust=EVERYTHING)
    source.start()
    play(source)
    source.close()
    assert (tmp_path / "0-0-episode-0.mp4").stat().st_size > 1000


def test_an_env_without_pictures_has_no_video():
    assert replays.drawing_env(Counting, "test") is None
