"""The nearest of some names."""

from __future__ import annotations

import pytest

from simul.common.errors import did_you_mean, nearest_name


@pytest.mark.parametrize(
    ("value", "known", "nearest"),
    [
        ("LSTM", ["none", "lstm", "gru"], "lstm"),
        ("cartpole-v1", ["CartPole-v0", "CartPole-v1"], "CartPole-v1"),
        ("lgo", ["low", "high", "log"], "log"),
        ("nothing", ["low", "high"], ""),
        (3, ["low", "high"], ""),
    ],
)
def test_the_nearest_name_is_found_in_any_case_and_one_of_the_same_letters_first(value, known, nearest):
    assert nearest_name(value, known) == nearest
    assert did_you_mean(value, known) == (f"; did you mean {nearest}?" if nearest else "")
