from __future__ import annotations

from benchmarks.cuda.main import Way, promises
from benchmarks.serving.stand import Found


def _found(rate: float, p50: float) -> Found:
    return Found(rate, 1.5, p50, 2 * p50, 32.0, {"forward": 2.0})


def _way(*, graphs: bool, many_rate: float, alone_us: float) -> Way:
    served = {
        (1, 64): [_found(100_000, p50) for p50 in (310.0, 250.0, 290.0)],
        (4, 16): [_found(100_000, p50) for p50 in (320.0, 330.0, 240.0)],
        (8, 512): [_found(many_rate, 5000.0)] * 3,
    }
    return Way("float32", graphs, {64: [50.0, 60.0, 70.0], 4096: [alone_us] * 3}, served, "23 graphs")


def test_latency_is_of_the_best_split_and_throughput_of_clients_or_the_engine_alone() -> None:
    slow_clients = _way(graphs=True, many_rate=300_000, alone_us=4096.0)
    p50, rate = promises([slow_clients, _way(graphs=False, many_rate=1.0, alone_us=1e9)], 64, 4096)
    assert (p50.found, p50.kept) == (290.0, True)
    assert "1 x 64" in p50.name
    assert (round(rate.found), rate.kept) == (1_000_000, True)
    assert "300000 of 4096 envs over clients, 1000000 of 4096 rows alone" in rate.name
    _, missed = promises([_way(graphs=True, many_rate=300_000, alone_us=10_000.0)], 64, 4096)
    assert not missed.kept
