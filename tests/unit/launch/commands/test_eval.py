"""Who plays in `simul eval`."""

from __future__ import annotations

import pytest

from simul.launch import cli
from simul.launch.evaluation import eval_runner


@pytest.fixture
def asked(monkeypatch, tmp_path):
    """What `simul eval` asks to be played, instead of playing it."""
    calls = []

    def evaluate(checkpoints, **options):
        calls.append(([str(checkpoint) for checkpoint in checkpoints], options))
        return 0

    monkeypatch.setattr(eval_runner, "evaluate", evaluate)
    monkeypatch.chdir(tmp_path)
    return calls


def test_checkpoints_and_opponents_stand_in_one_list(asked, tmp_path):
    for name in ("mine", "random"):
        (tmp_path / name).mkdir()
    counts = ["--games", "8", "--openings", "1"]
    assert cli.main(["eval", "--cross", "mine", "max", "./random", "random", "runs/gone", *counts]) == 0
    ((checkpoints, options),) = asked
    assert checkpoints == ["mine", "random", "runs/gone"]
    assert options["opponents"] == ["max", "random"]
    assert (options["matrix"], options["episodes"], options["openings"]) == (True, 8, 1)


def test_one_player_is_not_enough(asked, capsys):
    assert cli.main(["eval", "--cross", "random"]) == 2
    assert "name two players or more" in capsys.readouterr().err
    assert asked == []


@pytest.mark.parametrize("place", ["zoo:pokemon", "runs/mine", "s3://bucket/mine"])
def test_a_checkpoint_in_the_place_of_the_game_is_named(place, asked, tmp_path, capsys):
    (tmp_path / "runs" / "mine" / "checkpoints").mkdir(parents=True)
    assert cli.main(["eval", place, "--opponent", "random"]) == 2
    assert f"write --checkpoint {place}." in capsys.readouterr().err
    assert asked == []
