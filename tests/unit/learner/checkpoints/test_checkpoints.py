import dataclasses
import errno
import hashlib
import importlib.metadata
import os

import msgspec
import pytest
import torch
from safetensors.torch import load
from safetensors.torch import save as save_tensors

from simul.common.checkpoints import folders
from simul.common.checkpoints.meta import (
    HEADER_BYTES,
    META_FILE,
    OPTIMIZER_FILE,
    WEIGHTS_BYTES,
    WEIGHTS_FILE,
    checkpoint_folders,
    read_meta,
    read_verified,
)
from simul.common.config.schema import NetworkConfig
from simul.common.errors import CheckpointError
from simul.common.nets import io
from simul.common.nets.build import build_network
from simul.common.nets.io import load_policy, weights_to_bytes
from simul.launch.supervisor.checkpoint_files import find_fault
from simul.learner.checkpoints import checkpoint_store
from simul.learner.checkpoints.checkpoint_schedule import EVALUATION_SAVE_SEC, CheckpointSchedule
from simul.learner.checkpoints.checkpoint_store import Checkpoint, CheckpointStore
from simul.learner.checkpoints.league import League
from simul.learner.checkpoints.optimizer_state import USE_ANOTHER, optimizer_to_bytes, restore


def trained(network):
    optimizer = torch.optim.Adam(network.parameters(), fused=True)
    for parameter in network.parameters():
        parameter.grad = torch.randn(parameter.shape, generator=torch.Generator().manual_seed(0))
    optimizer.step()
    return optimizer


@pytest.fixture
def store(tmp_path) -> CheckpointStore:
    return CheckpointStore(tmp_path)


@pytest.fixture
def optimizer(network):
    return trained(network)


@pytest.fixture
def files(network, optimizer):
    return {WEIGHTS_FILE: weights_to_bytes(network), OPTIMIZER_FILE: optimizer_to_bytes(network, optimizer)}


@pytest.fixture
def save(facts, files, store):
    def write(version, milestone=False, store=store, facts=facts):
        return store.save(facts.meta(version, 10 * version, version, files, milestone), files)

    return write


