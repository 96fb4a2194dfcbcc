"""Words over invented figures."""

from __future__ import annotations

from typing import Any

from simul.launch.loadtest.results import Cell, MaxRate, best_setting, crossover, recommendation


def _cell(clients: int, envs: int, rate: float, p99_ms: float = 1.0, **more: Any) -> Cell:
    defaults: dict[str, Any] = {
        "mode": "closed", "precision": "float32", "latency_us": {"p50": 100.0, "p90": 200.0, "p99": 1000 * p99_ms},
        "send_lag_us": {}, "samples": 1000, "windows": 3, "stable": True, "errors": {}, "client_busy": 0.5,
    }  # fmt: skip
    return Cell(clients=clients, envs_per_client=envs, actions_per_sec=rate, **(defaults | more))


def test_the_fewest_sessions_that_reach_nine_tenths() -> None:
    cells = [_cell(4, 8, 30_000.0), _cell(4, 32, 41_400.0, 1.8), _cell(2, 64, 41_000.0, 2.5), _cell(4, 128, 45_000.0)]
    assert best_setting(cells) is cells[1]
    assert recommendation(cells, []) == [
        "4 clients with 32 envs each reach 92% of the maximum (41,400 of 45,000 actions/s) at p99 1.8 ms (float32)."
    ]


def test_each_precision_gets_its_sentence_and_the_forward_is_named() -> None:
    cells = [_cell(1, 1, 10.0, forward_actions_per_sec=20.0), _cell(1, 1, 30.0, precision="bfloat16")]
    first, second = recommendation(cells, [])
    assert first == (
        "1 client with 1 env reaches 100% of the maximum (10 of 10 actions/s) at p99 1.0 ms; "
        "that is 50% of the bare forward (float32)."
    )
    assert "(30 of 30 actions/s)" in second


def test_what_small_batches_cost_is_said_where_they_cost_something() -> None:
    batches: dict[str, Any] = {"forward_actions_per_sec": 20.0, "mean_batch": 8.2, "full_batch": 16}
    (words,) = recommendation([_cell(2, 8, 10.0, **batches, lost_to_small_batches=0.13)], [])
    assert "batches of 8 rows, where 16 could be in one, cost 13% of the forward (float32)." in words
    (words,) = recommendation([_cell(2, 8, 10.0, **batches, lost_to_small_batches=0.0)], [])
    assert "cost" not in words


def test_crossover_is_where_the_server_stays_ahead() -> None:
    closed = [_cell(2, envs, rate) for envs, rate in ((1, 5.0), (8, 40.0), (32, 90.0), (128, 200.0))]
    local = [_cell(2, envs, rate, mode="local") for envs, rate in ((1, 4.0), (8, 50.0), (32, 80.0), (128, 150.0))]
    assert crossover(closed, local, clients=2) == 32
    assert crossover(local, closed, clients=2) is None
    assert crossover(closed, local, clients=4) is None
    assert "from 32 envs per client on" in recommendation(closed + local, [])[1]


def test_a_missed_promise_and_every_doubt_are_said() -> None:
    cells = [
        _cell(1, 8, 900.0, stable=False),
        _cell(1, 16, 2000.0, errors={"ERR_BUSY": 7}),
        _cell(1, 8, 900.0, mode="open", offered_per_sec=1000.0, send_lag_us={"p99": 4000.0}, client_busy=0.97),
    ]
    setting, *words = recommendation(cells, [MaxRate(5.0, "float32", None, 1), MaxRate(5.0, "float32", 800.0, 9)])
    assert setting.startswith("1 client with 8 envs")
    assert words[0] == "No rate keeps p99 within 5 ms (float32)."
    assert words[1].startswith("Up to 800 actions/s")
    assert words[2].startswith("1 of 3 cells did not become stable")
    assert words[3].startswith("From 1,000 actions/s offered on, rows waited in the client")
    assert words[4].endswith("not recommended: ERR_BUSY 7.")


def test_neighbours_are_named_where_they_disturb() -> None:
    cells = [_cell(1, 8, 900.0)]
    assert "Other processes took 40% of the processor" in recommendation(cells, [], others_busy=0.4)[1]
    assert len(recommendation(cells, [], others_busy=0.04)) == 1


def test_nothing_measured_in_closed_loop_recommends_nothing() -> None:
    assert recommendation([_cell(1, 1, 10.0, mode="open", offered_per_sec=10.0)], []) == []


def test_a_rate_is_kept_only_if_it_was_served_in_time_and_without_errors() -> None:
    kept = _cell(1, 8, 990.0, 4.0, mode="open", offered_per_sec=1000.0)
    assert kept.keeps_p99(5.0)
    assert not kept.keeps_p99(3.0)
    assert not _cell(1, 8, 900.0, 4.0, mode="open", offered_per_sec=1000.0).keeps_p99(5.0)
    assert not _cell(1, 8, 990.0, 4.0, mode="open", offered_per_sec=1000.0, errors={"ERR_BUSY": 1}).keeps_p99(5.0)
