"""The arithmetic of `benchmarks.search.study`."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.search.study_results import (
    Choices,
    calibration_table,
    choices_table,
    explained_variance,
    interval,
    mean_of,
    rank_line,
    variance_table,
)

GAMES = np.array([0, 0, 1, 1])
OUTCOME = np.array([1.0, -1.0, -1.0, 1.0])


def cells(table: str, row: str) -> list[str]:
    """Of the row that begins so."""
    (line,) = (line for line in table.splitlines() if line.startswith(f"| {row} |"))
    return [cell.strip() for cell in line.strip("|").split("|")][1:]


def test_explained_variance_is_of_the_residual_and_takes_weights():
    ones = np.ones(4)
    assert explained_variance(OUTCOME, OUTCOME)(ones) == 1
    assert explained_variance(0 * OUTCOME, OUTCOME)(ones) == 0
    assert explained_variance(OUTCOME / 2, OUTCOME)(ones) == pytest.approx(0.75)
    half_right = np.array([1.0, -1.0, 0.0, 0.0])
    assert explained_variance(half_right, OUTCOME)(np.array([1.0, 1.0, 0.0, 0.0])) == 1
    assert np.isnan(explained_variance(OUTCOME, np.ones(4))(ones))


def test_an_interval_resamples_games_not_positions():
    low, high = interval(GAMES, mean_of(np.array([1.0, 1.0, 0.0, 0.0])))
    assert (low, high) == (0.0, 1.0)  # of two games both may be the same one
    assert interval(GAMES, mean_of(OUTCOME)) == (0.0, 0.0)  # each game has the mean 0


def test_values_fall_into_ten_bins_and_their_ends_into_the_outer_ones():
    table = calibration_table(GAMES, np.array([-1.0, -0.81, 0.81, 1.0]), OUTCOME)
    assert cells(table, "-1.0 to -0.8")[:2] == ["2", "-0.91"]
    assert cells(table, "0.8 to 1.0")[1:3] == ["0.91", "0.00"]
    assert cells(table, "0.8 to 1.0")[3].startswith("-0.905 [")
    assert cells(table, "0.0 to 0.2") == ["0", "-", "-", "-"]
    assert cells(table, "all")[3].startswith("0.000 [")


def test_variance_is_explained_by_four_plies_and_in_all():
    table = variance_table(GAMES, np.array([4, 7, 8, 9]), {"network": OUTCOME, "search": 0 * OUTCOME}, OUTCOME)
    assert cells(table, "4 to 7") == ["2", "1.000 [1.000, 1.000]", "0.000 [0.000, 0.000]"]
    assert cells(table, "8 to 11")[0] == "2"
    assert cells(table, "all")[0] == "4"


def test_choices_are_counted_against_policy_and_truth():
    rows = [
        Choices(0, 5, {"policy": 1, "32": 2, "truth": 2}, {1: 0.1, 2: 0.5}, rank=3, legal=10),
        Choices(1, 25, {"policy": 1, "32": 1, "truth": 3}, {1: 0.2, 3: 0.0}, rank=20, legal=30),
    ]
    table = choices_table(rows, [(4, 11), (12, 19)])
    assert cells(table, "policy")[:2] == ["0.000 [0.000, 0.658]", "-"]
    assert [cell.split()[0] for cell in cells(table, "32")] == ["0.500", "1.000", "0.500", "-0.100", "0.000", "-"]
    assert [cell.split()[0] for cell in cells(table, "truth")[:3]] == ["1.000", "0.500", "1.000"]
    assert [cell.split()[0] for cell in cells(table, "policy")[3:5]] == ["0.100", "0.400"]
    line = rank_line(rows, 16)
    assert "first 16: 0.500 [" in line
    assert "number 12 of 20 actions" in line
