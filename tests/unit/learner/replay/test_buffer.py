"""The replay buffer: what it holds is what came last, bit for bit, and its memory is bounded before it is taken."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from simul.common.errors import ConfigError
from simul.common.protocol.specs import GameSpec
from simul.learner.io.samples import ReceivedSamples
from simul.learner.replay.buffer import INDEX_BYTES, ReplayBuffer
from simul.learner.replay.sample_layout import SampleLayout
from tests.support.samples import SampleDraw

SPECS = [
    GameSpec("float", observation_size=5, num_actions=21),
    GameSpec("half", observation_size=3, num_actions=8, observation_dtype="float16"),
    GameSpec("bytes", observation_size=7, num_actions=1, observation_dtype="uint8"),
    GameSpec("told", observation_size=3, num_actions=21, ending_numbers=4),
]
COLUMNS = ("observation", "mask", "target_count", "outcome", "policy_version", "ending")


def rows_of(columns) -> list[tuple]:
    """One comparable value per sample."""
    ends = np.cumsum(columns["target_count"])
    return [
        tuple(columns[name][i].tobytes() for name in COLUMNS if name in columns)
        + tuple(
            columns[name][end - columns["target_count"][i] : end].tobytes()
            for name in ("target_action", "target_probability")
        )
        for i, end in enumerate(ends)
    ]


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
@pytest.mark.parametrize("memory", [3_000, 10_007])
def test_the_newest_samples_are_held_in_order_whatever_their_length(spec: GameSpec, memory: int) -> None:
    layout, draw, random = SampleLayout(spec), SampleDraw(spec, most_actions=9), np.random.default_rng(1)
    buffer = ReplayBuffer(layout, memory, least_rows=1)
    given: list[tuple] = []
    evicted = 0
    for batch in range(120):
        columns = draw.columns(int(random.integers(1, 9)), version=batch)
        buffer.add(ReceivedSamples(batch, columns))
        given += rows_of(columns)
        assert buffer.added == len(given)
        assert buffer.used_bytes <= memory
        numbers = np.arange(buffer.added - buffer.rows, buffer.added)
        assert rows_of(buffer.get(numbers)) == given[len(given) - buffer.rows :]
        evicted = buffer.added - buffer.rows
    assert evicted > 0
    free = len(buffer._bytes) - (buffer.used_bytes - buffer.rows * INDEX_BYTES)
    assert free < 2 * layout.most_bytes or buffer.rows == buffer._capacity


def test_samples_are_read_in_any_order_and_more_than_once() -> None:
    buffer = ReplayBuffer(SampleLayout(SPECS[0]), 100_000, least_rows=1)
    columns = SampleDraw(SPECS[0]).columns(30)
    buffer.add(ReceivedSamples(1, columns))
    rows = rows_of(columns)
    assert rows_of(buffer.get(np.array([7, 29, 7, 0]))) == [rows[7], rows[29], rows[7], rows[0]]


def test_a_buffer_that_might_not_hold_the_first_samples_is_refused_before_memory_is_taken() -> None:
    spec = GameSpec("large", observation_size=1000, num_actions=10_000, observation_dtype="uint8")
    tracemalloc.start()
    with pytest.raises(ConfigError, match=r"replay.memory_mb: 64 MiB hold .*min_samples = 2,000. Set at least 1\d\d,"):
        ReplayBuffer(SampleLayout(spec), 64 * 2**20, least_rows=2000)
    assert tracemalloc.get_traced_memory()[1] < 2**20
    tracemalloc.stop()


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
def test_the_memory_that_the_sentence_advises_is_enough(spec: GameSpec) -> None:
    layout = SampleLayout(spec)
    with pytest.raises(ConfigError) as error:
        ReplayBuffer(layout, 2**20, least_rows=200_000)
    megabytes = int(str(error.value).rpartition("Set at least ")[2].partition(",")[0])
    ReplayBuffer(layout, megabytes * 2**20, least_rows=200_000)


def test_all_of_its_memory_is_taken_at_once() -> None:
    spec, megabyte = SPECS[0], 2**20
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    buffer = ReplayBuffer(SampleLayout(spec), 8 * megabyte, least_rows=100)
    reserved = tracemalloc.get_traced_memory()[0] - before
    assert 7.9 * megabyte < reserved <= 8 * megabyte + 10_000
    columns = SampleDraw(spec).columns(300)
    before = tracemalloc.get_traced_memory()[0]
    for batch in range(20):
        buffer.add(ReceivedSamples(batch, columns))
    assert tracemalloc.get_traced_memory()[0] - before < 100_000
    tracemalloc.stop()
