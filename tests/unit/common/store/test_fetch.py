"""What a run takes from its store before it starts: what is newer there, verified, or nothing."""

from __future__ import annotations

import itertools
import json
import os

import msgspec
import pytest

from simul.common.checkpoints.folders import BEST, RESULT_FILE, link_folder, replace_best
from simul.common.checkpoints.meta import CONFIG_FILE, OPTIMIZER_FILE, WEIGHTS_BYTES, WEIGHTS_FILE
from simul.common.errors import CheckpointError, StoreError
from simul.common.protocol.specs import GameSpec
from simul.common.role.lifecycle import Stopped
from simul.common.store import REASON, REFUSED, fetch
from simul.common.store import __main__ as module
from simul.common.store.claim import claim_store, read_claim
from simul.common.store.fetch import fetch_checkpoint, newest_local, prepare_store
from simul.common.store.layout import OWNER_FILE, Owner, digest, whole
from simul.common.store.remote import Store
from simul.learner.checkpoints.checkpoint_store import RunFacts, write_folder
from tests.support.checkpoints import SMALL
from tests.support.stores import EVERY, SPEC, make_mirror, new_run, new_url, save_checkpoint


def unreachable(*_):
    raise StoreError("The store cannot be reached.")


class Machines:
    """Two run directories on one store. What the second one's start says is in `said`."""

    def __init__(self, folder):
        self.store = Store(new_url())
        self.first, self.second = new_run(folder / "first"), new_run(folder / "second")
        self.said = []

    def upload(self, run_id=1):
        make_mirror(self.store.url, self.first, run_id).copy_all(self.store)

    def start(self, *, past=True, spec=SPEC):
        prepare_store(self.store, self.second, spec.fingerprint(), past=past, say=self.said.append)

    def versions(self, kind=""):
        return sorted(int(path.name) for path in (self.second.checkpoints / kind).glob("[0-9]" * 9))


@pytest.fixture
def machines(tmp_path):
    return Machines(tmp_path)


def test_an_empty_store_is_taken_over_and_nothing_is_fetched(machines):
    machines.start()
    assert (machines.versions(), machines.said) == ([], [])
    assert machines.store.owner() == read_claim(machines.second, 0)


def test_a_fresh_machine_gets_the_newest_checkpoint_past_selves_the_best_and_the_origin(machines):
    for version in (1, 2, 3):
        path = save_checkpoint(machines.first, version, EVERY * version)
    for version in (1, 2):
        save_checkpoint(machines.first, version, kind="past")
    best = machines.first.checkpoints / ".evaluating-000000003"
    link_folder(path, best)
    replace_best(best, b'{"score": 7}')
    machines.first.write_origin("/models/first")
    machines.upload()
    machines.start()
    assert machines.versions() == [3]
    assert machines.versions("past") == [1, 2]
    for name in (WEIGHTS_FILE, OPTIMIZER_FILE, "meta.json"):
        assert (machines.second.checkpoints / "000000003" / name).read_bytes() == (path / name).read_bytes()
    assert json.loads((machines.second.checkpoints / BEST / RESULT_FILE).read_bytes()) == {"score": 7}
    assert machines.second.read_origin() == "/models/first"
    assert machines.said[0].startswith("the store has a newer checkpoint, 000000003; there is none here")
    folders = {path.name for path in machines.second.checkpoints.iterdir()}
    assert folders == {"000000003", "past", "best", "best-000000003"}, "nothing is left aside"


def test_an_origin_that_is_no_text_and_a_best_one_without_its_result_are_said_and_the_start_goes_on(machines):
    path = save_checkpoint(machines.first, 1, EVERY)
    best = machines.first.checkpoints / ".evaluating-000000001"
    link_folder(path, best)
    replace_best(best, b'{"score": 7}')
    machines.upload()
    machines.store.write("origin", b"\xff\xfe")
    (entry,) = whole(machines.store.entries(), "best")
    machines.store._fs.rm_file(machines.store._path(f"{entry.path}/{RESULT_FILE}"))
    machines.start()
    assert machines.versions() == [1]
    assert any("origin of the store is not UTF-8" in said for said in machines.said)
    assert any("evaluation.json is missing" in said for said in machines.said)
    assert not (machines.second.checkpoints / BEST).exists()


def test_an_outage_between_the_newest_and_the_best_one_loses_neither(machines, monkeypatch):
    path = save_checkpoint(machines.first, 3, EVERY)
    best = machines.first.checkpoints / ".evaluating-000000003"
    link_folder(path, best)
    replace_best(best, b'{"score": 7}')
    machines.upload()
    with monkeypatch.context() as patch:
        patch.setattr(fetch, "_fetch_best", unreachable)
        with pytest.raises(StoreError):
            machines.start()
    assert machines.versions() == [3]
    machines.start()
    assert json.loads((machines.second.checkpoints / BEST / RESULT_FILE).read_bytes()) == {"score": 7}


