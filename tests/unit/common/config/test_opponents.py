"""Mixes of opponents in one string."""

from __future__ import annotations

import pytest

from simul.common.config.games import game_called
from simul.common.config.opponents import KINDS, SCRIPTED, opponent_kind, parse_mix
from simul.common.config.schema import OpponentsConfig
from simul.common.errors import ConfigError
from simul.env_worker.games.pokemon.opponents import players

GAME = "game: pokemon\n"


def test_short_and_long_names():
    mix = parse_mix("random:0.2, max:0.2,heuristics:0.2 ,self:0.4")
    assert mix == parse_mix("random:.2,max_base_power:2e-1,simple_heuristics:0.2,self_play:0.4")
    assert mix == {**dict.fromkeys(KINDS, 0.0), "self_play": 0.4, **dict.fromkeys(SCRIPTED[:3], 0.2), "classes": {}}


def test_every_scripted_opponent_of_pokemon_has_a_player():
    assert set(game_called("pokemon").scripted) == set(players.SCRIPTED)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("heuristic:1", "no opponent 'heuristic'; did you mean heuristics"),
        ("pats:1", "no opponent 'pats'; did you mean past"),
        ("zzz:1", "no opponent 'zzz'. Opponents are self_play \\(self\\), past, frozen, random, "),
        ("random", "expected NAME:SHARE"),
        ("random:0.5,", "expected NAME:SHARE.*got ''"),
        ("mybot:MyBot,random:0.5", "the share of mybot:MyBot is missing: write mybot:MyBot:0.2"),
        ("my-bot:MyBot:0.5", "no opponent 'my-bot:MyBot'.*or module:Class"),
        ("random:half", "share of random must be a number such as 0.2, got 'half'"),
        ("max:0.5,max_base_power:0.5", "max_base_power is given twice"),
    ],
)
def test_what_is_wrong_with_a_mix(text, sentence):
    with pytest.raises(ConfigError, match=sentence):
        parse_mix(text)


def test_only_scripted_opponents_where_only_they_are_meant():
    assert opponent_kind("max", SCRIPTED) == "max_base_power"
    with pytest.raises(ConfigError, match="no opponent 'self'"):
        opponent_kind("self", SCRIPTED)


def test_a_mix_in_the_file_and_on_the_command_line(load):
    fair = OpponentsConfig(self_play=0.4, random=0.2, max_base_power=0.2, simple_heuristics=0.2)
    text = "random:0.2,max:0.2,heuristics:0.2,self:0.4"
    written = f"{GAME}opponents: {text}"
    assert load(written).opponents == fair
    assert load(f"{GAME}opponents: {{self_play: 0.5, past: 0.5}}", f"opponents={text}").opponents == fair
    assert load(written, "opponents.random=0", "opponents.past=0.2").opponents.past == 0.2


@pytest.mark.parametrize("mix", ["my.bots:MyBot:0.3,self:0.7", "{my.bots:MyBot: 0.3, self_play: 0.7}"])
def test_a_player_of_ones_own_is_stored_below_classes(load, mix):
    own = OpponentsConfig(self_play=0.7, classes={"my.bots:MyBot": 0.3})
    assert load(f"{GAME}opponents: {mix}").opponents == own
    assert load(GAME, f"opponents={mix}").opponents == own
    assert load(GAME, "opponents.my.bots:MyBot=0.3", "opponents.self_play=0.7").opponents == own
    assert load(f"{GAME}opponents: {{limit_sec: 2}}", f"opponents={mix}").opponents.limit_sec == 2
    assert load(f"{GAME}evaluation: {{opponents: [my.bots:MyBot]}}").evaluation.opponents == ("my.bots:MyBot",)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{mybot:MyBot, random: 0.5}", "an opponent mybot:MyBot requires a share: mybot:MyBot: 0.2"),
        ("{mybot:MyBot: high}", "opponents.classes.mybot:MyBot: expected a number >= 0 and <= 1, got 'high'"),
        ("{my-bot:MyBot: 1, self_play: 0}", "opponents.classes.my-bot:MyBot: expected module:Class"),
        ("{mybot:MyBot: 0.5}", r"they add up to 1.5 \(self_play 1 \+ mybot:MyBot 0.5\)"),
    ],
)
def test_what_is_wrong_with_a_player_of_ones_own(load, text, sentence):
    with pytest.raises(ConfigError, match=sentence):
        load(f"{GAME}opponents: {text}")


def test_a_game_of_one_seat_has_no_player_of_ones_own(load):
    with pytest.raises(ConfigError, match="has one seat and no opponents; leave mybot:MyBot out"):
        load("game: gymnasium\nopponents: {mybot:MyBot: 1, self_play: 0}\n")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("random:0.3,self:0.4", r"opponents: the shares must add up to 1.*they add up to 0.7"),
        ("random:0.5,self:0.6", r"opponents: the shares must add up to 1.*they add up to 1.1"),
        ("random:2,self:-1", r"opponents.random: expected a number >= 0 and <= 1, got 2"),
        ("5", "opponents: expected a section of shares, or one string of them such as random:0.2,self:0.8; got 5"),
        ("", "opponents: expected a section of shares, or one string .* got nothing"),
        ("radom:1", r"opponents: there is no opponent 'radom'; did you mean random\?"),
    ],
)
def test_a_broken_mix_is_refused_with_its_path(load, text, sentence):
    with pytest.raises(ConfigError, match=sentence):
        load(f"{GAME}opponents: {text}")
    with pytest.raises(ConfigError, match=sentence.removeprefix("opponents: ")):
        load(GAME, f"opponents={text}")


@pytest.mark.parametrize(
    "settings", ["opponents: {zoo:pokemon: 1.0, self_play: 0}", "evaluation: {opponents: [zoo:pokemon]}"]
)
def test_a_policy_of_the_zoo_is_no_scripted_opponent(load, settings):
    with pytest.raises(ConfigError, match="zoo:pokemon is a policy, and opponents are scripted players here"):
        load(f"{GAME}{settings}")
    with pytest.raises(ConfigError, match="--checkpoint zoo:pokemon"):
        opponent_kind("zoo:pokemon")


def test_how_past_selves_are_drawn_is_no_setting_of_a_game_without_them(load):
    with pytest.raises(ConfigError, match="past selves are drawn by it, and the game gymnasium has one seat"):
        load("game: gymnasium\ngymnasium: {id: CartPole-v1}", "opponents.past_by=hard")
