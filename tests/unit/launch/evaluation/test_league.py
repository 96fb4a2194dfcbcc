"""`simul league` without games: who belongs to a run's league, and what is refused."""

from __future__ import annotations

import json

import pytest

from simul.common.errors import ConfigError
from simul.common.protocol.specs import GameSpec
from simul.common.role.run_directory import RunDir
from simul.launch.evaluation.league import show_league
from simul.launch.monitoring.snapshot import STATUS, StatusFile
from tests.support.checkpoints import write_small_checkpoint
from tests.support.recorded_run import snapshot

SPEC = GameSpec(name="openspiel/tic_tac_toe", observation_size=27, num_actions=9, seats=2)
CONFIG = """
game: openspiel
opponents: {self_play: 0.5, past: 0.3, random: 0.2}
"""


@pytest.fixture
def run_dir(tmp_path):
    """A run at version 900 that has nine past selves, the last one of the same weights."""
    for version in range(100, 1000, 100):
        write_small_checkpoint(tmp_path / "checkpoints" / "past" / f"{version:09d}", version, spec=SPEC)
    write_small_checkpoint(tmp_path / "checkpoints" / "000000900", 900, spec=SPEC)
    (tmp_path / "config.yaml").write_text(CONFIG)
    return RunDir(tmp_path)


def members(run_dir, capsys, **options) -> list[str]:
    assert show_league(run_dir, as_json=True, **{"policies": 4, **options}) == 0
    return [each["label"] for each in json.loads(capsys.readouterr().out)["contestants"]]


def test_members_are_the_newest_self_a_spread_of_past_selves_and_scripted_players(run_dir, capsys):
    assert members(run_dir, capsys) == ["learner@900", "past/100", "past/300", "past/600", "past/800", "random"]
    assert members(run_dir, capsys, policies=1) == ["learner@900", "past/800", "random"]


def test_a_damaged_past_self_is_left_out_and_named(run_dir, capsys):
    (run_dir.checkpoints / "past" / "000000800" / "weights.safetensors").write_bytes(b"torn")
    assert show_league(run_dir, policies=1, as_json=True) == 0
    out, err = capsys.readouterr()
    assert [each["label"] for each in json.loads(out)["contestants"]] == ["learner@900", "past/700", "random"]
    assert "past self 000000800 is damaged" in err


def test_results_of_training_are_those_of_the_status(run_dir, capsys):
    recent = {"past/800": {"games": 40, "win_rate": 0.5}, "self_play": {"games": 9, "win_rate": 0.5}}
    StatusFile(run_dir, print).write(snapshot(workers={"recent": recent}))
    assert show_league(run_dir, policies=1, as_json=True) == 0
    (known,) = json.loads(capsys.readouterr().out)["training"]
    assert (known["opponent"], known["games"], known["win_rate"]) == ("past/800", 40, 0.5)
    (run_dir.root / STATUS).write_text('{"phase": 1}')
    assert show_league(run_dir, policies=1, as_json=True) == 0
    assert json.loads(capsys.readouterr().out)["training"] == []


def test_what_has_no_league_is_refused(run_dir, tmp_path):
    alone = write_small_checkpoint(
        tmp_path / "alone" / "checkpoints" / "000000001", 1,
        spec=GameSpec(name="gymnasium/CartPole-v1", observation_size=4, num_actions=2),
    )  # fmt: skip
    young = write_small_checkpoint(tmp_path / "young" / "checkpoints" / "000000001", 1, spec=SPEC)
    for root, sentence in (
        (tmp_path / "nowhere", r"There is no run in .*nowhere: expected a run directory"),
        (alone.parents[1], r"CartPole-v1 has one seat and no opponents: the run .* has no league"),
        (young.parents[1], r"has no past selves that can play; with a share in opponents\.past"),
    ):
        with pytest.raises(ConfigError, match=sentence):
            show_league(RunDir(root), policies=4)
    with pytest.raises(ConfigError, match=r"--picture .*x\.gif: expected a name that ends in \.png or \.svg"):
        show_league(run_dir, policies=4, picture=tmp_path / "x.gif")
    (run_dir.root / "league.json").write_text("[]")
    with pytest.raises(ConfigError, match=r"league\.json does not hold results of pairs"):
        show_league(run_dir, policies=4)