@pytest.mark.parametrize("name", ["../../../planted", "/tmp/planted", "sub/planted", "card.md"])
def test_a_store_names_no_file_of_this_machine(machines, name):
    """A hostile store has meta.json and the hashes in it as it likes."""
    meta = RunFacts(SPEC, SMALL, "0" * 16, 1).meta(3, EVERY, 1, {WEIGHTS_FILE: b"planted"}, True)
    data = msgspec.json.encode(meta).replace(WEIGHTS_FILE.encode(), name.encode())
    folder = f"checkpoints/000000003-{EVERY}-{digest(data)}"
    machines.store.write(f"{folder}/{name.lstrip('/')}", b"planted")
    machines.store.write(f"{folder}/meta.json", data)
    with pytest.raises(StoreError, match=r"expected only weights\.safetensors, optimizer\.safetensors, config\.yaml"):
        machines.start()
    assert not list(machines.second.root.parent.rglob("planted"))


def test_what_is_newer_here_stays_and_what_is_newer_there_wins(machines):
    for version in (5, 6):
        save_checkpoint(machines.first, version)
    machines.upload()
    save_checkpoint(machines.second, 7)
    machines.start()
    assert (machines.versions(), machines.said) == ([7], [])
    save_checkpoint(machines.first, 8)
    machines.upload(run_id=machines.store.owner().run_id + 1)
    machines.start()
    assert machines.versions() == [7, 8]
    assert "the newest here is 000000007: the run goes on from the store's" in machines.said[0]


def test_a_damaged_one_here_does_not_count(machines):
    save_checkpoint(machines.first, 5)
    machines.upload()
    for name, version in ((WEIGHTS_FILE, 6), (OPTIMIZER_FILE, 7)):
        (save_checkpoint(machines.second, version) / name).write_bytes(b"rot")
    (machines.second.checkpoints / "000000008").mkdir()
    assert newest_local(machines.second.checkpoints) == -1
    machines.start()
    assert newest_local(machines.second.checkpoints) == 5


@pytest.mark.parametrize("fault", ["weights", "meta", "missing"])
def test_a_damaged_one_there_gives_way_to_the_one_before(machines, fault):
    for version in (5, 6):
        save_checkpoint(machines.first, version)
    machines.upload()
    newest = whole(machines.store.entries(), "checkpoints")[0]
    weights = f"{newest.path}/{WEIGHTS_FILE}"
    if fault == "missing":
        machines.store._fs.rm_file(machines.store._path(weights))
    else:
        machines.store.write(weights if fault == "weights" else f"{newest.path}/meta.json", b"rot")
    machines.start()
    assert machines.versions() == [5]
    assert any("000000006" in said and "is damaged" in said for said in machines.said)
    machines.second.checkpoints.joinpath("000000005").rename(machines.second.root / "moved")
    before = whole(machines.store.entries(), "checkpoints")[1]
    machines.store.write(f"{before.path}/{WEIGHTS_FILE}", b"rot")
    with pytest.raises(StoreError, match=r"No checkpoint in the store .* can be used") as error:
        machines.start()
    assert error.value.refused
    assert machines.versions() == []


def test_a_store_of_another_game_is_refused_and_left_alone(machines):
    save_checkpoint(machines.first, 5)
    machines.upload()
    owner = machines.store.owner()
    with pytest.raises(StoreError, match=r"is of another game or encoder: its checkpoint 000000005 .*\(cartpole, "):
        machines.start(spec=GameSpec("another", 4, 2))
    assert machines.store.owner() == owner
    assert machines.versions() == []


def test_past_selves_are_fetched_only_for_a_run_that_plays_them_and_none_of_later_than_its_checkpoint(machines):
    save_checkpoint(machines.first, 5)
    for version in (3, 6):
        save_checkpoint(machines.first, version, kind="past")
    machines.upload()
    machines.start(past=False)
    assert machines.versions("past") == []
    machines.start()
    assert machines.versions("past") == [3]


def test_the_one_that_starts_last_owns_the_store_though_its_clock_is_slow(machines):
    ahead = Owner(2**62, "2999-01-01T00:00:00+00:00", "ahead")
    machines.store.write_owner(ahead)
    owner = claim_store(machines.store, machines.second)
    assert machines.store.owner() == owner == read_claim(machines.second, 0)
    assert owner.run_id > ahead.run_id
    machines.store.write(OWNER_FILE, b'{"run_')
    assert machines.store.owner() is None, "a torn one belongs to no run"


