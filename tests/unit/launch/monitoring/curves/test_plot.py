"""Learning curves of runs: which become one line, what a mean and its band are, and sentences where there is none."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from simul.common.config.schema import Config, LearnerConfig
from simul.common.errors import ConfigError
from simul.common.role.run_directory import RunDir
from simul.launch import cli
from simul.launch.monitoring.curves.curves_csv import CsvWriter
from simul.launch.monitoring.curves.figures import CurveReport
from tests.support.late import late

plots = late("simul.launch.monitoring.curves.plot")
RETURN = "episodes/return_mean"


def make_run(root, name, config, values, begin=0):
    """A run whose return was `values` at 0, 100, 200, ... decisions after `begin`."""
    scores = [{"evaluation/score": 1.0} if number == 1 else {} for number in range(len(values))]
    return record(root / name, config, [{RETURN: float(value)} | score for value, score in zip(values, scores)], begin)


def record(folder, config, reports, begin=0):
    folder.mkdir(parents=True)
    RunDir(folder).write_config(config)
    writer = CsvWriter(folder)
    for number, figures in enumerate(reports):
        writer.write(CurveReport(begin + 100 * number, 2.0 * number, 1e9, figures), 0.0)
    writer.close()
    return folder


@pytest.fixture
def runs(tmp_path):
    other = LearnerConfig(learning_rate=1e-2)
    return [
        make_run(tmp_path, "base-1", Config(seed=1, run_dir="a"), [0, 2, 4]),
        make_run(tmp_path, "base-2", Config(seed=2, run_dir="b", metrics=("csv",)), [2, 6, 10, 14]),
        make_run(tmp_path, "fast", Config(seed=1, learner=other), [5, 5, 5]),
    ]


def test_runs_that_differ_in_their_seed_alone_are_one_line_with_a_band(runs):
    lines = plots.lines_of([plots.read_curves(folder) for folder in runs], RETURN, "decisions", "minmax")
    assert [(line.label, line.runs) for line in lines] == [("base", 2), ("fast", 1)]
    both = lines[0]
    assert (both.x[0], both.x[-1]) == (0.0, 200.0), "as far as both are known"
    at = np.searchsorted(both.x, 100.0)
    assert both.mean[at] == pytest.approx(4.0, abs=0.1)
    assert (both.low[at], both.high[at]) == (pytest.approx(2.0, abs=0.1), pytest.approx(6.0, abs=0.1))
    (same, _) = plots.lines_of([plots.read_curves(folder) for folder in runs], RETURN, "time", "sem")
    assert same.x[-1] == 4.0
    assert same.high[0] - same.mean[0] == pytest.approx(np.std([0, 2], ddof=1) / np.sqrt(2))


@pytest.mark.parametrize(("name", "begin"), [("curves.png", b"\x89PNG"), ("curves.svg", b"<?xml")])
def test_a_picture_of_the_usual_figures(runs, tmp_path, name, begin, capsys):
    code = cli.main(["plot", *map(str, runs), "--out", str(tmp_path / name)])
    assert code == 0
    assert (tmp_path / name).read_bytes().startswith(begin)
    assert capsys.readouterr().out.endswith("evaluation/score, episodes/return_mean\n")


def test_what_cannot_be_drawn_is_said(runs, tmp_path):
    out = tmp_path / "curves.svg"
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigError, match=r"empty has no curves: expected .*curves.csv, which a run writes"):
        plots.plot([*runs, tmp_path / "empty"], [], out)
    (tmp_path / "empty" / "learner.csv").write_text("kl\n1\n")
    with pytest.raises(ConfigError, match="older version"):
        plots.plot([tmp_path / "empty"], [], out)
    with pytest.raises(ConfigError, match=r"has the figure 'episodes/return'; did you mean episodes/return_mean"):
        plots.plot(runs, ["episodes/return"], out)
    with pytest.raises(ConfigError, match=r"expected a name that ends in .png or .svg"):
        plots.plot(runs, [], tmp_path / "curves.gif")
    with pytest.raises(ConfigError, match="cannot be written: No such file"):
        plots.plot(runs, [], tmp_path / "no" / "curves.svg")
    assert not out.exists()


def labels(folders):
    curves = [plots.read_curves(each) for each in folders]
    return [line.label for line in plots.lines_of(curves, RETURN, "decisions", "minmax")]


def test_a_link_that_leads_to_itself_has_no_curves(tmp_path):
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(ConfigError, match="loop has no curves"):
        plots.plot([tmp_path / "loop"], [], tmp_path / "curves.png")


def test_groups_and_runs_in_folders_of_the_same_names_have_labels_of_their_own(tmp_path):
    fast = LearnerConfig(learning_rate=1e-2)
    grid = [
        make_run(tmp_path, f"{group}/seed{seed}", Config(seed=seed, learner=learner), [1, 2])
        for group, learner in (("lrA", LearnerConfig()), ("lrB", fast))
        for seed in (1, 2)
    ]
    assert labels(grid) == ["lrA/seed", "lrB/seed"]
    assert labels([grid[0], grid[2]]) == ["lrA/seed1", "lrB/seed1"]
    other_way = [
        make_run(tmp_path, f"seed{seed}/{name}", Config(seed=seed, learner=learner), [1, 2])
        for name, learner in (("slow", LearnerConfig()), ("fast", fast))
        for seed in (1, 2)
    ]
    assert labels(other_way) == ["seed1/slow, seed2/slow", "seed1/fast, seed2/fast"]
    numbered = [make_run(tmp_path, f"lr1e-4/{seed}", Config(seed=seed), [1, 2]) for seed in (10, 11)]
    assert labels([*numbered, grid[2]]) == ["lr1e-4", "lrB/seed1"]


def test_seeds_without_a_common_part_are_lines_of_their_own(tmp_path):
    folders = [make_run(tmp_path, f"run-{seed}", Config(seed=seed), [1, 2], begin=1000 * seed) for seed in (1, 2)]
    assert labels(folders) == ["run-1", "run-2"]


def test_a_run_that_is_named_twice_counts_once_and_one_without_the_figure_is_named(runs, tmp_path, capsys):
    without = make_run(tmp_path, "short", Config(seed=9), [1])
    out = tmp_path / "curves.svg"
    arguments = [*map(str, [*runs, runs[0], without]), "--figure", "evaluation/score", "--out", str(out)]
    assert cli.main(["plot", *arguments]) == 0
    assert capsys.readouterr().err == f"simul: evaluation/score: left out {without}, without that figure.\n"
    assert "mean of 2 runs" in out.read_text()


def test_a_row_that_is_being_written_is_not_drawn(runs):
    with (runs[0] / "curves.csv").open("a") as file:
        file.write("300,6,1000000000,1")
    assert plots.read_curves(runs[0]).columns["decisions"].tolist() == [0.0, 100.0, 200.0]


@pytest.mark.parametrize("content", [b"of: another version\n", b"seed: \xff\n"])
def test_a_run_whose_configuration_cannot_be_read_is_a_line_of_its_own(runs, content):
    (runs[0] / "config.yaml").write_bytes(content)
    assert labels(runs) == ["base-1", "base-2", "fast"]


def win_rates(rate, **others):
    """Figures of a game of several seats, with an interval of 0.1 to both sides."""
    rates = {"random": rate, "simple_heuristics": rate / 2, "self_play": 0.5, **others}
    sides = (("win_rate", 0.0), ("win_rate_low", -0.1), ("win_rate_high", 0.1))
    return {f"{family}/{name}": value + side for name, value in rates.items() for family, side in sides}


def test_the_first_panel_has_the_win_rates_against_every_opponent_with_their_recorded_intervals(tmp_path):
    figures = {RETURN: 0.0, "learner/entropy": 1.0, "evaluation/score": 0.5, "evaluation/win_rate/random": 0.5}
    folder = record(tmp_path / "two-seats", Config(), [figures | win_rates(rate, past_30=0.5) for rate in (0.2, 0.6)])
    names = plots.plot([folder], [], tmp_path / "curves.svg")
    assert names == ["win_rate", "evaluation/win_rate", "learner/entropy", RETURN], "self-play holds the return at 0"
    lines = plots.panel_lines([plots.read_curves(folder)], "win_rate", "decisions", "minmax")
    assert [line.label for line in lines] == ["random", "simple_heuristics"]
    assert (lines[0].low.tolist(), lines[0].mean.tolist()) == ([0.1, 0.5], [0.2, 0.6])
    assert lines[1].high.tolist() == [0.2, 0.4]


@pytest.mark.parametrize("content", ["some,other,table\n1,2,3\n", "x" * 140_000])
def test_a_curves_file_that_holds_something_else_is_named_and_not_taken_for_missing(tmp_path, content):
    (tmp_path / "curves.csv").write_text(content)
    with pytest.raises(ConfigError, match=r"curves\.csv is no table of curves: expected a file whose first line"):
        plots.plot([tmp_path], [], tmp_path / "out.png")


def test_a_name_of_others_is_printable_in_the_picture(runs, tmp_path):
    hostile = tmp_path / "a\x1b\x07b"
    shutil.copytree(runs[0], hostile)
    plots.plot([runs[0], hostile], [], tmp_path / "out.svg")  # a glyph that is missing would be a warning, and fail
    assert "\x1b" not in (tmp_path / "out.svg").read_text()
