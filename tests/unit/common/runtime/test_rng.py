"""Counter-based draws: the right distributions, and the same numbers whatever else is in the batch."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simul.common.runtime.rng import gumbel, session_key, uniform

WORD = 2**64 - 1


def columns(keys, steps, attempts):
    return tuple(np.array(column, np.uint64) for column in (keys, steps, attempts))


def many(count, client="worker-0"):
    """Counters as a run has them: few sessions, consecutive steps."""
    keys = np.array([session_key(1, client, i // 100, 0, i % 7) for i in range(0, count, 50)], np.uint64).repeat(50)
    return keys[:count], np.tile(np.arange(50, dtype=np.uint64), count // 50), np.zeros(count, np.uint64)


def chi_square(counts, expected):
    return float(((counts - expected) ** 2 / expected).sum())


def test_uniform_never_touches_its_ends():
    draws = uniform(*many(500_000), 16)
    assert 0.0 < draws.min() < 1e-5
    assert 1.0 - 1e-5 < draws.max() < 1.0
    assert np.isfinite(gumbel(*many(500_000), 2)).all()


def test_neighbours_are_independent():
    draws = uniform(*many(50_000), 8)
    assert np.abs(np.corrcoef(draws.T) - np.eye(8)).max() < 0.02  # actions
    for lag in (1, 2, 50):  # steps and sessions
        assert abs(np.corrcoef(draws[:-lag, 0], draws[lag:, 0])[0, 1]) < 0.02
    keys, steps, attempts = many(50_000)
    again = uniform(keys, steps, attempts + np.uint64(1), 8)
    assert abs(np.corrcoef(draws.ravel(), again.ravel())[0, 1]) < 0.01
    joint, _, _ = np.histogram2d(draws[:, 0], draws[:, 1], 10, ((0, 1), (0, 1)))
    assert chi_square(joint, 500) < 155  # 99 degrees of freedom: p = 3e-4


@pytest.mark.parametrize("logits", [[0.0, 0.0, 0.0], [2.0, 0.0, -1.0, 0.5], [5.0, -5.0], [0.0, -np.inf, 1.0]])
def test_gumbel_max_draws_from_softmax(logits):
    logits = np.array(logits, np.float32)
    drawn = (logits + gumbel(*many(100_000), len(logits))).argmax(1)
    probabilities = np.exp(logits - logits.max())
    probabilities /= probabilities.sum()
    counts = np.bincount(drawn, minlength=len(logits))
    assert (counts[probabilities == 0] == 0).all()
    likely = probabilities > 0
    assert chi_square(counts[likely], 100_000 * probabilities[likely]) < 22  # at most 3 degrees of freedom: p = 7e-5


rows = st.lists(
    st.tuples(st.integers(0, WORD), st.integers(0, 2**40), st.integers(0, 9)), min_size=1, max_size=30
).flatmap(lambda rows: st.tuples(st.just(rows), st.permutations(range(len(rows)))))


@given(rows, st.integers(1, 30))
@settings(max_examples=60, deadline=None)
def test_draws_do_not_depend_on_order_or_company(given_rows, num_actions):
    rows, order = given_rows
    keys, steps, attempts = columns(*zip(*rows))
    together = uniform(keys, steps, attempts, num_actions)
    shuffled = uniform(keys[order], steps[order], attempts[order], num_actions)
    assert np.array_equal(shuffled, together[order])
    alone = np.concatenate([uniform(*columns([k], [s], [a]), num_actions) for k, s, a in rows])
    assert np.array_equal(alone, together)
    wider = uniform(keys, steps, attempts, num_actions + 5)
    assert np.array_equal(wider[:, :num_actions], together)


def test_every_part_of_the_key_counts():
    base = (1, "worker-0", 2, 0, 3)
    changed = [(2, *base[1:]), (1, "worker-1", 2, 0, 3), (1, "worker-0", 3, 0, 3), (*base[:3], 1, 3), (*base[:4], 4)]
    keys = {session_key(*parts) for parts in [base, *changed]}
    assert len(keys) == 6
    assert all(0 <= key <= WORD for key in keys)
    assert len({uniform(*columns([7], [s], [a]), 1).item() for s in range(50) for a in range(50)}) == 2500


def slow_uniform(key, step, attempt, action):
    """The same in plain integers, word by word."""

    def mix(x):
        x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & WORD
        x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & WORD
        return x ^ (x >> 31)

    golden = 0x9E3779B97F4A7C15
    row = mix((mix((key + golden * (step + 1)) & WORD) + attempt) & WORD)
    return ((mix((row + golden * (action + 1)) & WORD) >> 41) + 0.5) * 2.0**-23


@given(st.integers(0, WORD), st.integers(0, 2**40), st.integers(0, 9))
def test_against_plain_integers(key, step, attempt):
    fast = uniform(*columns([key], [step], [attempt]), 5)[0].tolist()
    assert fast == [slow_uniform(key, step, attempt, action) for action in range(5)]


def test_the_key_is_pinned():
    """A changed one would silently replay recorded games differently."""
    assert session_key(1, "worker-0", 2, 0, 3) == 13988830507332073564
