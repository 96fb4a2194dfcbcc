"""The plots of a load test: what is written on them, and how cells that are not stable look."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from simul.common.errors import ConfigError
from simul.launch.loadtest.results import Cell
from tests.support.late import late

if TYPE_CHECKING:
    from matplotlib.figure import Figure

plots = late("simul.launch.loadtest.plots")

CONDITIONS: dict[str, Any] = {
    "cpu": "Some Processor 3000", "device": "cpu", "policy": "mlp_lstm {'hidden': 384}", "parameters": 1090123,
    "observation": "float32[2160]", "commit": "16f4ed1abcde", "time": "2026-11-22T14:00:00Z",
    "server_cores": [0], "client_cores": [1, 2, 3],
}  # fmt: skip
NAMES = ("batch", "stages", "batch_histogram", "rate")


def cell(envs: int, mode: str = "closed", **more: Any) -> Cell:
    latency = {"p50": 900.0 * envs, "p90": 1200.0 * envs, "p99": 2000.0 * envs}
    values: dict[str, Any] = {
        "clients": 2, "envs_per_client": envs, "precision": "bfloat16", "actions_per_sec": 4000.0 * envs,
        "latency_us": latency, "send_lag_us": {}, "samples": 100, "windows": 3, "stable": True, "errors": {},
        "client_busy": 0.5, "mean_batch": 2.0 * envs, "batch_histogram": {"2": 3, str(2 * envs): 90},
        "forward_actions_per_sec": 9000.0 * envs, "stages_us": {"receive": 1.0, "forward": 7.0},
        "spread": {"actions_per_sec": (3900.0 * envs, 4300.0 * envs), "p50": (800.0 * envs, 950.0 * envs)},
    }  # fmt: skip
    return Cell(mode=mode, **(values | more))  # type: ignore[arg-type]


CELLS = [cell(1), cell(8), cell(64, stable=False), cell(8, "open", offered_per_sec=30_000.0)]


def texts(figure: Figure) -> list[str]:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.text import Text

    FigureCanvasAgg(figure).draw()
    return [text.get_text() for text in figure.findobj(Text) if text.get_text()]


@functools.cache
def drawn() -> dict[str, Figure]:
    return dict(plots.draw_plots(CELLS, CONDITIONS))


@pytest.mark.parametrize("name", NAMES)
def test_every_plot_names_hardware_network_precision_commit_and_date(name: str) -> None:
    (words,) = (text for text in texts(drawn()[name]) if "commit" in text)
    for wanted in (
        "Some Processor 3000", "device cpu", "server on core 0, clients on cores 1-3", "mlp_lstm", "1,090,123 param",
        "float32[2160]", "bfloat16", "commit 16f4ed1abcde", "2026-11-22",
    ):  # fmt: skip
        assert wanted in words


def test_what_is_not_stable_is_hollow_and_windows_have_bars() -> None:
    figure = drawn()["batch"]
    throughput = figure.axes[1]
    faces = {line.get_markerfacecolor(): len(line.get_xdata()) for line in throughput.lines if line.get_marker() == "o"}
    assert faces["white"] == 1
    assert len(throughput.containers) == 1
    ends = throughput.containers[0][2][0].get_segments()
    assert [end[:, 1].tolist() for end in ends] == [[3900.0 * n, 4300.0 * n] for n in (1, 8, 64)]
    words = " ".join(texts(figure))
    assert plots.HOLLOW in words
    assert plots.BARS in words
    assert "2 x 64 ~" in texts(drawn()["stages"])


def test_they_are_written_twice_as_large_as_shown_and_as_svg_with_their_text(tmp_path: Path) -> None:
    names = plots.write_plots(tmp_path, CELLS, CONDITIONS)
    assert names == [f"{name}.{suffix}" for name in NAMES for suffix in ("png", "svg")]
    png = (tmp_path / "batch.png").read_bytes()
    assert int.from_bytes(png[16:20], "big") == 2000
    assert "Some Processor 3000" in (tmp_path / "batch.svg").read_text()
    with pytest.raises(ConfigError, match=r"batch\.png cannot be written"):
        plots.write_plots(tmp_path / "missing", CELLS, CONDITIONS)


def test_nothing_measured_draws_nothing(tmp_path: Path) -> None:
    assert plots.write_plots(tmp_path, [cell(1, latency_us={})], CONDITIONS) == []
