"""What nobody can change stays as it is, and what could be changed is not taken for it."""

from __future__ import annotations

import mmap
import os
import sys

import pytest

from simul.common.protocol.shared_memory import anonymous_file, file_number, open_sealed, shared_path
from tests.support.anonymous import anonymous_files

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Linux only")

DATA = bytes(range(256)) * 1000


@pytest.fixture
def made():
    file = anonymous_file(DATA, len(DATA), writable=False)
    yield file
    os.close(file)


def test_whoever_opens_it_reads_it_and_has_it_longer_than_its_maker() -> None:
    made = anonymous_file(DATA, len(DATA), writable=False)
    path, number = shared_path(made), file_number(made)
    file = open_sealed(path, number)
    os.close(made)
    assert os.pread(file, 2 * len(DATA), 0) == DATA
    with pytest.raises(OSError):
        open_sealed(path, number)
    os.close(file)


def test_what_took_the_place_of_another_is_told_from_it_by_its_number() -> None:
    numbers, paths = set(), set()
    for _ in range(100):
        made = anonymous_file(DATA, len(DATA), writable=False)
        numbers.add(file_number(made))
        paths.add(shared_path(made))
        os.close(made)
    assert len(numbers) == 100
    assert len(paths) == 1
    (path,), made = paths, anonymous_file(DATA, len(DATA), writable=False)
    for number in numbers:
        with pytest.raises(ValueError, match="another file"):
            open_sealed(path, number)
    os.close(made)


@pytest.mark.parametrize(
    "change",
    [
        lambda file: os.pwrite(file, b"x", 0),
        lambda file: os.ftruncate(file, 5),
        lambda file: os.ftruncate(file, 2 * len(DATA)),
        lambda file: mmap.mmap(file, len(DATA), access=mmap.ACCESS_WRITE),
    ],
)
def test_not_even_its_maker_can_change_it(made, change) -> None:
    with pytest.raises(OSError):
        change(made)
    assert os.pread(made, 2 * len(DATA), 0) == DATA


def test_other_files_are_refused_and_nothing_stays_open(tmp_path) -> None:
    writable = anonymous_file(b"begin", 100, writable=True)
    assert os.pread(writable, 100, 0) == b"begin" + bytes(95)
    ordinary, pipe = tmp_path / "ordinary", tmp_path / "pipe"
    ordinary.write_bytes(DATA)
    os.mkfifo(pipe)
    before = len(os.listdir("/proc/self/fd"))
    for path in (shared_path(writable), str(ordinary), str(pipe), str(tmp_path), str(tmp_path / "none"), "", "\0"):
        number = os.stat(path).st_ino if os.path.exists(path) else 0
        with pytest.raises((OSError, ValueError)):
            open_sealed(path, number)
    assert len(os.listdir("/proc/self/fd")) == before
    os.close(writable)


def test_what_cannot_be_filled_leaves_nothing_behind() -> None:
    before = anonymous_files()
    with pytest.raises(OSError):
        anonymous_file(DATA, -1, writable=False)
    assert anonymous_files() == before