def _damage(path, how):
    data = path.read_bytes()
    if how == "missing":
        path.unlink()
    else:
        path.write_bytes(data[: len(data) // 2] if how == "torn" else data[:-1] + bytes([data[-1] ^ 1]))


def test_what_is_restored_goes_on_bit_for_bit(store, facts, network, optimizer, save):
    save(7)
    again = build_network(facts.network, facts.spec, seed=99)
    its_optimizer = torch.optim.Adam(again.parameters(), fused=True)
    restore(store.latest(facts.spec), again, its_optimizer)
    for one, theirs in ((network, optimizer), (again, its_optimizer)):
        for parameter in one.parameters():
            parameter.grad = torch.ones_like(parameter)
        theirs.step()
    torch.testing.assert_close(again.state_dict(), network.state_dict(), rtol=0, atol=0)


def test_keeps_the_newest_two_and_milestones(store, save):
    for version in range(6):
        save(version, milestone=version in (0, 2))
    assert store.versions() == [0, 2, 4, 5]


@pytest.mark.parametrize(
    ("file", "damage"),
    [(OPTIMIZER_FILE, "torn"), (OPTIMIZER_FILE, "flipped"), (OPTIMIZER_FILE, "missing"), (META_FILE, "torn")],
)
def test_a_damaged_checkpoint_falls_back_to_the_one_before_and_says_so(store, facts, save, file, damage):
    save(1)
    newest = save(2)
    _damage(newest / file, damage)
    checkpoint = store.latest(facts.spec)
    assert checkpoint.meta.version == 1
    (note,) = store.drain_notes()
    assert newest.name in note
    assert "Falling back to the one before. It is now damaged-000000002" in note
    assert store.versions() == [1]
    assert store.latest(facts.spec).meta.version == 1
    assert not store.drain_notes()


@pytest.mark.parametrize("damage", ["torn", "flipped"])
def test_a_damaged_checkpoint_never_pushes_out_a_whole_one(store, facts, save, damage):
    for version in (1, 2):
        save(version)
    _damage(store.path(2) / OPTIMIZER_FILE, damage)
    save(3)
    assert store.versions() == [1, 3]
    (note,) = store.drain_notes()
    assert "000000002 is damaged: optimizer.safetensors does not have the hash" in note
    assert "It does not count among the newest 2, which are kept. It is now damaged-000000002." in note
    save(4)
    assert store.versions() == [3, 4]
    assert not store.drain_notes()
    again = CheckpointStore(store.path(0).parent)  # another life, which has written none of them
    _damage(store.path(4) / WEIGHTS_FILE, damage)
    assert again.latest(facts.spec).meta.version == 3
    save(5, store=again)
    assert again.versions() == [3, 5]


def test_whole_checkpoints_are_not_read_again_at_every_save(store, save, monkeypatch):
    save(1)
    read = []
    monkeypatch.setattr(checkpoint_store, "read_verified", lambda path, *_: read.append(path.name))
    for version in (2, 3, 4):
        save(version)
    assert not read
    os.utime(store.path(4) / WEIGHTS_FILE, ns=(1, 1))
    save(5)
    assert set(read) == {"000000004"}


class Killed(BaseException):
    """Stands for kill -9: nothing that tidies up is run."""


@pytest.mark.parametrize("call", ["fsync", "rename"])
def test_a_kill_at_any_moment_of_a_save_leaves_the_newest_whole_one(tmp_path, facts, save, monkeypatch, call):
    calls, owner = [0, 0], folders.os if call == "fsync" else folders.Path
    real = getattr(owner, call)

    def killed(*arguments):
        calls[0] += 1
        if calls[0] == calls[1]:
            raise Killed
        return real(*arguments)

    monkeypatch.setattr(owner, call, killed)
    for moment in range(1, 10):
        folder = tmp_path / str(moment)
        store = CheckpointStore(folder)
        save(1, store=store)
        calls[:] = [0, moment]
        try:
            save(2, store=store)
        except Killed:
            again = CheckpointStore(folder)
            calls[1] = 0
            newest = again.latest(facts.spec).meta.version
            assert newest in (1, 2)
            assert not again.drain_notes(), "what was not finished is no damaged checkpoint"
            save(3, store=again)
            assert again.versions() == [newest, 3]
            assert not list(folder.glob(".writing-*"))
        else:
            assert moment > 1
            return
    pytest.fail("a save makes fewer calls")


def test_versions_of_more_than_nine_digits_are_not_used_and_said(store, facts, save):
    save(7)
    (store.path(0).parent / "9223372036854775801").mkdir()
    assert store.latest(facts.spec).meta.version == 7
    assert "9223372036854775801 is not used" in store.drain_notes()[0]


def test_nothing_at_all_is_a_fresh_start_but_nothing_whole_is_refused(store, facts, save):
    assert store.latest(facts.spec) is None
    (save(1) / WEIGHTS_FILE).write_bytes(b"")
    with pytest.raises(CheckpointError, match="No checkpoint"):
        store.latest(facts.spec)


def test_another_encoder_and_another_network_are_refused(store, facts, save):
    save(1)
    other = facts.spec.__class__("cartpole", 4, 2, encoder_version=2)
    with pytest.raises(CheckpointError) as caught:
        store.latest(other)
    assert facts.spec.fingerprint() in str(caught.value)
    assert other.fingerprint() in str(caught.value)
    wider = build_network(NetworkConfig("mlp_lstm", {"hidden": 12}), facts.spec)
    own = r"does not fit the configured network.* Its own is network\.name: mlp_lstm, network\.options: {'hidden': 8}"
    with pytest.raises(CheckpointError, match=own):
        restore(store.latest(facts.spec), wider, trained(wider))
    found = store.latest(facts.spec)
    longer = dataclasses.replace(found, meta=msgspec.structs.replace(found.meta, state_size=20))
    same = build_network(facts.network, facts.spec)
    with pytest.raises(CheckpointError, match="a recurrent state of 16 numbers is expected, the checkpoint has 20"):
        restore(longer, same, trained(same))


def full_disk(*_):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def make_schedule(tmp_path, facts, **options):
    league = League(tmp_path / "past", every_decisions=100, resident=2)
    return CheckpointSchedule(
        CheckpointStore(tmp_path), league, facts, begin=0.0, every_sec=10.0, milestone_every_decisions=50, **options
    )


def test_a_full_disk_leaves_the_last_good_one_and_training_goes_on(tmp_path, facts, files, monkeypatch):
    keep = make_schedule(tmp_path, facts)
    assert not keep.save(0, 0, 0, *files.values(), 0.0)
    with monkeypatch.context() as patched:
        patched.setattr(folders.os, "fsync", full_disk)
        failure = keep.save(1, 10, 1, *files.values(), 20.0)
        assert "No space left" in failure
        assert "version 0 stays" in failure
        assert "No space left" in keep.add_past_self(1, 100, files[WEIGHTS_FILE])
        assert "No space left" in keep.save(2, 55, 2, *files.values(), 20.0)
    assert keep.league.resident == ()
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()].count("000000000") == 1
    assert not list(tmp_path.rglob(".writing-*")), "nothing is left aside"
    assert CheckpointStore(tmp_path).latest(facts.spec).meta.version == 0
    assert not keep.due(60, 21.0), "no new try before its time, of a milestone either"
    assert keep.due(60, 30.0)


def test_milestones_come_by_decisions(tmp_path, facts, files):
    keep = make_schedule(tmp_path, facts)
    for version, decisions in enumerate((0, 20, 40, 60, 80, 120, 130, 140)):
        keep.save(version, decisions, version, *files.values(), 0.0)
    assert CheckpointStore(tmp_path).versions() == [3, 5, 6, 7]


def test_the_first_checkpoint_comes_after_its_time(tmp_path, facts):
    keep = make_schedule(tmp_path, facts)
    assert not keep.due(0, 0.0)
    assert keep.saved_updates == 0, "what was never updated counts as saved"
    assert not keep.due(49, 9.9)
    assert keep.due(49, 10.0)
    assert keep.due(50, 9.9)


def test_evaluations_get_checkpoints_long_before_the_clock_asks_for_one(tmp_path, facts, files):
    keep = make_schedule(tmp_path, facts, evaluation_every_decisions=20)
    assert not keep.due(19, 6.0)
    assert not keep.due(20, EVALUATION_SAVE_SEC - 0.1), "not more often than evaluations end"
    assert keep.due(20, 6.0)
    assert not keep.save(1, 25, 1, *files.values(), 6.0)
    assert not keep.due(39, 12.0)
    assert keep.due(40, 12.0)


def test_load_policy_gives_the_module_and_masks(facts, network, save):
    policy = load_policy(save(3))
    observation, mask = torch.randn(2, 4), torch.tensor([[True, False], [True, True]])
    logits, value, state = policy(observation, mask, policy.initial_state(2))
    wanted, wanted_value, wanted_state = network(observation, mask, network.initial_state(2))
    torch.testing.assert_close(logits[1], wanted[1].detach())
    torch.testing.assert_close((value, state), (wanted_value.detach(), wanted_state.detach()))
    assert logits[0, 1] == -torch.inf
    assert policy.spec == facts.spec


def test_load_policy_takes_the_newest_whole_one_of_a_run(tmp_path, save):
    store = CheckpointStore(tmp_path / "checkpoints")
    with pytest.raises(CheckpointError, match="cannot be read"):
        load_policy(tmp_path)
    older, newer = (save(version, store=store) for version in (3, 4))
    assert load_policy(tmp_path).meta.version == 4
    (newer / WEIGHTS_FILE).write_bytes(b"x")
    assert load_policy(tmp_path).meta.version == 3
    (older / WEIGHTS_FILE).write_bytes(b"x")
    with pytest.raises(CheckpointError, match="000000004 is damaged"):
        load_policy(tmp_path)


def test_shapes_are_compared_before_weights_are_read_or_a_network_takes_memory(save, facts, monkeypatch):
    wide = dataclasses.replace(facts, network=NetworkConfig("mlp_lstm", {"hidden": 6000}))
    folder = save(3, facts=wide)
    for name in ("read_verified", "build_network"):
        monkeypatch.setattr(io, name, lambda *arguments, **options: pytest.fail("it was read, or built"))
    with pytest.raises(CheckpointError, match=r"000000003 cannot be used: .*: expected \[6000, .*\], got \[8, "):
        load_policy(folder)


def test_a_checkpoint_says_where_it_comes_from(facts, save):
    meta = load_policy(save(3, facts=dataclasses.replace(facts, seed=5))).meta
    assert (meta.version, meta.decisions, meta.seed) == (3, 30, 5)
    assert meta.files.keys() == {WEIGHTS_FILE, OPTIMIZER_FILE}
    assert meta.packages["torch"] == importlib.metadata.version("torch")


@pytest.mark.parametrize("where", ["weights", "moments"])
def test_what_is_not_finite_is_not_learned_from(store, facts, network, optimizer, request, where):
    first = next(iter(network.parameters()))
    with torch.no_grad():
        (first if where == "weights" else optimizer.state[first]["exp_avg"]).view(-1)[0] = torch.nan
    request.getfixturevalue("save")(4)
    fresh = build_network(facts.network, facts.spec)
    with pytest.raises(CheckpointError, match=r"version 4 cannot be learned from: .* is not finite"):
        restore(store.latest(facts.spec), fresh, trained(fresh))


BIAS = "value_head.bias"


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"nodot": torch.zeros(1)}, "nodot: expected step, exp_avg, exp_avg_sq of the network's parameters and"),
        ({"exp_avg.an\nother": torch.zeros(1)}, r"exp_avg.an\nother: expected step, "),
        ({f"step.{BIAS}": None}, f"step.{BIAS}: expected beside exp_avg.{BIAS}, exp_avg_sq.{BIAS}"),
        ({f"step.{BIAS}": torch.zeros(1)}, f"step.{BIAS}: expected torch.float32 [], got torch.float32 [1]"),
        ({f"step.{BIAS}": torch.tensor(-1.0)}, f"step.{BIAS}: expected no number below 0, got -1"),
        ({f"step.{BIAS}": torch.tensor(torch.inf)}, f"step.{BIAS} is not finite"),
        ({f"exp_avg.{BIAS}": torch.zeros(3)}, f"exp_avg.{BIAS}: expected torch.float32 [1], got torch.float32 [3]"),
        ({f"exp_avg.{BIAS}": torch.zeros(1).bfloat16()}, "expected torch.float32 [1], got torch.bfloat16 [1]"),
        ({f"exp_avg.{BIAS}": torch.zeros(1).to(torch.float8_e4m3fn)}, "got torch.float8_e4m3fn [1]"),
        ({f"exp_avg_sq.{BIAS}": torch.tensor([-0.5])}, "expected no number below 0, got -0.5"),
    ],
)
def test_moments_that_do_not_fit_are_refused_and_none_is_loaded(facts, network, optimizer, change, sentence):
    moments = load(optimizer_to_bytes(network, optimizer)) | change
    data = save_tensors({name: value for name, value in moments.items() if value is not None})
    checkpoint = Checkpoint(facts.meta(4, 40, 4, {}, False), weights_to_bytes(network), data)
    fresh = build_network(facts.network, facts.spec)
    its_optimizer = torch.optim.Adam(fresh.parameters(), fused=True)
    with pytest.raises(CheckpointError) as caught:
        restore(checkpoint, fresh, its_optimizer)
    assert str(caught.value).startswith("The checkpoint of version 4 cannot be learned from: optimizer.safetensors: ")
    assert sentence in str(caught.value)
    assert str(caught.value).endswith(". " + USE_ANOTHER)
    assert not its_optimizer.state


