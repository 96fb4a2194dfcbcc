"""Which checkpoint is chosen, its configuration, and what `simul up --from` copies or refuses."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import msgspec
import pytest

from simul.common.checkpoints.meta import OPTIMIZER_FILE
from simul.common.checkpoints.zoo import ZOO
from simul.common.config.schema import Config, LearnerConfig, NetworkConfig
from simul.common.errors import ConfigError
from simul.common.protocol.specs import GameSpec
from simul.common.role.run_directory import RunDir
from simul.launch.supervisor.checkpoint_files import (
    InitialCheckpoint,
    checkpoint_labels,
    config_of,
    find_fault,
    new_horizon,
    newest_checkpoint,
)
from simul.learner.checkpoints.checkpoint_store import CheckpointStore
from tests.support.checkpoints import SMALL, write_checkpoint, write_small_checkpoint


@pytest.fixture
def checkpoints(tmp_path):
    spec = GameSpec("pokemon/gen9randombattle", 3, 2)
    for version in (0, 9, 10):
        folder = tmp_path / "checkpoints" / f"{version:09}"
        write_small_checkpoint(folder, version, spec=spec, network=NetworkConfig("pokemon"))
    (tmp_path / "checkpoints" / "torn").mkdir()
    return tmp_path / "checkpoints"


def test_a_past_self_is_of_its_run(checkpoints):
    past = write_small_checkpoint(
        checkpoints / "past" / "000000003", 3, spec=GameSpec("pokemon/gen9randombattle", 3, 2)
    )
    (checkpoints.parent / "config.yaml").write_text("game: gymnasium\nseed: 7\n")
    assert config_of(past, []).seed == 7
    name = checkpoints.parent.name
    assert checkpoint_labels([past, checkpoints / "000000010"]) == [f"{name}@3", f"{name}@10"]


def test_a_new_horizon_is_what_was_learned_and_this_start(checkpoints):
    meta = msgspec.json.decode((checkpoints / "000000010" / "meta.json").read_bytes())
    (checkpoints / "000000010" / "meta.json").write_bytes(msgspec.json.encode({**meta, "decisions": 700}))
    run, start = RunDir(checkpoints.parent), Config(stop_after_decisions=5000)
    assert new_horizon(start, run) == 5700
    numbered = msgspec.structs.replace(start, learner=LearnerConfig(total_decisions=900))
    with pytest.raises(ConfigError, match=r"learner\.total_decisions, and it is 900 already"):
        new_horizon(numbered, run)
    with pytest.raises(ConfigError, match="no checkpoint"):
        new_horizon(start, RunDir(checkpoints / "torn"))


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
    assert find_fault(checkpoints / "000000000") == "is damaged: weights.safetensors: No such file or directory"
    (checkpoints / "000000000" / "weights.safetensors").mkdir()
    assert find_fault(checkpoints / "000000000") == "cannot be read: weights.safetensors: Is a directory"
    with pytest.raises(ConfigError, match=r"No checkpoint in .* can be used"):
        newest_checkpoint(checkpoints.parent)


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        (b'"encoder_version": 1', b'"encoder_version": 7', "one of them was changed"),
        (b'"num_actions": 2', b'"num_actions": 2000000000', "one of them was changed"),
        (b'"decisions": 0', b'"decisions": 1e23', r"decisions"),
    ],
)
def test_facts_that_do_not_belong_to_the_fingerprint_beside_them_are_refused(checkpoints, old, new, fault):
    meta = checkpoints / "000000009" / "meta.json"
    text = meta.read_bytes()
    assert old in text
    meta.write_bytes(text.replace(old, new))
    assert re.search(f"^is damaged: meta.json: .*{fault}", find_fault(meta.parent))


def test_the_configuration_comes_from_the_run_or_from_the_checkpoint_itself(checkpoints):
    config = config_of(checkpoints / "000000010", ["seed=5"])
    assert (config.game, config.network.name, config.seed) == ("pokemon", "pokemon", 5)
    assert config.pokemon.format == "gen9randombattle"
    (checkpoints.parent / "config.yaml").write_text("game: gymnasium\nseed: 7\n")
    assert config_of(checkpoints / "000000010", []).seed == 7
    with pytest.raises(ConfigError, match="does not say"):
        config_of(checkpoints.parent / "a" / "b" / "c", [])


@pytest.mark.parametrize("damaged", [b"", b"game: blokus\n", None])
def test_the_configuration_of_an_entry_of_a_zoo_is_checked_as_its_weights_are(tmp_path, damaged):
    entry = Path(shutil.copytree(ZOO / "blokus_duo", tmp_path / "mine"))
    (tmp_path / "config.yaml").write_text("theme: dark\n")  # of whatever lies above
    assert find_fault(entry) == ""
    assert config_of(entry, []).learner.algorithm == "alphazero"
    config = entry / "config.yaml"
    config.unlink() if damaged is None else config.write_bytes(damaged)
    with pytest.raises(ConfigError, match=r"is damaged: config\.yaml"):
        newest_checkpoint(entry)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no such files there")
def test_a_configuration_that_is_no_regular_file_is_refused_and_not_left_out(checkpoints):
    os.mkfifo(checkpoints.parent / "config.yaml")
    with pytest.raises(ConfigError, match=r"config.yaml cannot be read: not a regular file"):
        config_of(checkpoints / "000000010", [])


SPEC = GameSpec(name="test", observation_size=3, num_actions=2)
NETWORK = SMALL.name


@pytest.fixture
def run_dir(tmp_path):
    run_dir = RunDir(tmp_path / "fine")
    run_dir.checkpoints.mkdir(parents=True)
    return run_dir


@pytest.fixture
def old(tmp_path):
    for version in (5, 31):
        write_checkpoint(tmp_path / "old" / "checkpoints" / f"{version:09d}", SPEC, version)
    return tmp_path / "old"


def copied(checkpoint, run_dir) -> str:
    return InitialCheckpoint(checkpoint, run_dir).copy_into_run(SPEC, NETWORK)


def test_the_newest_of_a_run_or_one_by_name_with_decisions_from_zero(old, run_dir):
    assert "begins with" in copied(old, run_dir)
    found = CheckpointStore(run_dir.checkpoints).latest(SPEC)
    assert (found.meta.version, found.meta.decisions, found.meta.updates, found.meta.milestone) == (31, 0, 0, True)
    assert found.weights == CheckpointStore(old / "checkpoints").latest(SPEC).weights
    shutil.rmtree(run_dir.checkpoints / "000000031")
    copied(old / "checkpoints" / "000000005", run_dir)
    assert CheckpointStore(run_dir.checkpoints).versions() == [5]


def test_the_same_command_resumes_whatever_became_of_the_origin_and_another_one_is_refused(old, run_dir):
    copied(old, run_dir)
    write_checkpoint(run_dir.checkpoints / "000000040", SPEC, 40)
    write_checkpoint(old / "checkpoints" / "000000060", SPEC, 60)  # it went on
    again = InitialCheckpoint(old / ".." / "old", run_dir)
    assert "resumes from its checkpoint 000000040" in again.copy_into_run(SPEC, NETWORK)
    again.undo()  # it brought nothing
    assert CheckpointStore(run_dir.checkpoints).versions() == [31, 40]
    with pytest.raises(ConfigError, match="checkpoints of its own, the newest is 000000040: leave --from out"):
        copied(old / "checkpoints" / "000000005", run_dir)
    shutil.rmtree(old)
    assert "resumes from its checkpoint 000000040" in copied(old, run_dir)


def test_one_of_a_store_is_fetched_with_its_moments_and_the_same_command_resumes(old, run_dir):
    url, said = f"file://{old}/checkpoints/000000031", []
    begun = InitialCheckpoint(f"{url}/", run_dir).copy_into_run(SPEC, NETWORK, said.append)
    assert begun == f"the run begins with {url} (000000031)"
    assert [each.split()[0] for each in said] == ["fetching"]
    found, origin = (CheckpointStore(folder).latest(SPEC) for folder in (run_dir.checkpoints, old / "checkpoints"))
    assert (found.weights, found.optimizer) == (origin.weights, origin.optimizer)
    shutil.rmtree(old)
    assert "resumes from its checkpoint 000000031" in copied(url, run_dir)


def test_undo_removes_the_copy_of_a_run_that_did_not_start(old, run_dir):
    origin = InitialCheckpoint(old, run_dir)
    origin.copy_into_run(SPEC, NETWORK)
    origin.undo()
    assert list(run_dir.checkpoints.iterdir()) == []
    assert not run_dir.read_origin()


def test_another_encoder_a_damaged_one_and_none_are_refused_and_nothing_is_written(old, run_dir, tmp_path):
    with pytest.raises(
        ConfigError,
        match=r"of another game or encoder.*\(test, enc.*\(other, encoder version 1, \d+ numbers observed\)",
    ):
        InitialCheckpoint(old, run_dir).copy_into_run(
            GameSpec(name="other", observation_size=4, num_actions=2), NETWORK
        )
    damaged = old / "checkpoints" / "000000031"
    (damaged / OPTIMIZER_FILE).write_bytes(b"torn")
    with pytest.raises(ConfigError, match=rf"The checkpoint .* is damaged: {OPTIMIZER_FILE} does not have the hash"):
        copied(damaged, run_dir)
    (damaged / OPTIMIZER_FILE).unlink()
    with pytest.raises(ConfigError, match=rf"The checkpoint .* is damaged: {OPTIMIZER_FILE}: No such file"):
        copied(damaged, run_dir)
    (damaged / "weights.safetensors").write_bytes(b"torn")
    with pytest.raises(ConfigError, match="does not have the hash that was written"):
        copied(damaged, run_dir)
    with pytest.raises(ConfigError, match="There is no checkpoint in"):
        copied(tmp_path / "nowhere", run_dir)
    five = old / "checkpoints" / "000000005"
    meta = msgspec.json.decode((five / "meta.json").read_bytes())
    (five / "meta.json").write_bytes(msgspec.json.encode({**meta, "files": {}}))
    with pytest.raises(ConfigError, match=r"meta.json does not hold the hash"):
        copied(five, run_dir)
    for wrong in ({"version": "5"}, {"version": -1}, {"spec": None}, {"files": 3}):
        (five / "meta.json").write_bytes(msgspec.json.encode({**meta, **wrong}))
        with pytest.raises(ConfigError, match=r"is damaged: meta.json: .*`\$\."):
            copied(five, run_dir)
    assert list(run_dir.checkpoints.iterdir()) == []


def test_a_past_self_has_no_moments_and_adam_starts_at_0(old, run_dir):
    folder = old / "checkpoints" / "000000005"
    (folder / OPTIMIZER_FILE).unlink()
    meta = msgspec.json.decode((folder / "meta.json").read_bytes())
    del meta["files"][OPTIMIZER_FILE]
    (folder / "meta.json").write_bytes(msgspec.json.encode(meta))
    assert copied(folder, run_dir).endswith(", which has no moments of Adam: they start at 0")
    found = CheckpointStore(run_dir.checkpoints).latest(SPEC)
    assert found.meta.version == 5
    assert found.optimizer


def test_another_network_and_the_run_itself_are_refused(old, run_dir):
    with pytest.raises(
        ConfigError, match=r"has the network mlp_lstm, this configuration pokemon: set network\.name to"
    ):
        InitialCheckpoint(old, run_dir).copy_into_run(SPEC, "pokemon")
    own = RunDir(old)
    for path in (old, old / "checkpoints" / "000000031", old.parent / "fine" / ".." / "old"):
        with pytest.raises(ConfigError, match=r"is inside the run directory: leave --from out"):
            InitialCheckpoint(path, own).copy_into_run(SPEC, NETWORK)
    assert list(run_dir.checkpoints.iterdir()) == []
