"""The space of a sweep: what a range means, and the sentence for each that means nothing."""

from __future__ import annotations

import pytest

from simul.common.config.loader import load_config
from simul.common.errors import ConfigError
from simul.launch.sweep.space import Dimension, check_space, read_space, space_of


def test_ranges_are_whole_where_the_key_is_or_both_ends_are():
    assert space_of(
        {
            "learner.learning_rate": {"low": 1, "high": 2},
            "learner.epochs": {"low": 1.0, "high": 8},
            "network.options.hidden": {"low": 16, "high": 64, "step": 16},
            "learner.clip": {"low": 1e-2, "high": 0.5, "log": True},
            "learner.unroll_length": {"choices": [16, None, True, [1, 2], "a: b"]},
        },
        "s",
    ) == [
        Dimension("learner.learning_rate", 1.0, 2.0),
        Dimension("learner.epochs", 1, 8, whole=True),
        Dimension("network.options.hidden", 16, 64, whole=True, step=16),
        Dimension("learner.clip", 0.01, 0.5, log=True),
        Dimension("learner.unroll_length", choices=("16", "null", "true", "[1, 2]", "'a: b'")),
    ]


def test_a_choice_may_be_a_mapping():
    (only,) = space_of({"network.options": {"choices": [{}, {"hidden": 16, "memory": "none"}]}}, "s")
    assert only.choices == ("{}", "{hidden: 16, memory: none}")
    assert load_config("cartpole", [only.setting(only.choices[1])]).network.options == {"hidden": 16, "memory": "none"}


def test_the_file_is_read_as_a_configuration_is(tmp_path):
    file = tmp_path / "space.yaml"
    file.write_text("learner.clip: {low: 1e-2, high: 5e-1}\n")
    (only,) = read_space(file)
    assert only.ends() == ("learner.clip=0.01", "learner.clip=0.5")
    file.write_text("learner.clip: {low:1, high: 2}\n")
    with pytest.raises(ConfigError, match="line 1: YAML requires a space after a colon"):
        read_space(file)
    with pytest.raises(ConfigError, match=r"The space .*nowhere cannot be read: No such file"):
        read_space(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"low": 0.3, "high": 0.1}, "low must be less than high; got low 0.3, high 0.1"),
        ({"low": 1, "high": 1}, "low must be less than high"),
        ({"low": 1, "high": float("inf")}, "low and high must be finite; got low 1, high inf"),
        ({"low": 1, "high": 10**400}, "expected a number as high, at most 1e+18; got one of 401 digits"),
        ({"low": 0, "high": 1, "log": True}, "a logarithmic range begins above 0; got low 0"),
        ({"low": 1}, "high is missing"),
        ({"low": "a", "high": 1}, "expected a number as low; got 'a'"),
        ({"low": 1, "high": 2, "log": 3}, "expected true or false as log; got 3"),
        ({"low": 1, "high": 2, "step": 5}, "expected a step above 0 that fits between"),
        ({"low": 1, "hgh": 2}, "there is no 'hgh' in a range; did you mean high?"),
        ({"lgo": True, "low": 1, "high": 2}, "there is no 'lgo' in a range; did you mean log?"),
        ({"low": 1, "x": {"low": 1, "high": 2}}, "are not nested: write learner.clip.x: {low: 1e-4, high: 1e-2"),
        ({"choices": []}, "expected choices: a list of values"),
        ({"choices": list(range(101))}, "expected at most 100 choices, or a range with low, high and step; got 101"),
        ({"choices": [1, 1]}, "the choice 1 is given twice"),
        ({"choices": [1], "low": 1}, "choices stand alone"),
        (3, "got 3"),
    ],
)
def test_a_range_that_means_nothing_is_a_sentence(given, sentence):
    with pytest.raises(ConfigError) as refused:
        space_of({"learner.clip": given}, "space.yaml")
    assert str(refused.value).startswith("1 problem in the space space.yaml:\n  learner.clip: ")
    assert sentence in str(refused.value)


def test_an_empty_space_and_settings_of_the_sweep_are_refused():
    for tree in ({}, None, []):
        with pytest.raises(ConfigError, match=r"The space s\.yaml is empty: expected keys"):
            space_of(tree, "s.yaml")
    with pytest.raises(ConfigError, match="is no mapping"):
        space_of([1], "s.yaml")
    for key in ("game", "evaluation.games", "learner.checkpoint_every_sec"):
        with pytest.raises(ConfigError, match=f"{key}: all trials of a sweep have the same"):
            space_of({key: {"choices": [1]}}, "s.yaml")
    for key in ("run_dir", "store", "server.endpoint", "prometheus_port"):
        with pytest.raises(ConfigError, match=f"{key}: the sweep sets it for each trial"):
            space_of({key: {"choices": [1]}}, "s.yaml")
    with pytest.raises(ConfigError, match=r"server: server\.endpoint: the sweep sets it for each trial"):
        space_of({"server": {"choices": [{"threads": 2}, {"endpoint": "ipc://here"}]}}, "s.yaml")
    with pytest.raises(ConfigError, match=r"takes whole numbers; got low 1, high 2\.5"):
        space_of({"learner.epochs": {"low": 1, "high": 2.5}}, "s.yaml")
    with pytest.raises(ConfigError, match=r"learner\.epochs: it takes whole numbers, and int is false"):
        space_of({"learner.epochs": {"low": 1, "high": 8, "int": False}}, "s.yaml")
    assert not space_of({"network.options.hidden": {"low": 1, "high": 8, "int": False}}, "s.yaml")[0].whole


def test_what_the_configuration_refuses_is_said_in_its_words():
    space = space_of(
        {
            "learner.clp": {"low": 0.1, "high": 0.2}, "learner.clip": {"low": -1, "high": 1},
            "network.name": {"choices": ["mlp_lst"]}, "learner.epochs": {"low": 1, "high": 2},
        },
        "s",
    )  # fmt: skip
    with pytest.raises(ConfigError) as refused:
        check_space(space, lambda setting: load_config("cartpole", [setting], given_in="the space"), "s")
    lines = str(refused.value).splitlines()
    assert lines[0] == "3 problems in the space s:"
    assert lines[1].strip() == "learner.clp=0.1: there is no such key; did you mean learner.clip?"
    assert "learner.clip=-1.0: expected a number > 0" in lines[2]
    assert "did you mean mlp_lstm?" in lines[3]
