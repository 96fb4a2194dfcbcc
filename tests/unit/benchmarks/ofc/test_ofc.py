"""Both sides have networks of one size, and the faster peer counts."""

from __future__ import annotations

import pytest

from benchmarks.ofc.main import promises, ratios


def _rates(*per_sec: float, cpu_us: float = 100.0) -> list[dict[str, float]]:
    return [{"per_sec": rate, "cpu_us": cpu_us} for rate in per_sec]


def test_the_faster_peer_of_each_repeat_counts() -> None:
    found = {
        "mlp": _rates(6000.0, 8000.0, 9000.0), "lstm": _rates(3000.0, 3000.0, 3000.0),
        "rows": _rates(2000.0, 2000.0, 2000.0),
        "same": _rates(1000.0, 1000.0, 3000.0, cpu_us=600.0), "same_threads": _rates(1.0, 1.0, 1.0),
        "sb3": _rates(500.0, 2000.0, 100.0, cpu_us=700.0),
    }  # fmt: skip
    assert ratios(found, "mlp") == [6.0, 4.0, 3.0]
    (promise,) = promises(found)
    assert (promise.found, promise.promised, promise.kept) == (4.0, 5.0, False)
    assert promise.by_cpu == pytest.approx(6.0)
    assert promises({"mlp": found["mlp"]}) == []
