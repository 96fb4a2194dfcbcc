"""The frozen opponent of a run: copied once, and refused where it cannot play or must not be trusted."""

from __future__ import annotations

import shutil

import pytest

from simul.common.checkpoints.meta import read_meta
from simul.common.config.game_description import FROZEN
from simul.common.config.schema import Config, NetworkConfig, OpponentsConfig
from simul.common.config.trust import EVERYTHING, NOTHING
from simul.common.errors import ConfigError
from simul.common.protocol.specs import GameSpec
from simul.common.role.run_directory import RunDir
from simul.launch.supervisor.frozen_opponent import copy_frozen_opponent
from simul.launch.supervisor.game_spec import StartStopped
from tests.support.checkpoints import write_small_checkpoint

SPEC = GameSpec(name="openspiel/tic_tac_toe", observation_size=27, num_actions=9, seats=2)


@pytest.fixture
def run_dir(tmp_path):
    found = RunDir(tmp_path / "exploiter")
    found.create()
    return found


def against(place) -> Config:
    return Config(game="openspiel", opponents=OpponentsConfig(self_play=0.0, frozen=1.0, checkpoint=str(place)))


def copied(run_dir, place, trust=NOTHING, spec=SPEC) -> tuple[int, list[str]]:
    """The version of the copy, and what was said."""
    said: list[str] = []
    config = against(place)
    run_dir.write_config(config, copy_frozen_opponent(config, run_dir, spec, trust, said.append, lambda: False))
    return read_meta(run_dir.checkpoints / FROZEN).version, said


def test_the_newest_of_a_run_is_copied_once_and_stays_when_that_run_goes_on_or_is_gone(tmp_path, run_dir):
    victim = tmp_path / "victim"
    write_small_checkpoint(victim / "checkpoints" / "000000007", 7, spec=SPEC)
    assert copied(run_dir, victim) == (7, [f"the frozen opponent is version 7 of {victim}"])
    write_small_checkpoint(victim / "checkpoints" / "000000008", 8, spec=SPEC)
    assert copied(run_dir, victim)[0] == 7
    shutil.rmtree(victim)
    version, (said,) = copied(run_dir, victim)
    assert (version, said) == (7, f"the frozen opponent is version 7 of {victim}, as when the run began with it")
    another = write_small_checkpoint(tmp_path / "another", 3, spec=SPEC)
    assert copied(run_dir, another)[0] == 3


def test_a_copy_that_is_damaged_is_made_again(tmp_path, run_dir):
    victim = write_small_checkpoint(tmp_path / "victim", 7, spec=SPEC)
    copied(run_dir, victim)
    weights = run_dir.checkpoints / FROZEN / "weights.safetensors"
    weights.write_bytes(b"torn")
    copied(run_dir, victim)
    assert weights.read_bytes() == (victim / "weights.safetensors").read_bytes()


def test_one_that_is_fetched_from_a_store_is_said_in_the_view_and_a_stop_ends_the_fetch(tmp_path, run_dir, capfd):
    victim = write_small_checkpoint(tmp_path / "victim", 7, spec=SPEC)
    version, said = copied(run_dir, f"file://{victim}")
    assert (version, len(said), capfd.readouterr().err) == (7, 2, "")
    with pytest.raises(StartStopped):
        copy_frozen_opponent(against(f"file://{victim}/"), run_dir, SPEC, NOTHING, print, lambda: True)


def test_no_share_copies_nothing(run_dir):
    assert copy_frozen_opponent(Config(), run_dir, SPEC, NOTHING, print, lambda: False) == frozenset()
    assert not (run_dir.checkpoints / FROZEN).exists()


@pytest.mark.parametrize(
    ("place", "sentence"),
    [
        ("nowhere", "There is no checkpoint in .*nowhere"),
        ("zoo:nobody", "There is no policy 'zoo:nobody'; expected zoo:NAME"),
    ],
)
def test_what_is_not_there_is_a_sentence(run_dir, place, sentence):
    with pytest.raises(ConfigError, match=sentence):
        copied(run_dir, place)


def test_a_checkpoint_of_another_game_is_refused(tmp_path, run_dir):
    other = GameSpec(name="openspiel/go", observation_size=9, num_actions=9, seats=2)
    victim = write_small_checkpoint(tmp_path / "victim", 7, spec=other)
    with pytest.raises(
        ConfigError, match=r"opponents\.checkpoint: .*victim is of another game or encoder: .*openspiel/go"
    ):
        copied(run_dir, victim)
    assert not (run_dir.checkpoints / FROZEN).exists()


def test_a_network_of_others_is_refused_unless_trusted_and_then_stays_so(tmp_path, run_dir):
    strangers = NetworkConfig(name="stranger:Net")
    victim = write_small_checkpoint(tmp_path / "victim", 7, spec=SPEC, network=strangers)
    with pytest.raises(ConfigError, match=r"names what would be run, network\.name: .stranger:Net."):
        copied(run_dir, victim)
    assert copied(run_dir, victim, EVERYTHING)[0] == 7
    assert copied(run_dir, victim)[0] == 7, "the run's signature covers its copy"
