"""The replay buffer on disk: it comes back bit for bit, within its limit, whatever ended the learner."""

from __future__ import annotations

import errno
from pathlib import Path

import numpy as np
import pytest

from simul.common.protocol.specs import GameSpec
from simul.learner.io.samples import ReceivedSamples
from simul.learner.replay import files as replay_files
from simul.learner.replay.buffer import ReplayBuffer
from simul.learner.replay.experience_replay import ExperienceReplay
from simul.learner.replay.files import ReplayFiles
from simul.learner.replay.sample_layout import SampleLayout
from simul.learner.replay.schedule import ReplayWindow
from tests.support.samples import SampleDraw

SPEC = GameSpec("test", observation_size=5, num_actions=21, observation_dtype="float16")
TOLD = GameSpec(
    "told",
    observation_size=5,
    num_actions=21,
    ending_planes=1,
    ending_numbers=2,
    observation_shape=(1, 2, 2),
    observation_axes="CHW",
)
LIMIT = 200_000
WINDOW = ReplayWindow(first=100_000, exponent=0.75, slope=0.4)


def opened(
    folder: Path, limit: int = LIMIT, memory: int = 10**6, spec: GameSpec = SPEC, window: ReplayWindow = WINDOW
) -> ExperienceReplay:
    """A life of the learner's replay."""
    layout = SampleLayout(spec)
    replay = ExperienceReplay(ReplayBuffer(layout, memory, least_rows=1), ReplayFiles(folder, layout, limit), window)
    replay.restore()
    return replay


def contents(replay: ExperienceReplay) -> dict[str, bytes]:
    """Every sample held, newest last."""
    buffer = replay._buffer
    columns = buffer.get(np.arange(buffer.added - buffer.rows, buffer.added))
    return {name: column.tobytes() for name, column in columns.items()}


def batches(count: int, rows: int = 20, seed: int = 0, first: int = 0, spec: GameSpec = SPEC):
    draw = SampleDraw(spec, seed)
    return [ReceivedSamples(first + i, draw.columns(rows, version=i)) for i in range(count)]


def failing_disk(path: Path, most: int) -> bytes:
    raise OSError(errno.EIO, "Input/output error")


def size_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.iterdir())


@pytest.mark.parametrize("spec", [SPEC, TOLD], ids=lambda spec: spec.name)
def test_a_restart_keeps_everything_bit_for_bit(tmp_path, spec: GameSpec) -> None:
    folder = tmp_path / "replay"
    first = opened(folder, spec=spec)
    assert all(first.add(batch) for batch in batches(30, spec=spec))
    first.close()
    again = opened(folder, spec=spec)
    assert again.notes == ["Resumed with 600 of 600 samples."]
    assert (again.total, contents(again)) == (600, contents(first))
    assert all(again.add(batch) for batch in batches(10, seed=1, first=100, spec=spec))
    third = opened(folder, spec=spec)
    assert (third.total, contents(third)) == (800, contents(again))


def test_a_message_is_stored_once_also_by_the_next_life(tmp_path) -> None:
    folder = tmp_path / "replay"
    replay = opened(folder)
    one, two = batches(2)
    assert [replay.add(one), replay.add(two), replay.add(one)] == [True, True, False]
    again = opened(folder)
    assert [again.add(two), again.add(one)] == [False, False]
    assert again.total == 40


def test_the_limit_on_disk_holds_and_the_newest_samples_stay(tmp_path) -> None:
    folder = tmp_path / "replay"
    replay = opened(folder, limit=LIMIT)
    for batch in batches(300):
        replay.add(batch)
        assert size_of(folder) <= LIMIT
        assert replay.figures()["disk_bytes"] == size_of(folder)
    again = opened(folder)
    kept = again._buffer.rows
    assert again.total == replay.total == 6000
    assert size_of(folder) > 0.8 * LIMIT
    assert 0 < kept < 6000
    newest = np.arange(kept)
    for name, column in again._buffer.get(newest).items():
        assert np.array_equal(column, replay._buffer.get(newest + 6000 - kept)[name])


@pytest.mark.parametrize("cut", [1, 7, 40, 500])
def test_a_torn_tail_is_ignored_and_never_written_behind(tmp_path, cut: int) -> None:
    folder = tmp_path / "replay"
    first = opened(folder)
    for batch in batches(3):
        first.add(batch)
    (path,) = folder.iterdir()
    path.write_bytes(path.read_bytes()[:-cut])
    again = opened(folder)
    assert again.total == 40
    assert "are no whole record: they are not read" in again.notes[0]
    assert again.add(batches(3)[2])
    assert (opened(folder).total, contents(opened(folder))) == (60, contents(first))


