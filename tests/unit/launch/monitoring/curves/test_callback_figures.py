"""What a `metrics_callback` returns: what is taken, and one sentence for each kind of thing that is not."""

from __future__ import annotations

import numpy as np
import pytest

from simul.launch.monitoring.curves.callback_figures import MOST_NAMES, CallbackFigures


def test_numbers_are_taken_once_and_the_newest_of_each_name_stays():
    figures = CallbackFigures()
    assert figures.add(None) == figures.add({"mine/x": 1, "mine/y": np.float32(0.5)}) == []
    assert figures.add({"mine/x": 2.0}) == []
    assert figures.take() == {"mine/x": 2.0, "mine/y": 0.5}
    assert figures.take() == {}
    assert figures.last == {"mine/x": 2.0, "mine/y": 0.5}


@pytest.mark.parametrize(
    ("returned", "says"),
    [
        ([1.0], "returned a value of the type list: expected a dict of numbers by name"),
        ({"mine/x": "1.0"}, "returned a value of the type str for 'mine/x': expected a dict of numbers by name"),
        ({"mine/x": True}, "returned a value of the type bool for 'mine/x'"),
        ({"mine/x": float("nan")}, "returned a number for 'mine/x' that is not finite"),
        ({"mine/x": 10**400}, "returned a number for 'mine/x' that is not finite"),
        ({"mine/x": 1e308}, "or larger than 3.4e+38"),
        ({"mine\x1b[31m": 1.0}, "returned the name 'mine\\x1b[31m': expected at most 100 letters"),
        ({"mine x\n": 1.0}, "returned the name 'mine x\\n'"),
        ({"m" * 101: 1.0}, "expected at most 100 letters"),
        ({3: 1.0}, "returned the name 3"),
        ({"episodes/mine": 1.0}, "returned the name 'episodes/mine': episodes is a name of Simul's; choose another"),
        ({"training_sec": 1.0}, "training_sec is a name of Simul's"),
    ],
)
def test_what_is_left_out_is_said_once_and_the_rest_is_taken(returned, says):
    figures = CallbackFigures()
    beside = {**returned, "mine/good": 1.0} if isinstance(returned, dict) else returned
    (sentence,) = figures.add(beside)
    assert says in sentence
    assert sentence.isprintable()
    assert figures.add(beside) == []
    assert figures.take() == ({"mine/good": 1.0} if isinstance(returned, dict) else {})


def test_a_run_has_so_many_names_at_most():
    figures = CallbackFigures()
    (sentence,) = figures.add({f"mine/{n}": n for n in range(MOST_NAMES + 5)})
    assert f"returned the name 'mine/{MOST_NAMES}' after {MOST_NAMES} others" in sentence
    assert figures.add({"mine/0": 7.0, "other": 1.0}) == []
    assert figures.take().keys() == {f"mine/{n}" for n in range(MOST_NAMES)}
