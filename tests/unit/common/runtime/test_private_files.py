"""What other users may have put in the place of a file is neither waited for nor read."""

from __future__ import annotations

import os
import sys

import pytest

from simul.common.runtime.private_files import is_private_folder, open_to_append, read_regular

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no FIFOs, links and modes there")


def test_a_fifo_is_no_file_and_nobody_waits_for_its_writer(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(OSError, match="not a regular file"):
        read_regular(tmp_path / "fifo", 10)


def test_a_small_file_takes_little_memory_however_large_it_may_be(tmp_path):
    (tmp_path / "file").write_bytes(b"12345")
    assert read_regular(tmp_path / "file", 2**50) == b"12345"


def test_nothing_is_appended_to_a_fifo_or_through_a_link_and_nobody_waits_for_its_reader(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "link").symlink_to("victim")
    with pytest.raises(OSError):
        open_to_append(tmp_path / "fifo")
    reader = os.open(tmp_path / "fifo", os.O_RDONLY | os.O_NONBLOCK)
    try:
        with pytest.raises(OSError, match="not a regular file"):
            open_to_append(tmp_path / "fifo")
    finally:
        os.close(reader)
    with pytest.raises(OSError, match="a symbolic link"):
        open_to_append(tmp_path / "link")
    assert not (tmp_path / "victim").exists()
    for line in (b"1\n", b"2\n"):
        with os.fdopen(open_to_append(tmp_path / "file"), "ab") as file:
            file.write(line)
    assert (tmp_path / "file").read_bytes() == b"1\n2\n"


def test_a_file_is_read_up_to_a_bound(tmp_path):
    (tmp_path / "file").write_bytes(b"12345")
    assert read_regular(tmp_path / "file", 5, own=True) == b"12345"
    with pytest.raises(OSError, match="larger than 4 bytes"):
        read_regular(tmp_path / "file", 4)


def test_links_are_followed_unless_the_file_must_be_ones_own(tmp_path):
    (tmp_path / "file").write_bytes(b"1")
    (tmp_path / "link").symlink_to("file")
    assert read_regular(tmp_path / "link", 5) == b"1"
    with pytest.raises(OSError, match="a symbolic link"):
        read_regular(tmp_path / "link", 5, own=True)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can make another user's file")
def test_a_file_and_a_folder_of_another_user_are_not_ones_own(tmp_path):
    (tmp_path / "file").write_bytes(b"1")
    (tmp_path / "folder").mkdir(mode=0o700)
    assert is_private_folder(tmp_path / "folder")
    for name in ("file", "folder"):
        os.chown(tmp_path / name, 65534, 65534)
    with pytest.raises(OSError, match="another user"):
        read_regular(tmp_path / "file", 5, own=True)
    assert not is_private_folder(tmp_path / "folder")
