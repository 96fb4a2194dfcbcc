"""The model of clients, servers and learner, where its rates are known exactly."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace

from benchmarks.scale import main
from benchmarks.scale.layouts import Fleet, fit_wake, simulate_fleet, simulate_stand
from benchmarks.scale.model import US, Device
from benchmarks.scale.times import HeldOut, Measured, ServiceTimes, Window, fit
from simul.common.runtime.installation import ROOT

TIMES = ServiceTimes(
    loop_message=100.0, loop_batch=80.0, loop_row=4.0, forward_batch=180.0, forward_row=6.0,
    io_message=40.0, io_row=1.0, proxy_message=80.0, proxy_row=1.0,
    client_message=200.0, client_row=3.0, client_io_message=40.0, client_io_row=1.0,
    record_us=2.0, record_io_us=3.0,
)  # fmt: skip
ROW_BYTES = 3_000
ONE_PIECE = 32  # rows of a message that travels in one piece


def _round_us(times: ServiceTimes, rows: int) -> float:
    """A message of one client alone: every station, one after another."""
    t = times
    per_message = t.client_message + t.client_io_message + t.proxy_message + t.io_message + t.loop_message
    per_row = t.client_row + t.client_io_row + t.proxy_row + t.io_row + t.loop_row + t.forward_row
    return per_message + t.loop_batch + t.forward_batch + rows * per_row


def test_one_client_alone_takes_the_sum_of_all_stations() -> None:
    found = simulate_stand(TIMES, 1, 1, ONE_PIECE, ROW_BYTES, seconds=0.5, spread=0.0)
    assert found.actions_per_sec == pytest.approx(ONE_PIECE * 1e6 / _round_us(TIMES, ONE_PIECE), rel=0.01)
    assert found.p50_us == pytest.approx(_round_us(TIMES, ONE_PIECE) - 200.0 - 3.0 * ONE_PIECE, rel=0.001)
    assert found.mean_batch == ONE_PIECE


def test_every_wake_of_the_circle_makes_it_longer() -> None:
    """Eight: client, its libzmq twice, proxy twice, the server's libzmq twice, the loop; each sleeps in between."""
    slow = simulate_stand(replace(TIMES, wake_us=50.0), 1, 1, ONE_PIECE, ROW_BYTES, seconds=0.5)
    assert ONE_PIECE * 1e6 / slow.actions_per_sec - _round_us(TIMES, ONE_PIECE) == pytest.approx(8 * 50.0, rel=0.05)


@pytest.mark.slow  # .ci/long runs it
def test_wake_us_is_found_again() -> None:
    true = replace(TIMES, wake_us=35.0)
    windows = []
    for rows in (8, 32, 512):
        rate = simulate_stand(true, 1, 1, rows, ROW_BYTES, seconds=20.0).actions_per_sec
        windows.append(_window(rows=rows, clients=1, messages=int(1e3 * rate / rows), seconds=1e3))
    assert fit_wake(TIMES, windows, ROW_BYTES).wake_us == pytest.approx(35.0, rel=0.02)
    assert fit_wake(TIMES, windows[2:], ROW_BYTES).wake_us == pytest.approx(35.0, rel=0.1), "few messages a second"


@pytest.mark.parametrize(
    ("fleet", "device", "rate", "bottleneck"),
    [
        ((1, 128, 50), None, 256e6 / (2 * 100 + 80 + 180 + 256 * 10), "loop"),  # full batches of 256 rows
        ((4, 64, 40), None, 40e6 / (415 + 1 + 40 / 64), "worker cores"),  # and the client's libzmq thread
        ((30, 8, 40), None, 40e6 / (415 + 1 + 40 / 8), "worker cores"),  # which the servers do not divide
        ((1, 128, 50), Device(1000 * US, 0.0), 256e6 / (2 * 100 + 80 + 256 * 4 + 1000), "loop"),  # which waits for it
    ],
)
def test_a_fleet_is_as_fast_as_its_busiest_station(fleet, device, rate, bottleneck) -> None:
    servers, rows, cores = fleet
    made = Fleet(servers=servers, rows=rows, row_bytes=ROW_BYTES, worker_cores=cores, sessions=256 * cores,
                 device=device)  # fmt: skip
    found = simulate_fleet(TIMES, made, 0.15, 0.3)
    assert found.actions_per_sec == pytest.approx(rate, rel=0.05)
    assert found.bottleneck == bottleneck


def test_a_full_learner_and_a_thin_link_hold_the_servers_back() -> None:
    fleet = Fleet(servers=4, rows=64, row_bytes=ROW_BYTES, worker_cores=40, sessions=10_240, learner_ranks=2)
    found = simulate_fleet(TIMES, fleet, 0.5, 2.0)
    assert found.actions_per_sec == pytest.approx(2e6 / 107, rel=0.05)
    assert found.bottleneck == "learner"
    thin = Fleet(servers=1, rows=64, row_bytes=ROW_BYTES, worker_cores=20, sessions=5_120, link_gbit=0.24)
    assert simulate_fleet(TIMES, thin, 0.2, 0.4).actions_per_sec == pytest.approx(0.24e9 / 8 / ROW_BYTES, rel=0.05)


def _window(*, rows: int, clients: int, messages: int, seconds: float = 1.0, recorded: bool = False) -> Window:
    """What a server with TIMES would have shown: batches hold the messages of all clients."""
    t, decisions, batches = TIMES, messages * rows, messages // clients
    forward = t.forward_batch * batches + t.forward_row * decisions
    record, record_io = (t.record_us, t.record_io_us) if recorded else (0.0, 0.0)
    return Window(
        route="socket", clients=clients, rows=rows, recorded=recorded, seconds=seconds,
        messages=messages, decisions=decisions, batches=batches, forward_us=forward,
        loop_us=forward + t.loop_message * messages + t.loop_batch * batches + (t.loop_row + record) * decisions,
        io_us=t.io_message * messages + (t.io_row + record_io) * decisions,
        proxy_us=t.proxy_message * messages + t.proxy_row * decisions,
        client_seconds=seconds, client_messages=messages, client_decisions=decisions,
        client_us=t.client_message * messages + t.client_row * decisions,
        client_io_us=t.client_io_message * messages + t.client_io_row * decisions, p50_us=0.0,
    )  # fmt: skip


def test_the_fit_finds_the_service_times_again() -> None:
    windows = [
        _window(rows=rows, clients=clients, messages=4_000 // rows * clients)
        for rows in (8, 32, 128)
        for clients in (1, 4)
    ]
    windows.append(_window(rows=128, clients=1, messages=40, recorded=True))
    times, error = fit(windows)
    for name in ServiceTimes.__struct_fields__:
        assert getattr(times, name) == pytest.approx(getattr(TIMES, name), rel=1e-6), name
    assert max(error.values()) < 1e-9


def test_the_model_is_held_against_each_cell_that_was_held_out() -> None:
    measured = msgspec.json.decode((ROOT / "benchmarks/scale/measured.json").read_bytes(), type=Measured)
    times = measured.routes["socket"]
    rates = [simulate_stand(times, servers, 1, 32, measured.row_bytes).actions_per_sec for servers in (1, 2)]
    cells = [
        HeldOut("socket", 1, 1, 32, rates[0] * 1.1, 32.0, 1e3), HeldOut("socket", 2, 1, 32, rates[1] * 0.8, 32.0, 1e3),
    ]  # fmt: skip
    promises = main.validate(msgspec.structs.replace(measured, held_out=cells))
    assert [promise.kept for promise in promises] == [True, False]
    assert [round(promise.found, 2) for promise in promises] == [0.09, 0.25]
