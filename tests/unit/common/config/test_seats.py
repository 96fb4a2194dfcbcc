"""A game of one seat: opponents of a shipped default are dropped with a note, those of the user refused by place."""

from __future__ import annotations

import pytest

from simul.common.config.loader import load_config
from simul.common.config.schema import Config, EvaluationConfig
from simul.common.config.seats import check_opponents, settle_opponents
from simul.common.errors import ConfigError
from simul.common.protocol.specs import GameSpec

ONE = GameSpec(name="openspiel/catch", observation_size=50, num_actions=3)
TWO = GameSpec(name="openspiel/tic_tac_toe", observation_size=27, num_actions=9, seats=2)
CATCH = "openspiel.name=catch"


def settled(path, overrides=(), spec=ONE):
    written: dict[str, str] = {}
    config = load_config(path, overrides, written=written)
    return settle_opponents(config, spec, written)


def test_one_seat_drops_what_the_shipped_configuration_says_about_opponents():
    config, notes = settled("openspiel", [CATCH, "evaluation.every_decisions=5000"])
    assert (config.opponents.self_play, config.opponents.random, config.evaluation.opponents) == (1.0, 0.0, ())
    assert config.evaluation.every_decisions == 5000
    assert notes == ["openspiel/catch has one seat; defaults left out: opponents.random, evaluation.opponents"]


def test_several_seats_keep_them():
    config, notes = settled("openspiel", spec=TWO)
    assert (config.opponents.random, config.evaluation.opponents, notes) == (0.2, ("random",), [])


@pytest.mark.parametrize(
    ("override", "place"),
    [
        ("evaluation.opponents=[random]", r"--set evaluation.opponents=\[random\]\."),
        ("opponents=self:0.5,random:0.5", r"--set opponents=self:0.5,random:0.5\."),
        ("opponents.random=0.2", r"--set opponents.random=0.2\."),
        ("opponents=my.bots:MyBot:0.2,self:0.8", r"--set opponents=my.bots:MyBot:0.2,self:0.8\."),
    ],
)
def test_what_the_command_line_says_is_refused_by_its_place(override, place):
    with pytest.raises(ConfigError, match=f"openspiel/catch has one seat and no opponents; leave out {place}"):
        settled("openspiel", [CATCH, override])


def test_what_a_file_of_the_users_says_is_refused_by_its_place(tmp_path):
    (tmp_path / "mine.yaml").write_text(
        "game: openspiel\nopenspiel: {name: catch}\nmodes:\n  short:\n    opponents: {self_play: 0.5, random: 0.5}\n"
    )
    written: dict[str, str] = {}
    config = load_config(tmp_path / "mine.yaml", mode="short", written=written)
    with pytest.raises(ConfigError, match=r"leave out opponents.random in .*mine.yaml\."):
        settle_opponents(config, ONE, written)


def test_several_seats_are_evaluated_against_opponents():
    with pytest.raises(ConfigError, match="has 2 seats: it is evaluated against opponents"):
        check_opponents(Config(evaluation=EvaluationConfig(every_decisions=10)), TWO)
