"""Evaluation: interval, which checkpoint, which configuration, what counts as a win."""

from __future__ import annotations

import hashlib

import msgspec
import pytest

from simul.common.config.matchups import Contestant, Pairing
from simul.common.launch.evaluation.checkpoint import config_of, fault_of, newest_checkpoint
from simul.common.launch.evaluation.result import in_words, paired, result_of, wilson
from simul.common.protocol.errors import ConfigError

AGAINST_RANDOM = Pairing(Contestant("a@1", policy="learner"), Contestant("random", bot="random"), 10)


def test_wilson_against_published_values():
    # Newcombe 1998, table I: 81 of 263 and 15 of 148, Wilson without continuity correction.
    assert wilson(81, 263) == pytest.approx((0.2553, 0.3662), abs=5e-5)
    assert wilson(15, 148) == pytest.approx((0.0624, 0.1605), abs=5e-5)
    assert wilson(0, 20) == pytest.approx((0.0, 0.1611), abs=5e-5)
    assert wilson(0, 0) == (0.0, 1.0)


def test_wilson_stays_inside_and_around_the_rate():
    for games in (1, 7, 1000):
        for wins in {0, games // 2, games}:
            low, high = wilson(wins, games)
            assert 0.0 <= low <= wins / games <= high <= 1.0


@pytest.fixture
def checkpoints(tmp_path):
    for version in (0, 9, 10):
        folder = tmp_path / "checkpoints" / f"{version:09}"
        folder.mkdir(parents=True)
        network = {"name": "pokemon", "options": {}}
        weights = b"weights %d" % version
        files = {"weights.safetensors": hashlib.sha256(weights).hexdigest()}
        spec = {"name": "pokemon/gen9randombattle"}
        meta = {"version": version, "spec": spec, "network": network, "files": files}
        (folder / "weights.safetensors").write_bytes(weights)
        (folder / "meta.json").write_bytes(msgspec.json.encode(meta))
    (tmp_path / "checkpoints" / "torn").mkdir()
    return tmp_path / "checkpoints"


def test_a_checkpoint_or_the_newest_of_a_run(checkpoints):
    assert newest_checkpoint(checkpoints / "000000009").name == "000000009"
    assert newest_checkpoint(checkpoints).name == "000000010"
    assert newest_checkpoint(checkpoints.parent).name == "000000010"
    with pytest.raises(ConfigError, match="no checkpoint"):
        newest_checkpoint(checkpoints / "torn")


def test_damaged_checkpoints_are_passed_over_and_named(checkpoints, capsys):
    (checkpoints / "000000010" / "weights.safetensors").write_bytes(b"cut off")
    assert newest_checkpoint(checkpoints).name == "000000009"
    assert "000000010 is damaged: weights.safetensors does not have the hash" in capsys.readouterr().err
    with pytest.raises(ConfigError, match="is damaged"):
        newest_checkpoint(checkpoints / "000000010")
    (checkpoints / "000000009" / "meta.json").write_text("torn {")
    (checkpoints / "000000000" / "weights.safetensors").unlink()
    assert fault_of(checkpoints / "000000000") == "is damaged: weights.safetensors: No such file or directory"
    (checkpoints / "000000000" / "weights.safetensors").mkdir()
    assert fault_of(checkpoints / "000000000") == "cannot be read: weights.safetensors: Is a directory"
    with pytest.raises(ConfigError, match=r"No checkpoint in .* can be used"):
        newest_checkpoint(checkpoints.parent)


def test_the_configuration_comes_from_the_run_or_from_the_checkpoint_itself(checkpoints):
    config = config_of(checkpoints / "000000010", ["seed=5"])
    assert (config.game, config.network.name, config.seed) == ("pokemon", "pokemon", 5)
    assert config.pokemon.format == "gen9randombattle"
    (checkpoints.parent / "config.yaml").write_text("game: gymnasium\nseed: 7\n")
    assert config_of(checkpoints / "000000010", []).seed == 7
    with pytest.raises(ConfigError, match="does not say"):
        config_of(checkpoints.parent / "a" / "b" / "c", [])


def test_ties_and_truncated_games_are_not_wins(tmp_path):
    results = {"0/p1": {"wins": 4, "losses": 1}, "0/p2": {"wins": 2, "losses": 1, "ties": 1, "truncated": 1}}
    figures = {"results": results, "episodes": {"finished": 10}, "mirrored": {"0": {"0": 1, "1": 2, "2": 2}}}
    result = result_of(figures, AGAINST_RANDOM, 10, checkpoint=tmp_path, version=3)
    assert result["win_rate"] == 0.6
    assert result["episodes"] == 10
    assert result["wilson_95"] == wilson(6, 10)
    assert (result["as_p1"]["wins"], result["as_p2"]["wins"]) == (4, 2)
    words = in_words(result)
    assert "6 wins, 2 losses, 1 ties, 1 truncated" in words
    assert "5 times the same battle from both sides: 2 times both won, 2 times one, 1 times none" in words


def test_the_interval_of_mirrored_battles_follows_what_the_two_have_in_common():
    # Means 0, 1/2, 1/2, 1, of mean 0.5 and variance 1/6: 0.5 +- 1.96 * sqrt(1/24).
    found = paired({"0": 1, "1": 2, "2": 1})
    assert (found["complete"], found["none_won"], found["one_won"], found["both_won"]) == (4, 1, 2, 1)
    assert found["win_rate"] == 0.5
    assert found["normal_95"] == pytest.approx((0.1, 0.9), abs=1e-3)
    low, high = wilson(100, 200)
    assert paired({"1": 100})["normal_95"] == (0.5, 0.5), "whoever has the better side wins"
    alike = paired({"0": 50, "2": 50})["normal_95"]
    assert alike[0] < low < high < alike[1], "the second battle tells nothing new"
    assert paired({"2": 1})["normal_95"] is None
    assert paired({})["win_rate"] is None


def test_without_mirrored_battles_nothing_is_said_of_pairs(tmp_path):
    pairing = Pairing(Contestant("a"), Contestant("random"), 2, mirrored=False)
    figures = {"results": {"0/p1": {"wins": 2}}, "episodes": {"finished": 2}}
    result = result_of(figures, pairing, 2, checkpoint=tmp_path, version=3)
    assert not result["mirrored"]
    assert "pairs" not in result
    assert "both sides" not in in_words(result)


def test_missing_games_are_named(tmp_path):
    result = result_of({}, AGAINST_RANDOM, 10, checkpoint=tmp_path, version=None)
    assert result["win_rate"] is None
    assert "10 of 10 episodes were not played" in in_words(result)
    assert "mean return none" in in_words(result_of({}, None, 1, checkpoint=tmp_path, version=0))
