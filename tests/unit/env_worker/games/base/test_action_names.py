"""Actions by their names: whole names first, then parts of whole words, and what cannot be meant."""

from __future__ import annotations

import pytest

from simul.env_worker.games.base.action_names import (
    MOST_LISTED,
    action_of_name,
    help_of_names,
    listed_names,
    shortened,
)

NAMES = {3: "x(0,0)", 4: "x(0,1)", 10: "Bet 10", 11: "Bet 1", 12: "Fold"}


@pytest.mark.parametrize(
    ("text", "action"),
    [("x(0,0)", 3), (" X(0,1) ", 4), ("0,1", 4), ("fold", 12), ("bet  10", 10), ("10", 10), ("Bet 1", 11), ("1)", 4)],
)
def test_names_and_parts_of_them(text, action):
    assert action_of_name(NAMES, text) == action


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("bet", r"'bet' may be Bet 10, Bet 1; write one of them"),
        ("fol", r"there is no legal action 'fol'; expected one such as Fold"),
        ("", r"there is no legal action ''"),
        ("0", r"'0' may be x\(0,0\), x\(0,1\)"),
        ("y" * 5000, r"there is no legal action 'y{60}\.\.\.'; expected one such as x\(0,0\)"),
    ],
)
def test_what_cannot_be_meant_is_a_sentence(text, says):
    with pytest.raises(ValueError, match=says):
        action_of_name(NAMES, text)


def test_a_number_is_never_a_part_of_another_number():
    with pytest.raises(ValueError, match="no legal action '1'"):
        action_of_name({10: "10", 11: "11"}, "1")


def test_lists_are_cut_and_say_so():
    assert listed_names(NAMES, "bet") == "Bet 10\nBet 1"
    assert "none of the 5 legal actions has 'call'" in listed_names(NAMES, "call")
    many = listed_names({number: f"a{number}" for number in range(100)}, "").splitlines()
    assert len(many) == MOST_LISTED + 1
    assert many[-1].startswith(f"... {100 - MOST_LISTED} more of 100")
    assert shortened("  a ") == "'a'"


def test_the_help_names_actions_that_can_be_written_as_they_stand():
    names = {1: "Deal", 2: "deal", **NAMES}
    text = help_of_names(names)
    assert text == (
        "Write an action by its name, or a part of it, such as x(0,0), x(0,1), Bet 10, ...; `list` shows the legal "
        "ones, 7 now."
    )
    for example in text.partition("such as ")[2].partition(", ...")[0].split(", "):
        assert names[action_of_name(names, example)] == example
    assert "such as" not in help_of_names({1: "same", 2: "same"})
