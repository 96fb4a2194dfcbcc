"""Which contestants an evaluation accepts, and what they are called."""

from __future__ import annotations

from pathlib import Path

import pytest

from simul.common.config.schema import Config, PokemonConfig
from simul.common.launch.evaluation.eval_runner import checkpoint_labels, evaluate, seeds_are_drawn_here
from simul.common.protocol.errors import ConfigError


def test_labels_of_checkpoints_are_short_and_distinct():
    folders = [Path(f"/{where}/run/checkpoints/{version:09d}") for where, version in (("x", 0), ("x", 12), ("y", 12))]
    assert checkpoint_labels([*folders, Path("/z/best")]) == ["run@0", "run@12", "run@12#2", "best"]


@pytest.mark.parametrize(
    ("opponents", "sentence"),
    [
        (["heuristic"], "no opponent 'heuristic'. Did you mean heuristics"),
        (["self"], "no opponent 'self'"),
        (["max", "max_base_power"], "--opponent names the same one twice"),
    ],
)
def test_opponents_that_cannot_play(opponents, sentence, tmp_path):
    with pytest.raises(ConfigError, match=sentence):
        evaluate([], opponents=opponents, episodes=5)


def test_battles_are_mirrored_only_where_their_seeds_are_ours():
    assert seeds_are_drawn_here(Config())
    assert not seeds_are_drawn_here(Config(pokemon=PokemonConfig(transport="websocket")))
