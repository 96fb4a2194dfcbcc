"""The search, against a server that is a plain function of the rate."""

import pytest

from simul.launch.loadtest.bisection import STEPS_DOWN, MaxRateSearch


def _search(low: float, high: float, limit: float) -> tuple[float | None, int]:
    search, trials = MaxRateSearch(low, high), 0
    while (rate := search.next_rate()) is not None:
        search.record_trial(rate, passed=rate <= limit)
        trials += 1
        assert trials < 60
    return search.result, trials


@pytest.mark.parametrize("limit", [25.0, 130.0, 700.0, 999.0, 2900.0])
def test_finds_the_limit_from_below_within_five_percent(limit: float) -> None:
    found, trials = _search(20.0, 1000.0, limit)
    assert found is not None
    assert found <= limit <= found * 1.06
    assert trials <= 16


def test_gives_up_at_once_where_the_lowest_rate_fails() -> None:
    assert _search(20.0, 1000.0, 10.0) == (None, 1)


def test_a_lucky_trial_is_lowered_until_it_passes_again() -> None:
    search = MaxRateSearch(100.0, 1000.0)
    tried: list[float] = []
    while (rate := search.next_rate()) is not None:
        passed = rate <= 500.0 if rate not in tried else False
        passed = passed and not (len(tried) > 1 and tried[-1] in tried[:-1] and rate > 450.0)
        search.record_trial(rate, passed=passed)
        tried.append(rate)
    assert search.result is not None
    assert search.result <= 450.0


def test_says_none_where_nothing_passes_twice() -> None:
    search = MaxRateSearch(100.0, 1000.0)
    seen: set[float] = set()
    lowered = 0
    while (rate := search.next_rate()) is not None:
        confirming = rate in seen or lowered > 0
        lowered += confirming
        search.record_trial(rate, passed=rate <= 500.0 and not confirming)
        seen.add(rate)
    assert search.result is None
    assert lowered == STEPS_DOWN + 1
