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


def check(tree, refuses, monkeypatch, tmp_path):
    """`refuses`: settings -> sentence. Returns what was asked."""
    asked = []

    def answer(plan, spec, values):
        asked.extend(values)
        return [next(iter(found), "") if all(found := [refuses(each) for each in among]) else "" for among in values]

    monkeypatch.setattr(module, "ask_for_spec", lambda config, command: None)
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
    for tree in (
        {"learner.clip": {"low": 0.1, "high": 0.2}},
        {**WIDTHS_AND_HEADS, "game_options.size": {"low": 3, "high": 5}},  # another spec for each
    ):
        assert check(tree, lambda settings: "", monkeypatch, tmp_path) == []
