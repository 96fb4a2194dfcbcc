"""Unrolls against a slow second implementation: lists of steps, cut every T; places and rows of the tables."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simul.common.protocol.messages import ABORTED, NO_LABEL, SAME_LABEL, TERMINATED, TRUNCATED
from simul.common.protocol.specs import GameSpec
from simul.common.protocol.unroll_layout import UnrollLayout
from simul.inference_server.unrolls.buffer import FinishedUnroll, SharedUnrolls, UnrollBuffer, UnrollPlaces, append_rows

SPEC = GameSpec(name="test", observation_size=3, num_actions=2)
T = 4


@dataclass
class Game:
    recording: int
    steps: list[dict[str, float]] = field(default_factory=list)
    out: list[FinishedUnroll] = field(default_factory=list)
    lent: list[FinishedUnroll] = field(default_factory=list)

    def keep(self, buffer: UnrollBuffer, finished: FinishedUnroll) -> None:
        """What the learner copies at once is in `out`; what it leaves where it is, in `lent`."""
        finished = buffer.lend(finished)
        self.out.append(_copy(finished))
        if finished.message.place >= 0:
            self.lent.append(finished)


def _observation(tag: float) -> np.ndarray:
    return np.full(3, tag, np.float32)


def _copy(finished: FinishedUnroll) -> FinishedUnroll:
    """As the link sends it: the buffer goes on."""
    place = finished.place
    tables = {name: table[place : place + 1].copy() for name, table in finished.tables.items()}
    return FinishedUnroll(finished.recording, finished.message, tables, 0)


def _play(buffer: UnrollBuffer, games: list[Game], tags: list[float], redo: list[bool]) -> None:
    """One batch: every game takes one step whose numbers are all made of its tag."""
    rows = np.array([game.recording for game in games])
    again = np.array(redo)
    buffer.add_rewards(rows[~again], np.array(tags, np.float32)[~again] / 2)
    for game, tag, was_redo in zip(games, tags, redo):
        if not was_redo and game.steps:
            game.steps[-1]["reward"] = tag / 2
    full = np.flatnonzero(buffer.full(rows) & ~again)
    closed = buffer.close_full(
        rows[full],
        np.stack([_observation(tag) for tag in tags])[full],
        np.ones((len(full), 2), np.uint8),
        np.array(tags, np.float32)[full],
    )
    for i, finished in zip(full, closed):
        games[i].keep(buffer, finished)
    fresh = buffer.fresh(rows)
    if fresh.any():
        buffer.begin(rows[fresh], np.array([[tag] for tag in tags], np.float32)[fresh])
    tag32 = np.array(tags, np.float32)
    buffer.append(
        rows, again, np.stack([_observation(tag) for tag in tags]), np.ones((len(rows), 2), np.uint8),
        tag32.astype(np.int32) % 2, -tag32, tag32, 3,
    )  # fmt: skip
    for game, tag, was_redo in zip(games, tags, redo):
        if was_redo:
            game.steps.pop()
        game.steps.append({"tag": tag, "reward": 0.0})


@settings(deadline=None, max_examples=60)
@given(
    lengths=st.lists(st.integers(1, 3 * T + 1), min_size=1, max_size=5),
    kind=st.sampled_from([TERMINATED, TRUNCATED, ABORTED]),
    redo_every=st.integers(2, 7),
)
def test_unrolls_are_the_games_cut_every_t_steps(lengths: list[int], kind: int, redo_every: int) -> None:
    _games(UnrollBuffer(SPEC, T, state_size=1, capacity=2), lengths, kind, redo_every)


def _games(buffer: UnrollBuffer, lengths: list[int], kind: int, redo_every: int) -> list[Game]:
    games = [Game(buffer.open()) for _ in lengths]
    tag = 1.0
    for step in range(max(lengths)):
        playing = [game for game, length in zip(games, lengths) if step < length]
        _play(buffer, playing, [tag + i for i in range(len(playing))], [False] * len(playing))
        tag += len(playing)
        if step % redo_every == redo_every - 1:
            _play(buffer, playing[:1], [tag], [True])
            tag += 1
    assert buffer.steps_open + sum(f.steps for game in games for f in game.out) == sum(lengths)
    for game in games:
        buffer.add_rewards(np.array([game.recording]), np.array([0.5], np.float32))
        game.steps[-1]["reward"] = 0.5
        last = buffer.end(game.recording, kind, _observation(77.0), "aborted")
        if last is not None:
            game.keep(buffer, last)
        _check(game, kind)
    assert buffer.steps_open == 0
    return games


@contextmanager
def _memory(rows: int) -> Iterator[SharedUnrolls]:
    memory = SharedUnrolls(UnrollLayout(SPEC, T, state_size=1), rows)
    try:
        yield memory
    finally:
        memory.close()


@settings(deadline=None, max_examples=30)
@given(
    lengths=st.lists(st.integers(1, 3 * T + 1), min_size=1, max_size=5), kind=st.sampled_from([TERMINATED, TRUNCATED])
)
@pytest.mark.skipif(sys.platform != "linux", reason="granted on Linux only")
def test_what_is_lent_stays_as_it_is_until_it_comes_back(lengths: list[int], kind: int) -> None:
    with _memory(rows=5) as memory:
        games = _games(UnrollBuffer(SPEC, T, state_size=1, memory=memory), lengths, kind, redo_every=3)
        lent = [finished for game in games for finished in game.lent]
        assert len(lent) == memory.places.lent == min(5, sum(len(game.out) for game in games))
        copies = {id(out.message): out for game in games for out in game.out}
        for finished in lent:
            for name, tensor in finished.tensors.items():
                assert np.array_equal(tensor, copies[id(finished.message)].tensors[name])
            assert memory.tables["serial"][finished.message.place] == finished.message.serial
            memory.places.take_back(finished.message.place)


def _check(game: Game, kind: int) -> None:
    start = 0
    for finished in game.out:
        n, tensors = finished.message.length, finished.tensors
        assert finished.message.first_step == start
        steps = game.steps[start : start + n]
        assert tensors["observation"][:n, 0].tolist() == [step["tag"] for step in steps]
        assert tensors["reward"].tolist() == pytest.approx([step["reward"] for step in steps])
        assert tensors["value"][:n].tolist() == [step["tag"] for step in steps]
        start += n
        last = finished is game.out[-1]
        bootstrap = tensors["observation"][n, 0]
        if last and kind == TERMINATED:
            assert finished.message.terminated
            assert bootstrap == tensors["value"][n] == 0
        elif last and kind == TRUNCATED:
            assert finished.message.truncated
            assert bootstrap == 77.0
        else:
            assert n == T
    if kind != ABORTED:
        assert start == len(game.steps)
    else:
        assert start == (len(game.steps) - 1) // T * T


def test_recordings_are_reused_and_aborted_steps_counted() -> None:
    buffer = UnrollBuffer(SPEC, T, state_size=1, capacity=1)
    first = Game(buffer.open())
    _play(buffer, [first], [1.0], [False])
    assert buffer.end(first.recording, ABORTED, None, "client_lost") is None
    assert buffer.dropped == {"client_lost": 1}
    second = Game(buffer.open())
    assert second.recording == first.recording
    _play(buffer, [second], [5.0], [False])
    finished = buffer.end(second.recording, TERMINATED, None, "")
    assert finished is not None
    assert finished.tensors["state"].tolist() == [5.0]
    assert finished.message.first_step == 0


LABELLED = GameSpec(name="test", observation_size=3, num_actions=2, opponent_labels=2, opponent_classes=9)


def _label(buffer: UnrollBuffer, recording: int, label: tuple[int, int] | None) -> None:
    given = None if label is None else np.array([label], np.int16)
    buffer.add_rewards(np.array([recording]), np.zeros(1, np.float32), given)


def _step(buffer: UnrollBuffer, recording: int, *, redo: bool = False) -> FinishedUnroll | None:
    rows, one = np.array([recording]), np.ones((1, 2), np.uint8)
    full = None
    if not redo and buffer.full(rows)[0]:
        (finished,) = buffer.close_full(rows, _observation(1.0)[None], one, np.ones(1, np.float32))
        full = _copy(finished)
    zeros = np.zeros(1, np.float32)
    buffer.append(rows, np.array([redo]), _observation(1.0)[None], one, zeros.astype(np.int32), zeros, zeros, 3)
    return full


def test_labels_come_with_the_next_step_also_for_steps_that_wait_for_it() -> None:
    buffer = UnrollBuffer(LABELLED, T, state_size=1)
    recording, same = buffer.open(), (SAME_LABEL, SAME_LABEL)
    arrived = [(4, 4), (3, NO_LABEL), same, same, (1, 2), None, same, (NO_LABEL, 8)]  # with the steps 0 to 7
    unrolls = []
    for step, label in enumerate(arrived):
        _label(buffer, recording, label)
        unrolls.append(_step(buffer, recording))
        if step == 2:  # the action was refused
            unrolls.append(_step(buffer, recording, redo=True))
    _label(buffer, recording, (5, 6))
    unrolls.append(buffer.end(recording, TERMINATED, None, ""))
    found = [unroll.tensors["label"].tolist() for unroll in unrolls if unroll is not None]
    first = [[3, NO_LABEL], [1, 2], [1, 2], [1, 2]]
    second = [[NO_LABEL, NO_LABEL], [NO_LABEL, 8], [NO_LABEL, 8], [5, 6]]
    assert found == [first, second], "the label that came with step 0 belongs to no step"


def test_a_step_that_waits_at_the_end_of_an_unroll_has_no_label() -> None:
    buffer = UnrollBuffer(LABELLED, T, state_size=1)
    recording = buffer.open()
    _label(buffer, recording, None)
    _step(buffer, recording)
    for label in ((1, 1), (2, 2), (3, 3), (SAME_LABEL, SAME_LABEL)):
        _label(buffer, recording, label)
        unroll = _step(buffer, recording)
    assert unroll is not None
    assert unroll.tensors["label"].tolist() == [[1, 1], [2, 2], [3, 3], [NO_LABEL, NO_LABEL]]
    assert "label" not in UnrollLayout(SPEC, T, 1).shapes(), "another game pays nothing"


def test_a_session_is_named_alike_in_all_its_unrolls_and_in_no_others():
    buffers = [UnrollBuffer(SPEC, 2, 1) for _ in range(2)]
    named = []
    for buffer in buffers:
        for _ in range(2):
            recording = buffer.open()
            parts = []
            for step in range(3):
                rows, zeros = np.array([recording]), np.zeros(1, np.float32)
                observation = np.zeros((1, SPEC.observation_size), SPEC.dtype())
                mask = np.ones((1, SPEC.num_actions), np.uint8)
                if step == 2:
                    parts.extend(buffer.close_full(rows, observation, mask, zeros))
                buffer.append(rows, zeros > 0, observation, mask, np.zeros(1, np.int32), zeros, zeros, 0)
            parts.append(buffer.end(recording, TERMINATED, None, ""))
            first, last = (part.message for part in parts)
            assert (first.session, first.first_step, last.first_step) == (last.session, 0, 2)
            named.append(first.session)
    assert len(set(named)) == 4


ROWS, SPARES = 3, 4


@given(st.lists(st.integers(0, ROWS + SPARES - 1), max_size=60))
def test_every_place_is_a_recordings_or_lent_or_spare(moves: list[int]) -> None:
    serial = np.zeros(ROWS + SPARES, np.int64)
    places, lent, serials = UnrollPlaces(ROWS, serial), [], set()
    for move in moves:
        if move < ROWS:
            before = int(places.of_recording[move])
            found = places.lend(move)
            if len(lent) == SPARES:
                assert found is None
                assert places.of_recording[move] == before
            else:
                assert found is not None
                assert found[0] == before != places.of_recording[move]
                assert serial[before] == found[1] not in serials
                serials.add(found[1])
                lent.append(before)
        elif lent:
            place = lent.pop(move % len(lent))
            places.take_back(place)
            assert serial[place] == 0
            with pytest.raises(KeyError):
                places.take_back(place)
        assert places.lent == len(lent)
        assert sorted([*places.of_recording.tolist(), *lent, *places._spare]) == list(range(ROWS + SPARES))


N, PLACES, STEPS, ACTIONS = 6, 9, 5, 3
CHECKOUT = Path(__file__).parents[4]


def _aligned(shape: tuple[int, ...], offset: int) -> np.ndarray:
    """Zeros, uint8, `offset` bytes behind a multiple of 64."""
    size = int(np.prod(shape))
    memory = np.zeros(size + 128, np.uint8)
    start = -memory.ctypes.data % 64 + offset
    return memory[start : start + size].reshape(shape)


@pytest.mark.parametrize("size", [64, 8640, 63, 12])
@pytest.mark.parametrize("offset", [0, 16])
def test_rows_are_written_where_they_belong_and_nowhere_else(size: int, offset: int) -> None:
    rng = np.random.default_rng(size)
    table, expected = _aligned((PLACES, STEPS, size), offset), np.zeros((PLACES, STEPS, size), np.uint8)
    columns = [np.zeros((PLACES, STEPS), dtype) for dtype in (np.int32, np.float32, np.float32, np.int64, np.float32)]
    labels = np.full((PLACES, STEPS, 2), 5, np.int16)
    masks, filled = np.zeros((PLACES, STEPS, ACTIONS), np.uint8), rng.integers(1, STEPS - 1, PLACES)
    rows, place_of = rng.permutation(PLACES)[:N], rng.permutation(PLACES)
    redo = rng.random(N) < 0.5
    observation, mask = rng.integers(0, 255, (N, size), np.uint8), rng.integers(0, 2, (N, ACTIONS), np.uint8)
    at = filled[rows] - redo
    expected[place_of[rows], at] = observation
    numbers = np.arange(1, N + 1)
    new = append_rows(
        rows, place_of, redo, observation, mask, numbers.astype(np.int32), *(numbers.astype(np.float32),) * 2, 7,
        filled, table, masks, *columns, labels,
    )  # fmt: skip
    assert new == N - redo.sum()
    assert np.array_equal(table, expected)
    assert np.array_equal(masks[place_of[rows], at], mask)
    assert np.array_equal(columns[0][place_of[rows], at], numbers)
    assert (labels[place_of[rows], at] == NO_LABEL).all()
    assert (labels != 5).sum() == 2 * N
    assert np.array_equal(filled[rows], at + 1)


def test_without_a_compiler_they_are_written_too() -> None:
    call = "from tests.unit.inference_server.unrolls.test_buffer import *; "
    call += "test_rows_are_written_where_they_belong_and_nowhere_else(64, 0)"
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": str(CHECKOUT)}
    subprocess.run([sys.executable, "-c", call], check=True, env=environment, timeout=280)
