"""The tables of the fleet, and the command around them."""

from __future__ import annotations

import sys

import msgspec
import pytest

from benchmarks.scale import main, scenarios
from benchmarks.scale.layouts import simulate_stand
from benchmarks.scale.times import HeldOut, Measured
from simul.common.runtime.installation import ROOT


@pytest.fixture(scope="module")
def measured() -> Measured:
    return msgspec.json.decode((ROOT / "benchmarks/scale/measured.json").read_bytes(), type=Measured)


def test_the_arithmetic_multiplies_what_was_measured(measured: Measured) -> None:
    table = scenarios.arithmetic(measured, scenarios.FAR, scenarios.EARLIER_US)
    rows = dict(line.strip("| ").split(" | ") for line in table.splitlines()[2:])
    assert rows["decisions of the worker cores"] == "2,409,639/s"  # 10^9 / 415
    assert rows["STEP rows"] == "56 Gbit/s"
    assert rows["learner cores"] == "258"
    assert rows["unrolls into the learner"] == "59 Gbit/s"  # 97,558 bytes for 32 decisions
    assert rows["decisions whose unrolls fill 25 Gbit/s"] == "1,025,031/s"
    assert rows["versions a second with learner.batch_steps=4096"] == "588"
    assert rows["a connection for each of 10^6 people, one PING a second"] == "47.8 cores"


def test_costs_of_a_decision_are_those_measured_or_the_earlier_ones(measured: Measured) -> None:
    without = msgspec.structs.replace(measured, training_us={})
    assert scenarios.training_us(without) == scenarios.EARLIER_US
    by_process = {"simulator hosts": 300.0, "worker-0": 10.0, "worker-1": 12.0, "learner": 90.0, "inference": 50.0}
    found = msgspec.structs.replace(measured, training_us=by_process)
    assert scenarios.training_us(found) == {"hosts": 300.0, "workers": 22.0, "learner": 90.0}


def test_a_small_fleet_is_shown_with_its_busiest_station(measured: Measured, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scenarios, "WORKER_CORES", 10)
    table = scenarios._capacity(measured, scenarios.FAR, scenarios.EARLIER_US, servers=(2,), rows=(128,))
    assert table.splitlines()[2].startswith("| 2 | 2")  # 24,000 of 24,096
    assert "worker cores" in table


def test_service_times_are_shown_by_route(measured: Measured) -> None:
    table = main.times_table(measured)
    assert "| us | memory | socket | socket, CURVE | proxy | proxy, CURVE |" in table
    assert "| proxy_message | 0.0 | 0.0 | 0.1 | 105.4 | 124.5 |" in table


def test_the_model_is_held_against_each_cell_that_was_held_out(measured: Measured, capsys) -> None:
    times = measured.routes["socket"]
    rates = [simulate_stand(times, servers, 1, 32, measured.row_bytes).actions_per_sec for servers in (1, 2)]
    cells = [
        HeldOut("socket", 1, 1, 32, rates[0] * 1.1, 32.0, 1e3), HeldOut("socket", 2, 1, 32, rates[1] * 0.8, 32.0, 1e3),
    ]  # fmt: skip
    promises = main.validate(msgspec.structs.replace(measured, held_out=cells))
    assert [promise.kept for promise in promises] == [True, False]
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(" | ")[3] for line in lines if line.startswith("| socket")] == ["0.91", "1.25"]


def test_a_file_without_rates_to_compare_the_model_with_is_no_validation(
    measured: Measured, tmp_path, monkeypatch, capsys
) -> None:
    path = tmp_path / "times.json"
    path.write_bytes(msgspec.json.encode(msgspec.structs.replace(measured, held_out=[])))
    monkeypatch.setattr(sys, "argv", ["bench", "--step", "validate", "--file", str(path)])
    assert main.main() == 2
    assert "holds no rates to compare the model with" in capsys.readouterr().err


@pytest.mark.parametrize("content", [None, b"", b"# A text\n", b"\xff", b"{}", b"directory"])
def test_without_service_times_the_command_says_what_is_missing(content, tmp_path, monkeypatch, capsys) -> None:
    path = tmp_path / "times.json"
    if content == b"directory":
        path.mkdir()
    elif content is not None:
        path.write_bytes(content)
    monkeypatch.setattr(sys, "argv", ["bench", "--step", "simulate", "--file", str(path)])
    assert main.main() == 2
    said = capsys.readouterr().err
    assert str(path) in said
    assert "Expected service times" in said


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--servers", "0"), "argument --servers: expected 1 to 1,000, as many as worker cores, got 0"),
        (("--servers", "-3"), "argument --servers: expected 1 to 1,000"),
        (("--servers", "8", "--servers", "1000000000"), "argument --servers: expected 1 to 1,000"),
        (("--rounds", "0"), "argument --rounds: expected at least 1, got 0"),
        (("--seconds", "0"), "argument --seconds: expected a number above 0"),
        (("--seconds", "inf"), "argument --seconds: expected a number above 0"),
        (("--training", "-1"), "argument --training: expected 0 or a number above it"),
    ],
)
def test_settings_that_mean_nothing_are_refused(arguments, says, monkeypatch, capsys) -> None:
    monkeypatch.setattr(sys, "argv", ["bench", "--step", "simulate", *arguments])
    with pytest.raises(SystemExit, match="2"):
        main.main()
    assert says in capsys.readouterr().err