def test_an_optimizer_file_that_is_none_is_said_to_be_that(facts, network, optimizer):
    for data in (b"rot", save_tensors({"a": torch.zeros(1).to(torch.float8_e4m3fn)}).replace(b"F8_E4M3", b"F8_E8M0")):
        checkpoint = Checkpoint(facts.meta(4, 40, 4, {}, False), weights_to_bytes(network), data)
        with pytest.raises(CheckpointError, match=r"optimizer\.safetensors: these bytes are not a safetensors file"):
            restore(checkpoint, network, optimizer)


def test_hostile_files_of_a_checkpoint_are_sentences(store, save, monkeypatch):
    save(3)
    folder = store.path(3)
    (folder / "weights.safetensors").unlink()
    with (folder / "weights.safetensors").open("wb") as sparse:
        sparse.truncate(WEIGHTS_BYTES + 1)
    assert "File too large" in find_fault(folder)
    os.truncate(folder / "weights.safetensors", HEADER_BYTES + 1)  # large, and no header accounts for it
    saved = read_meta(folder)
    monkeypatch.setattr(hashlib, "file_digest", lambda *hashed: pytest.fail("it was read"))
    assert "does not have the hash" in find_fault(folder)
    monkeypatch.setattr(hashlib, "sha256", lambda *hashed: pytest.fail("it was read"))
    with pytest.raises(CheckpointError, match="does not have the hash"):
        read_verified(folder, saved, WEIGHTS_FILE)
    monkeypatch.undo()
    meta = (folder / "meta.json").read_text()
    (folder / "meta.json").write_text(meta.replace('"options": {', '"options": {"x": ' + 50_000 * "[" + ","))
    with pytest.raises(CheckpointError, match="nested too deeply"):
        read_meta(folder)
    (folder.parent / (9 * "²")).mkdir()
    assert checkpoint_folders(folder.parent) == [folder]
