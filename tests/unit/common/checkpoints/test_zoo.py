"""`zoo:NAME` wherever a checkpoint is named."""

from __future__ import annotations

import argparse

import msgspec
import pytest
import torch

from simul.common.checkpoints import zoo
from simul.common.checkpoints.meta import WEIGHTS_FILE
from simul.common.errors import ConfigError
from simul.common.nets.bfloat16 import in_bfloat16
from simul.common.nets.build import build_network
from simul.common.nets.io import bytes_to_state, load_policy, weights_to_bytes
from simul.common.protocol.specs import GameSpec
from simul.launch.commands.eval import cross_players
from simul.launch.option_types import checkpoint, local_checkpoint
from simul.learner.checkpoints.checkpoint_store import RunFacts, write_folder
from tests.support.checkpoints import SMALL

SPEC = GameSpec("gymnasium/CartPole-v1", 4, 2)


@pytest.fixture
def entry(tmp_path, monkeypatch):
    monkeypatch.setattr(zoo, "ZOO", tmp_path)
    files = {WEIGHTS_FILE: in_bfloat16(weights_to_bytes(build_network(SMALL, SPEC, seed=3)))}
    write_folder(tmp_path / "pole", RunFacts(SPEC, SMALL, "0" * 16, 3).meta(7, 900, 0, files, True), files)
    (tmp_path / "empty").mkdir()
    return tmp_path / "pole"


def test_options_take_it_and_list_what_there_is(entry):
    assert checkpoint("zoo:pole") == local_checkpoint("zoo:pole") == entry
    assert cross_players(["zoo:pole", "random"]) == ([(entry, ())], ["random"])
    for wrong in ("zoo:pol", "zoo:", "zoo:empty", "zoo:../pole"):
        with pytest.raises(argparse.ArgumentTypeError, match="expected zoo:NAME with one of pole"):
            checkpoint(wrong)
        with pytest.raises(ConfigError, match="There is no policy"):
            cross_players([wrong, "random"])
    with pytest.raises(ConfigError, match="; did you mean zoo:pole"):
        zoo.zoo_folder("zoo:pol")


def test_its_weights_in_bfloat16_are_a_policy(entry):
    policy, exact = load_policy("zoo:pole"), build_network(SMALL, SPEC, seed=3)
    for name, value in policy.network.state_dict().items():
        assert value.dtype == torch.float32
        torch.testing.assert_close(value, exact.state_dict()[name], rtol=2**-8, atol=1e-6)


def test_running_statistics_stay_exact():
    network = build_network(msgspec.structs.replace(SMALL, normalize_observations=True), SPEC)
    network.observation_mean.fill_(1000.5)
    state = bytes_to_state(in_bfloat16(weights_to_bytes(network)))
    assert state["observation_mean"].tolist() == [1000.5] * 4
