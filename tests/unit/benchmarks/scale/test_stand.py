"""Real servers under the clients that service times are measured with."""

from __future__ import annotations

import pytest

from benchmarks.scale.stand import measure, measure_pings, stands
from benchmarks.scale.times import fit


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_threads_of_a_server_behind_its_proxy_are_measured_apart() -> None:
    with stands("proxy, CURVE") as servers:
        windows = [window for rows in (8, 64) for window in measure(servers, 1, rows, 3.0)]
        pings = measure_pings(servers[0], 3.0, 1)
    for window in windows:
        assert window.decisions > 0
        assert 0 < window.forward_us < window.loop_us
        assert min(window.io_us, window.proxy_us, window.client_us, window.client_io_us) > 0
        assert window.loop_us + window.io_us + window.proxy_us < 1.1e6 * window.seconds  # of one core
    times, _ = fit(windows)
    assert times.proxy_message + times.proxy_row > 0
    assert sum(pings.values()) > 0


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_two_servers_are_loaded_at_once_and_local_clients_pass_no_proxy() -> None:
    with stands("memory", 2) as servers:
        windows = measure(servers, 1, 32, 3.0)
    assert len(windows) == 2
    assert all(window.decisions > 0 and window.batches > 0 for window in windows)
