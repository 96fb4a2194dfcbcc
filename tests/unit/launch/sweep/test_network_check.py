"""What a network refuses is said before the first trial, for the values that no other key can help."""

from __future__ import annotations

import pytest

from simul.common.config.schema import Config
from simul.common.errors import ConfigError
from simul.launch.sweep import network_check as module
from simul.launch.sweep.network_check import check_networks
from simul.launch.sweep.space import space_of
from simul.launch.sweep.trial import Plan

WIDTHS_AND_HEADS = {
    "learner.clip": {"low": 0.1, "high": 0.2},
    "network.options.width": {"choices": [48, 64]},
    "network.options.heads": {"choices": [3, 4]},
}


def spec_of(config, command):
    """Of the game: a number; 1 is refused."""
    size = config.gymnasium.kwargs.get("size")
    if size == 1:
        raise ConfigError("a game of 1")
    return size


def check(tree, refuses, monkeypatch, tmp_path):
    """`refuses`: settings -> sentence. Returns what was asked."""
    asked = []

    def answer(plan, spec, values):
        asked.extend(values)
        return [next(iter(found), "") if all(found := [refuses(each) for each in among]) else "" for among in values]

    monkeypatch.setattr(module, "ask_for_spec", spec_of)
    monkeypatch.setattr(module, "_ask", answer)
    check_networks(Plan("cartpole", "default", (), (), 100, tmp_path), Config(), space_of(tree, "s"), "s")
    return asked


def test_a_value_that_fits_beside_another_key_is_none_to_refuse(monkeypatch, tmp_path):
    def refuses(settings):  # as `attention` of width 64
        numbers = {key: int(value) for key, _, value in (each.partition("=") for each in settings)}
        width = numbers.get("network.options.width", 64)
        return "heads" if width % numbers.get("network.options.heads", 4) else ""

    check(WIDTHS_AND_HEADS, refuses, monkeypatch, tmp_path)
    only_64 = {**WIDTHS_AND_HEADS, "network.options.width": {"choices": [64]}}
    with pytest.raises(ConfigError, match=r"^1 problem in the space s:\n  network\.options\.heads=3: heads$"):
        check(only_64, refuses, monkeypatch, tmp_path)


def test_each_key_is_named_for_its_own_fault(monkeypatch, tmp_path):
    def refuses(settings):
        return next((each for each in settings if "hiden" in each or each.endswith("=-1")), "")

    tree = {"network.options.hiden": {"low": 1, "high": 9}, "network.options.layers": {"low": -1, "high": 2}}
    with pytest.raises(ConfigError) as refused:
        check(tree, refuses, monkeypatch, tmp_path)
    assert [line.partition(":")[0].strip() for line in str(refused.value).splitlines()[1:]] == [
        "network.options.hiden=1", "network.options.layers=-1",
    ]  # fmt: skip


def test_many_keys_are_drawn_from_and_a_space_without_the_network_asks_nothing(monkeypatch, tmp_path):
    many = {f"network.options.k{number}": {"low": 0, "high": 9} for number in range(12)}
    assert max(map(len, check(many, lambda settings: "", monkeypatch, tmp_path))) == module.MOST_TRIED
    sizes = {"choices": list(range(2, 2 + module.MOST_SPECS + 1))}
    for tree in (
        {"learner.clip": {"low": 0.1, "high": 0.2}},
        {**WIDTHS_AND_HEADS, "gymnasium.kwargs.size": sizes},  # a process for each spec
    ):
        assert check(tree, lambda settings: "", monkeypatch, tmp_path) == []


def test_a_value_is_refused_that_the_network_takes_in_no_game_of_the_space(monkeypatch, tmp_path):
    tree = {"network.options.width": {"choices": [48, 64]}, "gymnasium.kwargs.size": {"choices": [1, 3, 6]}}

    def refuses(settings):
        size, width = (int(each.rpartition("=")[2]) for each in settings)
        return "width" if width == 48 and size < allowed else ""

    allowed = 6
    asked = check(tree, refuses, monkeypatch, tmp_path)
    assert [among[0][0] for among in asked] == ["gymnasium.kwargs.size=3"] * 4 + ["gymnasium.kwargs.size=6"] * 4
    allowed = 7
    with pytest.raises(ConfigError, match=r"^1 problem in the space s:\n  network\.options\.width=48: width$"):
        check(tree, refuses, monkeypatch, tmp_path)
    with pytest.raises(ConfigError, match="a game of 1"):
        check({**tree, "gymnasium.kwargs.size": {"choices": [1]}}, refuses, monkeypatch, tmp_path)
