"""A promise is a bound from one side; its sentence says which."""

from __future__ import annotations

from benchmarks.harness.promises import Promise


def test_a_lower_bound_and_an_upper_one() -> None:
    assert Promise("rate", 2.0, 1.45).kept
    assert not Promise("rate", 1.4, 1.45).kept
    assert Promise("us", 1.4, 1.45, at_least=False).kept
    assert not Promise("us", 2.0, 1.45, at_least=False).kept


def test_the_sentence_names_bound_and_processor_time() -> None:
    assert str(Promise("rate", 0.4, 0.5, by_cpu=0.61)) == (
        "FAIL  rate: 0.40 (promised at least 0.50; by processor time 0.61)"
    )
    assert str(Promise("us", 1234.5, 2000.0, at_least=False)) == "PASS  us: 1,234 (promised at most 2,000)"
