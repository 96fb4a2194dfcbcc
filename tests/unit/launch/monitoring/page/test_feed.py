"""What a browser is sent: news at once, figures rarely, and nothing twice."""

from __future__ import annotations

import msgspec

from simul.launch.monitoring.curves.figures import CURVES
from simul.launch.monitoring.page.feed import Feed
from simul.launch.monitoring.page.runs.curve_tail import MOST_ROWS
from simul.launch.monitoring.page.runs.watched_run import WatchedRun
from tests.support.recorded_run import snapshot

DAY_SEC = 86_400


def write(root, **changes) -> None:
    (root / "status.json").write_bytes(msgspec.json.encode(snapshot(**changes)))


def test_news_at_once_and_figures_when_they_are_due(tmp_path):
    write(tmp_path)
    run = WatchedRun(tmp_path, "run")
    run.poll(0.0)
    feed = Feed([run], 0.0)
    (first,) = feed.take(0.0)
    assert {"run", "name", "phase", "states", "events", "figures", "curves"} <= first.keys()
    assert feed.take(0.1) == []
    write(tmp_path, decisions_per_sec=1.0, events=[*snapshot().events, "the inference server died"])
    run.poll(0.2)
    assert feed.take(0.2) == [{"run": 0, "events": ["the inference server died"]}]
    (later,) = feed.take(1.0)
    assert later.keys() == {"run", "figures"}
    assert Feed([run], 1.0).take(1.0)[0]["events"] == run.events, "another browser gets everything"


def test_curves_are_sent_once_and_anew_where_they_begin_anew(tmp_path):
    write(tmp_path)
    curves = tmp_path / "curves.csv"
    curves.write_text("decisions,training_sec,time,learner/entropy\n1,1,1,1\n")
    run = WatchedRun(tmp_path, "run")
    feed = Feed([run], 0.0)
    run.poll(0.0)
    sent = feed.take(0.0)[0]["curves"]
    assert sent == {
        "charts": [{"title": "entropy", "unit": "", "lines": [{"label": "entropy", "band": False}]}],
        "rows": [[1.0, 1.0, 1.0]], "tail": None,
    }  # fmt: skip
    with curves.open("a") as file:
        file.write("2,2,2,2\n")
    run.poll(1.0)
    assert feed.take(1.0) == [{"run": 0, "curves": {"rows": [[2.0, 2.0, 2.0]], "tail": None}}]
    with curves.open("a") as file:
        file.writelines(f"{n},{n},{n},{n}\n" for n in range(3, 3 * MOST_ROWS + 2))
    run.poll(2.0)
    sent = feed.take(2.0)[0]["curves"]
    assert "charts" in sent
    assert len(sent["rows"]) < 2 * MOST_ROWS
    assert sent["tail"] is not None


def test_a_day_is_a_few_megabytes(tmp_path):
    """Every figure changes every second, and a row of the curves comes every ten: a browser gets less than 20 MB."""
    write(tmp_path)
    run = WatchedRun(tmp_path, "run")
    run.poll(0.0)
    feed, size, figures = Feed([run], 0.0), 0, run.gradual
    columns = ["decisions", "training_sec", "time", *(name for name in CURVES if "<" not in name)]
    with (tmp_path / "curves.csv").open("w", buffering=1) as file:
        print(*columns, sep=",", file=file)
        for second in range(DAY_SEC):
            run.gradual = {name: [second, value] for name, value in figures.items()}
            if second % 10 == 0:
                print(*([second + 1] * len(columns)), sep=",", file=file)
                run.curves.poll()
            size += sum(len(msgspec.json.encode(message)) for message in feed.take(float(second)))
    assert len(run.curves.rows) >= MOST_ROWS
    assert 1e6 < size < 20e6
