"""The last published version survives its writer, and a disk that cannot be written stops nothing."""

from __future__ import annotations

import pytest

from simul.learner.published import FILE, PublishedVersion
from simul.learner.server_handshake import MOST_UNNOTED


def test_what_was_noted_is_read_by_the_next_life(tmp_path):
    assert PublishedVersion(tmp_path).read(-1) == (-1, "")
    one = PublishedVersion(tmp_path)
    assert [one.write(version) for version in (0, 7, 8)] == ["", "", ""]
    assert PublishedVersion(tmp_path).read(3) == (8, "")
    assert [path.name for path in tmp_path.iterdir()] == [FILE]


@pytest.mark.parametrize("content", [b"", b"seven", b"\xff\xfe", b"9" * 5000])
def test_a_damaged_note_is_none_and_is_said(tmp_path, content):
    (tmp_path / FILE).write_bytes(content)
    version, sentence = PublishedVersion(tmp_path).read(7)
    assert version == -1
    assert f"{FILE} is damaged. It is not used" in sentence
    assert "checkpoint, 7" in sentence


@pytest.mark.parametrize("poison", [9223372036854775801, 10**9, 41 + MOST_UNNOTED, -5])
def test_a_version_that_the_run_cannot_have_published_counts_for_nothing_and_is_said(tmp_path, poison):
    (tmp_path / FILE).write_text(str(poison))
    version, sentence = PublishedVersion(tmp_path).read(40)
    assert version == -1
    assert f"holds version {poison}, which this run cannot have published" in sentence
    assert "go on from that of the newest whole checkpoint, 40" in sentence


def test_versions_that_could_not_be_saved_for_long_are_believed(tmp_path):
    PublishedVersion(tmp_path).write(5_000_000)
    assert PublishedVersion(tmp_path).read(40) == (5_000_000, "")


def test_a_note_that_cannot_be_written_is_said_once(tmp_path):
    folder = tmp_path / "gone"
    published = PublishedVersion(folder)
    assert "version 3 could not be noted on disk: No such file" in published.write(3)
    assert published.write(4) == ""
    folder.mkdir()
    assert published.write(5) == ""
    assert published.read(-1) == (5, "")
