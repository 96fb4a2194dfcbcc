"""The last published version survives its writer, and a disk that cannot be written stops nothing."""

from __future__ import annotations

import pytest

from learner.published import FILE, PublishedVersion


def test_what_was_noted_is_read_by_the_next_life(tmp_path):
    assert PublishedVersion(tmp_path).read() == -1
    one = PublishedVersion(tmp_path)
    assert [one.write(version) for version in (0, 7, 8)] == ["", "", ""]
    assert PublishedVersion(tmp_path).read() == 8
    assert [path.name for path in tmp_path.iterdir()] == [FILE]


@pytest.mark.parametrize("content", [b"", b"seven", b"\xff\xfe"])
def test_a_damaged_note_is_none(tmp_path, content):
    (tmp_path / FILE).write_bytes(content)
    assert PublishedVersion(tmp_path).read() == -1


def test_a_note_that_cannot_be_written_is_said_once(tmp_path):
    folder = tmp_path / "gone"
    published = PublishedVersion(folder)
    assert "version 3 could not be noted on disk: No such file" in published.write(3)
    assert published.write(4) == ""
    folder.mkdir()
    assert published.write(5) == ""
    assert published.read() == 5