def test_a_checkpoint_for_inference_comes_without_the_optimizer(machines, tmp_path):
    for version in (5, 6):
        save_checkpoint(machines.first, version)
    machines.upload()
    fetch_checkpoint(machines.store, tmp_path / "newest", machines.said.append)
    assert sorted(path.name for path in (tmp_path / "newest" / "000000006").iterdir()) == ["meta.json", WEIGHTS_FILE]
    before = whole(machines.store.entries(), "checkpoints")[1]
    fetch_checkpoint(Store(f"{machines.store.url}/{before.path}"), tmp_path / "one", machines.said.append)
    assert json.loads((tmp_path / "one" / "000000005" / "meta.json").read_bytes())["version"] == 5
    with pytest.raises(StoreError, match="holds no checkpoint"):
        fetch_checkpoint(Store(new_url()), tmp_path / "none", machines.said.append)


def test_the_folder_of_an_entry_is_fetched_with_its_settings_and_verified(tmp_path):
    files = {WEIGHTS_FILE: b"weights", CONFIG_FILE: b"game: gymnasium"}
    write_folder(tmp_path / "entry", RunFacts(SPEC, SMALL, "0" * 16, 1).meta(7, 0, 0, files, True), files)
    (tmp_path / "entry" / "card.md").write_text("for people")
    store = Store(f"file://{tmp_path}/entry")
    fetch_checkpoint(store, tmp_path / "here", print)
    (folder,) = (tmp_path / "here").iterdir()
    assert folder.name == "000000007"
    assert {file.name for file in folder.iterdir()} == {WEIGHTS_FILE, CONFIG_FILE, "meta.json"}
    (tmp_path / "entry" / CONFIG_FILE).write_text("game: other:Game")
    with pytest.raises(CheckpointError, match=f"is damaged: {CONFIG_FILE} does not have its hash"):
        fetch_checkpoint(store, tmp_path / "again", print)


@pytest.mark.parametrize(
    ("header", "size", "fault"),
    [
        (b"{}", WEIGHTS_BYTES, "17,179,869,184 bytes; its header says 10"),
        (b"rot", WEIGHTS_BYTES, "its header: JSON is malformed"),
        (b"{}", WEIGHTS_BYTES + 1, "17,179,869,185 bytes; at most 17,179,869,184 are read"),
    ],
)
def test_what_the_listing_says_to_be_too_large_is_not_fetched(machines, monkeypatch, tmp_path, header, size, fault):
    """A file that is larger than its header says, or than weights are; the one before is taken instead."""
    store = machines.store = Store(f"file://{tmp_path}/store")
    for version in (5, 6):
        save_checkpoint(machines.first, version)
    machines.upload()
    newest = whole(store.entries(), "checkpoints")[0]
    sparse = tmp_path / "store" / newest.path / WEIGHTS_FILE
    sparse.write_bytes(len(header).to_bytes(8, "little") + header)
    os.truncate(sparse, size)
    real = Store.download

    def download(self, name, *rest):
        assert not name.startswith(newest.path), "it is fetched"
        real(self, name, *rest)

    monkeypatch.setattr(Store, "download", download)
    machines.start()
    assert machines.versions() == [5]
    assert any(f"weights.safetensors: {fault}" in said and "It was not fetched." in said for said in machines.said)


def test_a_stop_while_a_file_is_fetched_leaves_nothing(machines, monkeypatch):
    save_checkpoint(machines.first, 5)
    machines.upload()

    def stopped(store, name, size, file, on_progress):
        file.write_bytes(b"half")
        raise Stopped

    monkeypatch.setattr(Store, "download", stopped)
    with pytest.raises(Stopped):
        machines.start()
    assert not list(machines.second.checkpoints.iterdir())


@pytest.mark.parametrize(
    ("arguments", "attempts", "advice"),
    [
        (["--run-dir", "RUN"], 1, "network, or start without it: --set store=''"),
        (["--run-dir", "RUN", "--resumes"], 2, "network"),
        (["--fetch-to", "RUN"], 1, "network"),
    ],
)
def test_a_store_that_cannot_be_reached_is_waited_for_and_advice_fits(
    monkeypatch, capsys, tmp_path, arguments, attempts, advice
):
    """One that resumes a run waits longer. Time is the test's: an attempt takes a minute."""
    tried, now = [], itertools.count(step=60.0)
    monkeypatch.setattr(module, "Store", lambda url: tried.append(url) or fail())
    monkeypatch.setattr(module, "LONG_PATIENCE_SEC", 100.0)
    monkeypatch.setattr(module.time, "monotonic", lambda: next(now))
    monkeypatch.setattr(module.time, "sleep", lambda seconds: None)
    named = [str(tmp_path) if each == "RUN" else each for each in arguments]
    monkeypatch.setattr(module.sys, "argv", ["store", "--url", "s3://bucket/run", *named])

    def fail():
        raise StoreError("The store s3://bucket/run cannot be reached.")

    assert module.main() == REFUSED
    assert len(tried) == attempts
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == f"{REASON}The store s3://bucket/run cannot be reached. Check address and {advice}"
