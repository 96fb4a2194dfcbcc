"""Which curves the page draws."""

from __future__ import annotations

from simul.launch.monitoring.curves.figures import CURVES
from simul.launch.monitoring.page.runs.charts import CHARTS, MOST_LINES, charts_of


def test_every_chart_is_of_curves_that_there_are():
    assert sorted({curve for chart in CHARTS for curve in chart.curves} - set(CURVES)) == []
    assert all(len(chart.labels) in (0, len(chart.curves)) for chart in CHARTS)


def test_a_family_has_a_line_for_each_name_with_its_interval():
    columns = [
        "decisions",
        "win_rate/a",
        "win_rate_low/a",
        "win_rate_high/a",
        "win_rate/b",
        "win_rate/self_play",
        "process/x/memory_mb",
    ]
    rates, memory = charts_of(columns)
    assert [(line.label, line.low) for line in rates.lines] == [("a", "win_rate_low/a"), ("b", "")]
    assert rates.columns() == ["win_rate/a", "win_rate_low/a", "win_rate_high/a", "win_rate/b"]
    assert [line.label for line in memory.lines] == ["x"]
    assert len(charts_of([f"game/{n}" for n in range(1000)])[0].lines) == MOST_LINES