def test_a_flipped_bit_ends_its_file_and_no_other(tmp_path) -> None:
    folder = tmp_path / "replay"
    for life in range(2):
        replay = opened(folder)
        for batch in batches(4, first=10 * life, seed=life):
            replay.add(batch)
    first, _ = sorted(folder.iterdir())
    data = bytearray(first.read_bytes())
    data[len(data) // 2] ^= 16
    first.write_bytes(bytes(data))
    again = opened(folder)
    assert again.total == 160
    assert 80 <= again._buffer.rows < 160
    assert any("no whole record" in note for note in again.notes)


@pytest.mark.parametrize(("first", "zeros"), [(4, 28), (8, 24), (4, 1)], ids=["all", "all but the rows", "the rows"])
def test_a_damaged_header_ends_its_file(tmp_path, first: int, zeros: int) -> None:
    """The checksum is that of the body, and a body of nothing has the checksum 0."""
    folder = tmp_path / "replay"
    replay, ends = opened(folder), []
    for batch in batches(3):
        replay.add(batch)
        ends.append(size_of(folder))
    (path,) = folder.iterdir()
    data = bytearray(path.read_bytes())
    at = ends[1] + first  # of the third record
    data[at : at + zeros] = bytes(zeros)
    path.write_bytes(bytes(data))
    again = opened(folder)
    assert again.total == 40
    assert "are no whole record: they are not read" in again.notes[0]


def test_a_file_that_cannot_be_read_is_set_aside_and_not_overwritten(tmp_path, monkeypatch) -> None:
    folder = tmp_path / "replay"
    first = opened(folder)
    first.add(batches(1)[0])
    (path,) = folder.iterdir()
    data = path.read_bytes()
    with monkeypatch.context() as patched:
        patched.setattr(replay_files, "read_regular", failing_disk)
        again = opened(folder)
    assert again.total == 0
    assert "cannot be read" in again.notes[0]
    again.add(batches(1)[0])
    assert sorted(file.name for file in folder.iterdir()) == [path.name, f"unread-{path.name}"]
    assert (folder / f"unread-{path.name}").read_bytes() == data


def test_samples_of_another_game_are_set_aside_and_not_overwritten(tmp_path) -> None:
    folder = tmp_path / "replay"
    replay = opened(folder)
    replay.add(batches(1)[0])
    (path,) = folder.iterdir()
    data = path.read_bytes()
    other_spec = GameSpec("other", observation_size=5, num_actions=21, observation_dtype="float16")
    other = opened(folder, spec=other_spec)
    assert other.total == 0
    assert "holds no samples of this game and format" in other.notes[0]
    other.add(batches(1, spec=other_spec)[0])
    assert (folder / f"unread-{path.name}").read_bytes() == data


def test_what_cannot_be_written_is_said_once_and_kept_in_memory(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "replay"
    replay = opened(folder)
    one, two, three, four = batches(4)
    replay.add(one)
    write = replay_files.os.write
    monkeypatch.setattr(replay_files.os, "write", lambda file, data: write(file, data[:100]))  # then the disk is full
    assert replay.add(two)
    assert replay.add(three)
    monkeypatch.undo()
    assert [note.partition(": ")[2] for note in replay.notes] == ["the disk is full. Training goes on."]
    assert replay.add(four)
    assert (replay.total, replay._buffer.rows) == (80, 80)
    sizes = [file.stat().st_size for file in folder.iterdir()]
    assert sizes == [replay._files.used_bytes], "nothing is left of what failed"
    again = opened(folder)
    assert again.total == 80
    assert again._buffer.rows == 40  # the first and the last message
    assert not again.add(four)


def test_a_message_larger_than_the_limit_is_not_written(tmp_path) -> None:
    replay = opened(tmp_path / "replay", limit=1000)
    assert replay.add(batches(1, rows=100)[0])
    assert "more than replay.disk_mb allows" in replay.notes[0]
    assert replay.total == 100


def test_draws_are_uniform_over_the_window_and_no_older_sample_comes(tmp_path) -> None:
    replay = opened(tmp_path / "replay", window=ReplayWindow(first=100, exponent=0.75, slope=0.4))
    for batch in batches(20):
        replay.add(batch)
    held = replay.held
    assert 100 < held < 400
    counts = np.bincount(replay.draw(100 * held), minlength=400)
    assert not counts[: 400 - held].any()
    mean, deviation = counts[400 - held :].mean(), counts[400 - held :].std()
    assert mean == 100
    assert 0.8 * 10 < deviation < 1.2 * 10  # of a binomial
