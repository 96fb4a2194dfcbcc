"""Which past selves stand for a whole run."""

from __future__ import annotations

import errno
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simul.common.checkpoints.folders import new_folder, run_root, spread


@given(st.sets(st.integers(0, 10_000)), st.integers(0, 6))
def test_the_newest_is_always_chosen_and_the_oldest_where_there_is_room(versions, count):
    chosen = spread(list(versions), count)
    assert len(chosen) == min(len(versions), count)
    assert set(chosen) <= versions
    assert all(a < b for a, b in pairwise(chosen))
    if chosen:
        assert chosen[-1] == max(versions)
    if len(chosen) > 1:
        assert chosen[0] == min(versions)


def test_older_ones_are_spread():
    assert spread(range(101), 3) == [0, 50, 100]


@pytest.mark.parametrize(
    ("checkpoint", "run"),
    [
        ("run/checkpoints/000000012", "run"), ("run/checkpoints/past/000000012", "run"),
        ("run/checkpoints/best", "run"), ("zoo/mine", "zoo/mine"), ("past/mine", "past/mine"),
    ],
)  # fmt: skip
def test_a_checkpoint_belongs_to_the_run_it_lies_in_and_to_no_other_folder_above(tmp_path, checkpoint, run):
    assert run_root(tmp_path / checkpoint) == tmp_path / run


def write(path, content, **options):
    with new_folder(path, **options) as aside:
        (aside / "content").write_text(content)


def test_only_what_was_left_of_the_same_folder_is_removed(tmp_path):
    others = [".writing-diary", ".writing-mine-2-before", ".writing-mine-2-k3_fz9qa", ".writing-other-k3_fz9qa"]
    for name in (".writing-mine-k3_fz9qa", *others):
        (tmp_path / name).mkdir()
    write(tmp_path / "mine", "a")
    assert sorted(path.name for path in tmp_path.iterdir()) == [*others, "mine"]
    write(tmp_path / "mine", "b", only_writer=True)
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
    assert (tmp_path / "mine" / "content").read_text() == "b"


def test_an_older_folder_stays_until_the_new_one_is_in_its_place(tmp_path, monkeypatch):
    write(tmp_path / "mine", "old")

    def failing(path, target):
        if path.name != "mine" and target.name == "mine" and not path.name.endswith("-before"):
            raise OSError(errno.EIO, "Input/output error")
        return rename(path, target)

    rename = Path.rename
    monkeypatch.setattr(Path, "rename", failing)
    with pytest.raises(OSError, match="Input/output"):
        write(tmp_path / "mine", "new")
    monkeypatch.undo()
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
    assert (tmp_path / "mine" / "content").read_text() == "old"
    (tmp_path / "mine").rename(tmp_path / ".writing-mine-before")  # killed between the two renames
    with pytest.raises(ZeroDivisionError), new_folder(tmp_path / "mine"):
        _ = 1 / 0
    assert (tmp_path / "mine" / "content").read_text() == "old"
