"""The evaluation cache: keys, versions, capacity."""

from __future__ import annotations

import numpy as np

from simul.env_worker.search.evaluation_cache import CachedEvaluation, EvaluationCache, position_key

ONE = CachedEvaluation(np.ones(1, np.float32), np.zeros(1))
TWO = CachedEvaluation(np.ones(2, np.float32), np.ones(1))


def test_an_evaluation_is_found_until_a_newer_version_answers() -> None:
    cache = EvaluationCache(10)
    assert cache.find(b"a") is None
    cache.keep(b"a", 3, ONE)
    assert cache.find(b"a") is ONE
    cache.keep(b"b", 4, TWO)
    assert cache.find(b"a") is None
    assert cache.find(b"b") is TWO
    assert (cache.hits, cache.misses) == (2, 2)


def test_a_server_that_begins_again_from_an_older_version_is_not_answered_for_by_what_is_kept() -> None:
    cache = EvaluationCache(10)
    cache.keep(b"a", 4, ONE)
    cache.keep(b"b", 3, TWO)
    assert cache.version == 3
    assert cache.find(b"a") is None
    assert cache.find(b"b") is TWO
    cache.keep(b"c", 4, TWO)  # of other weights than the first 4
    assert cache.find(b"a") is None


def test_the_oldest_make_room() -> None:
    cache = EvaluationCache(2)
    for key in (b"a", b"b", b"b", b"c"):
        cache.keep(key, 0, ONE)
    assert len(cache) == 2
    assert [cache.find(key) is not None for key in (b"a", b"b", b"c")] == [False, True, True]


def test_without_room_only_the_version_is_kept() -> None:
    cache = EvaluationCache(0)
    cache.keep(b"a", 7, ONE)
    assert cache.find(b"a") is None
    assert cache.version == 7


def test_the_key_tells_apart_whatever_the_network_is_shown() -> None:
    row, actions = np.arange(4, dtype=np.float32)[None], np.array([0, 2])
    key = position_key(0, actions, row)
    assert key == position_key(0, actions.copy(), row.copy())
    assert (
        len({key, position_key(1, actions, row), position_key(0, actions + 1, row), position_key(0, actions, row + 1)})
        == 4
    )
