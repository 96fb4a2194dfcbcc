"""The last published version survives its writer, and a disk that cannot be written stops nothing."""

import pytest

from simul.learner.checkpoints.last_version import FILE, LastVersionFile
from simul.learner.io.server_handshake import MOST_UNNOTED


def test_what_was_noted_is_read_by_the_next_life(tmp_path):
    assert LastVersionFile(tmp_path).read(-1) == (-1, "")
    one = LastVersionFile(tmp_path)
    assert [one.write(version) for version in (0, 7, 5_000_000)] == ["", "", ""]
    assert LastVersionFile(tmp_path).read(40) == (5_000_000, ""), "also where none could be saved for long"
    assert [path.name for path in tmp_path.iterdir()] == [FILE]


@pytest.mark.parametrize(
    ("content", "why"),
    [
        *((content, f"{FILE} is damaged") for content in (b"", b"seven", b"\xff\xfe", b"9" * 5000)),
        *(
            (str(version).encode(), f"holds version {version}, which this run cannot have published")
            for version in (9223372036854775801, 10**9, 41 + MOST_UNNOTED, -5)
        ),
    ],
)
def test_what_is_damaged_or_cannot_have_been_published_is_not_used_and_is_said(tmp_path, content, why):
    (tmp_path / FILE).write_bytes(content)
    version, sentence = LastVersionFile(tmp_path).read(40)
    assert version == -1
    assert why in sentence
    assert "go on from that of the newest whole checkpoint, 40" in sentence


def test_a_note_that_cannot_be_written_is_said_once(tmp_path):
    folder = tmp_path / "gone"
    published = LastVersionFile(folder)
    assert "version 3 could not be noted on disk: No such file" in published.write(3)
    assert published.write(4) == ""
    folder.mkdir()
    assert published.write(5) == ""
    assert published.read(-1) == (5, "")
