"""What goes wrong with a store, in sentences that say what to do."""

from __future__ import annotations

import errno
import os

import pytest

from simul.common.errors import StoreError
from simul.common.runtime.extras import install_extra
from simul.common.store import remote
from simul.common.store.remote import Store, explain
from tests.support.stores import ScriptedFileSystem, new_url


class NoCredentialsError(Exception):
    """As botocore's, which is no PermissionError."""


class HttpError(Exception):
    """As gcsfs's."""

    def __init__(self, code: int) -> None:
        super().__init__(f"{code}: of Google")
        self.code = code


@pytest.mark.parametrize(
    ("url", "error", "sentence", "refused"),
    [
        ("s3://b/r", ImportError("Install s3fs to access S3"), f"Run: {install_extra('s3')}", True),
        ("gs://b/r", ImportError("Please install gcsfs"), f"Run: {install_extra('gcs')}", True),
        ("sftp://h/r", ImportError('requires "paramiko"'), 'the package that it names: requires "paramiko"', True),
        ("nope://h/r", ValueError("Protocol not known: nope"), "has an unknown scheme. Use one such as s3://", True),
        ("s3://b/r", PermissionError("Access Denied"), "as every AWS program takes them; see docs/store.md", True),
        ("s3://b/r", NoCredentialsError("Unable to locate credentials"), "or finds none (Unable to locate", True),
        ("gs://b/r", HttpError(403), "as every Google Cloud program takes them", True),
        ("gs://b/r", HttpError(404), "does not exist (404: of Google). Create the bucket", True),
        ("gs://b/r", HttpError(503), "cannot be reached (503: of Google)", False),
        ("file:///x/r", PermissionError("denied"), "Check who may read and write there", True),
        ("s3://b/r", FileNotFoundError("The specified bucket does not exist"), "Create the bucket or the folder", True),
        ("s3://b/r", ConnectionError(), "cannot be reached (ConnectionError)", False),
        ("s3://b/r", OSError(errno.EIO, "x" * 1000), "cannot be reached", False),
    ],
)
def test_an_error_becomes_a_sentence(url, error, sentence, refused):
    text, useless = explain(url, error)
    assert text.startswith(f"The store {url} ")
    assert sentence in text
    assert (useless, len(text) < 400) == (refused, True)
    assert text.count("\n") == 0


def test_unknown_schemes_and_missing_packages_are_refused_when_a_store_is_opened():
    with pytest.raises(StoreError, match="unknown scheme"):
        Store("nope://bucket/run")
    with pytest.raises(StoreError, match=r"needs a package that is not installed"):
        Store("smb://host/share/run")


def test_a_full_disk_here_is_no_fault_of_the_store(tmp_path, monkeypatch):
    store = Store(new_url("scripted"))
    store.write("owner.json", b"{}")

    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(ScriptedFileSystem, "get_file", full)
    with pytest.raises(OSError, match="No space left"):
        store.download("owner.json", 2, tmp_path / "x", lambda done: None)
    monkeypatch.setattr(ScriptedFileSystem, "pipe_file", full)
    with pytest.raises(StoreError, match="No space left"):
        store.write("owner.json", b"{}")


def test_a_folder_that_cannot_be_read_is_not_an_empty_one(tmp_path, monkeypatch):
    """Where the newest checkpoint is there, a run must not begin anew."""
    (tmp_path / "checkpoints").mkdir()
    store = Store(f"file://{tmp_path}")
    store.write("owner.json", b"{}")
    real = os.scandir

    def scandir(path):
        if str(path).endswith("/checkpoints"):
            raise PermissionError(errno.EACCES, "Permission denied")
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    with pytest.raises(StoreError, match="Check who may read and write there"):
        store.files()


def test_a_file_of_a_disk_appears_whole_or_not_at_all(tmp_path, monkeypatch):
    store, file = Store(f"file://{tmp_path}/store"), tmp_path / "meta.json"
    file.write_bytes(b"whole")
    real = store._fs.put_file

    def torn(source, target, **how):
        real(source, target, **how)
        raise KeyboardInterrupt

    monkeypatch.setattr(store._fs, "put_file", torn)
    with pytest.raises(KeyboardInterrupt):
        store.upload(file, "best/meta.json")
    assert store.read("best/meta.json") is None
    monkeypatch.setattr(store._fs, "put_file", real)
    store.upload(file, "best/meta.json")
    assert store.files() == {"best/meta.json": 5}


def test_what_is_not_there_is_none_and_an_empty_store_has_no_files(tmp_path):
    for store in (Store(new_url()), Store(f"file://{tmp_path}/not/there")):
        assert store.read("owner.json") is None
        assert store.owner() is None
        assert store.files() == {}
        assert store.entries() == {}


def test_a_folder_that_cannot_be_read_is_no_empty_one(tmp_path, monkeypatch):
    store = Store(f"file://{tmp_path}")

    def broken(*_, **__):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(type(store._fs), "ls", broken)
    with pytest.raises(StoreError, match="Input/output error"):
        store.files()


def test_a_large_transfer_may_take_longer_than_a_small_request():
    store = Store(new_url())
    assert store._limit(10**9) == {}, "only asynchronous file systems take a limit"
    store._limited = True
    assert store._limit(0) == {"timeout": remote.SMALL_SEC}
    assert store._limit(2**30)["timeout"] > 8000.0


def test_no_file_of_a_store_is_read_without_a_bound(tmp_path, monkeypatch):
    store = Store(new_url("scripted"))
    store.write("owner.json", b"12345")
    monkeypatch.setattr(remote, "MOST_BYTES", 5)
    assert store.read("owner.json") == b"12345"
    monkeypatch.setattr(remote, "MOST_BYTES", 4)
    monkeypatch.setattr(ScriptedFileSystem, "cat_file", lambda *_, **__: pytest.fail("it was read"))
    with pytest.raises(StoreError, match=r"owner.json of the store .* is larger than the 4 bytes that are read"):
        store.read("owner.json")
    monkeypatch.setattr(remote, "WEIGHTS_BYTES", 4)
    with pytest.raises(StoreError, match="larger than the 4 bytes"):
        store.download("owner.json", 5, tmp_path / "x", lambda done: None)


@pytest.mark.parametrize("scheme", ["scripted", "file"])
def test_a_download_ends_where_a_file_has_more_bytes_than_the_store_says(tmp_path, scheme):
    store = Store(f"file://{tmp_path}/store" if scheme == "file" else new_url(scheme))
    store.write("weights.safetensors", b"1" * 100)
    seen: list[int] = []
    with pytest.raises(StoreError, match="larger than the 99 bytes"):
        store.download("weights.safetensors", 99, tmp_path / "x", seen.append)
    assert seen in ([], [0])
    store.download("weights.safetensors", 100, tmp_path / "x", seen.append)
    assert seen[-1] == 100
