"""The mirror and the fetch against a real S3 server, which is killed and frozen in the middle of uploads."""

from __future__ import annotations

import importlib.util
import random
import time

import pytest

from simul.common.checkpoints.meta import META_FILE, WEIGHTS_FILE
from simul.common.errors import StoreError
from simul.common.store.fetch import fetch_newest, newest_local, prepare_store
from simul.common.store.remote import Store
from simul.learner.checkpoints.store_mirror import OK, STORING
from tests.support.s3 import BUCKET, S3Server, rclone
from tests.support.stores import EVERY, SPEC, make_mirror, new_run, save_checkpoint, stored
from tests.support.waiting import wait_for

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("s3fs") is None or rclone() is None,
    reason="s3fs or rclone is not installed: `make setup` installs both",
)
URL = f"s3://{BUCKET}/run"
WEIGHTS_BYTES = 8 * 2**20


@pytest.fixture
def server(tmp_path, monkeypatch):
    with S3Server(tmp_path) as server:
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        yield server


@pytest.fixture
def run(tmp_path):
    return new_run(tmp_path / "run")


def test_what_one_machine_uploads_another_one_gets(server, run, tmp_path):
    for version in range(1, 5):
        path = save_checkpoint(run, version, EVERY * (version // 2))
        save_checkpoint(run, version, kind="past")
    mirror = make_mirror(URL, run)
    mirror.start()
    wait_for(mirror.wait_for_last)
    mirror.close()
    assert mirror.drain_notes() == []
    assert stored(Store(URL)) == [4, 3, 2]
    fresh, said = new_run(tmp_path / "fresh"), []
    prepare_store(Store(URL), fresh, SPEC.fingerprint(), past=True, say=said.append)
    assert (fresh.checkpoints / "000000004" / WEIGHTS_FILE).read_bytes() == (path / WEIGHTS_FILE).read_bytes()
    assert len(list((fresh.checkpoints / "past").iterdir())) == 4
    save_checkpoint(fresh, 5, EVERY * 3)
    save_checkpoint(fresh, 6, EVERY * 3)
    make_mirror(URL, fresh, run_id=2**63).copy_all(Store(URL))
    assert stored(Store(URL)) == [6, 5, 4, 2]


def check_that_the_newest_loads(server, folder, least):
    """As the server left it, which writes nothing now."""
    fresh = new_run(folder)
    fetch_newest(Store(f"file://{server.data}/{BUCKET}/run"), fresh, -1, lambda said: None)
    assert newest_local(fresh.checkpoints) >= least
    fresh.remove()


def disturb(server, run, tmp_path, rounds, seed):
    """Kill and freeze the server at random moments, until so many of them lay within the upload of a checkpoint."""
    chance = random.Random(seed)
    mirror = make_mirror(URL, run)
    mirror.start()
    wait_for(mirror.wait_for_last)
    save_checkpoint(run, 1, size=WEIGHTS_BYTES)
    began = time.monotonic()
    mirror.notify_saved(began)
    wait_for(mirror.wait_for_last)
    pass_sec = time.monotonic() - began
    within, number = 0, 1
    while within < rounds and number < 4 * rounds + 20:
        number += 1
        save_checkpoint(run, number, size=WEIGHTS_BYTES)
        mirror.notify_saved(time.monotonic())
        wait_for(lambda: [*run.checkpoints.glob(f"{STORING}*")] or mirror.behind_sec(time.monotonic()) == 0.0)
        time.sleep(chance.uniform(0.0, pass_sec))
        frozen = number % 2
        (server.freeze if frozen else server.kill)()
        checkpoints = server.data / BUCKET / "run" / "checkpoints"
        within += not [*checkpoints.glob(f"{number:09d}-*/{META_FILE}")]
        check_that_the_newest_loads(server, tmp_path / f"fresh-{number}", number - 1)
        (server.thaw if frozen else server.start)()
        wait_for(lambda: mirror.behind_sec(time.monotonic()) == 0.0 and mirror.state == OK)
        assert stored(Store(URL))[0] == number
    mirror.close()
    assert within == rounds, "too few moments lay within an upload"
    return mirror.drain_notes()


@pytest.mark.slow  # .ci/long runs it; a kill at any operation: tests/unit/learner/checkpoints/test_store_mirror.py
def test_a_server_that_is_killed_and_frozen_in_the_middle_of_uploads(server, run, tmp_path):
    disturb(server, run, tmp_path, 3, seed=1)


def test_wrong_credentials_a_missing_bucket_and_a_dead_server_are_told_apart(server, monkeypatch):
    with pytest.raises(StoreError, match=r"s3://elsewhere/run does not exist .*Create the bucket") as error:
        Store("s3://elsewhere/run").write("owner.json", b"{}")
    assert error.value.refused
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "another")
    with pytest.raises(StoreError, match=r"refuses these credentials.*AWS program takes them") as error:
        Store(URL).files()
    assert error.value.refused
    server.kill()
    with pytest.raises(StoreError, match="cannot be reached") as error:
        Store(URL).files()
    assert not error.value.refused
