"""Which contestants an evaluation accepts, and what they are called."""

from __future__ import annotations

from pathlib import Path

import pytest

from simul.common.config.game_description import Game
from simul.common.config.games import GAMES
from simul.common.config.loader import load_game
from simul.common.config.opponents import SCRIPTED
from simul.common.config.trust import EVERYTHING
from simul.common.errors import ConfigError
from simul.common.protocol.specs import GameSpec
from simul.common.role.run_directory import RunDir
from simul.launch.evaluation import contestants, eval_runner
from simul.launch.evaluation.eval_runner import EvalRunner, evaluate
from simul.launch.evaluation.openings import whole_deals
from simul.launch.processes.signals import Signals
from simul.launch.supervisor.checkpoint_files import checkpoint_labels
from tests.support.checkpoints import write_checkpoint


def test_labels_of_checkpoints_are_short_and_distinct():
    folders = [Path(f"/{where}/run/checkpoints/{version:09d}") for where, version in (("x", 0), ("x", 12), ("y", 12))]
    assert checkpoint_labels([*folders, Path("/z/best")]) == ["run@0", "run@12", "run@12#2", "best"]
    assert checkpoint_labels([folders[0]] * 3) == ["run@0", "run@0#2", "run@0#3"]
    searches = [(), ("simulations=16", "value_scale=1")]
    assert checkpoint_labels([folders[0]] * 2, searches) == ["run@0", "run@0#simulations=16,value_scale=1"]


@pytest.mark.parametrize(
    ("opponents", "sentence"),
    [
        (["heuristic"], "no opponent 'heuristic'; did you mean heuristics"),
        (["self"], "no opponent 'self'"),
        ([], "Name a --checkpoint. Bots play without one, two of them or more: pokemon: "),
        (["max"], "Bots play without one, two of them or more: pokemon: --opponent random --opponent "),
    ],
)
def test_opponents_that_cannot_play(opponents, sentence, tmp_path):
    with pytest.raises(ConfigError, match=sentence):
        evaluate([], opponents=opponents, episodes=5)


@pytest.mark.parametrize("opponents", [[], ["random", "mcts"]])
def test_a_misspelt_game_of_bots_is_named_before_what_else_is_missing(opponents):
    with pytest.raises(ConfigError, match=r"The configuration blokuss cannot be read: .*; did you mean blokus\?"):
        evaluate([], game="blokuss", opponents=opponents, episodes=5)


@pytest.mark.parametrize(
    ("game", "opponents", "sentence"),
    [
        ("gymnasium/CartPole-v1", ["nobody"], "The game gymnasium:CartPole-v1 has no opponents; leave --opponent out"),
        ("examples.custom_env:Corridor", ["random"], "custom_env:Corridor is not a simul.TurnGame, which alone has"),
        ("pokemon/gen9randombattle", ["nobody"], r"no opponent 'nobody'\. Opponents are random, (?!.*mcts)"),
        ("pokemon/gen9randombattle", [], "Name an opponent, or a second --checkpoint: --opponent random, max_base_"),
    ],
)
def test_who_can_play_against_a_checkpoint_depends_on_its_game(game, opponents, sentence, tmp_path):
    spec = GameSpec(name=game, observation_size=4, num_actions=2)
    folder = write_checkpoint(tmp_path / "000000001", spec, 1)
    with pytest.raises(ConfigError, match=sentence):
        evaluate([folder], opponents=opponents, episodes=5, trust=EVERYTHING)


def test_a_bot_may_play_itself(monkeypatch):
    def arguments(pairings, workers, each):
        (pairing,) = pairings
        assert (pairing.first.label, pairing.second.label) == ("random", "random#2")
        assert pairing.first.bot == pairing.second.bot == "random"
        raise ConfigError("reached")

    spec = GameSpec(name="openspiel/tic_tac_toe", observation_size=27, num_actions=9, seats=2)
    monkeypatch.setattr(eval_runner, "ask_for_spec", lambda config, command, *_: spec)
    monkeypatch.setattr(eval_runner, "pairing_arguments", arguments)
    with pytest.raises(ConfigError, match="reached"):
        evaluate([], game="openspiel", opponents=["random", "random"], episodes=4)


@pytest.mark.parametrize(("duplicate", "played"), [(True, 9), (False, 7)])
def test_duplicates_are_whole_deals(monkeypatch, duplicate, played):
    def arguments(pairings, workers, each):
        raise ConfigError(f"{[pairing.battles for pairing in pairings]} games")

    spec = GameSpec(name="ofc", observation_size=27, num_actions=9, seats=3)
    monkeypatch.setattr(eval_runner, "ask_for_spec", lambda config, command, *_: spec)
    monkeypatch.setattr(eval_runner, "pairing_arguments", arguments)
    with pytest.raises(ConfigError, match=rf"\[{played}\] games"):
        evaluate([], game="ofc", opponents=["random", "random"], episodes=7, duplicate=duplicate)


def test_more_games_than_were_named_are_said():
    assert whole_deals(9, 3) == (9, "")
    said = "7 games are no whole number of deals for 3 seats: 9 of each pair are asked for"
    assert whole_deals(7, 3) == (9, said)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"openings": 3}, "only with two contestants or more; this is .*tic_tac_toe with 1"),
        ({"openings": 1001}, "expected at most 1000 plies, got 1001"),
        ({"duplicate": True}, "tic_tac_toe has one seat: nothing can be dealt again; leave --duplicate out"),
    ],
)
def test_a_game_of_one_seat_has_no_openings_and_no_duplicate(monkeypatch, tmp_path, options, sentence):
    spec = GameSpec(name="openspiel/tic_tac_toe", observation_size=27, num_actions=9, seats=1)
    folder = write_checkpoint(tmp_path / "000000001", spec, 1)
    monkeypatch.setattr(eval_runner, "ask_for_spec", lambda config, command, *_: spec)
    with pytest.raises(ConfigError, match=sentence):
        evaluate([folder], episodes=4, trust=EVERYTHING, **options)


@pytest.mark.parametrize(
    ("algorithm", "setting", "sentence"),
    [
        ("alphazero", "simulation=16", r"no such key; did you mean search\.simulations\?"),
        ("alphazero", "symmetries=false", r"all contestants have one symmetries; use --set search\.symmetries=false"),
        ("alphazero", "worlds=60", r"the algorithm alphazero, whose policies .* or set simulations=64, say"),
        (
            "ppo",
            "simulations=16",
            r"the algorithm ppo, whose policies have no such .* or set worlds=60 and candidates=4",
        ),
        ("ppo", "worlds=-1", r"search\.worlds"),
    ],
)
def test_settings_of_a_search_that_a_contestant_cannot_have(tmp_path, algorithm, setting, sentence):
    spec = GameSpec(name="openspiel/tic_tac_toe", observation_size=27, num_actions=9, seats=2)
    folder = write_checkpoint(tmp_path / "000000001", spec, 1)
    with pytest.raises(ConfigError, match=sentence):
        evaluate(
            [folder], opponents=["random"], episodes=4, searches=[(setting,)], trust=EVERYTHING,
            overrides=[f"learner.algorithm={algorithm}"],
        )  # fmt: skip


def test_battles_that_a_server_deals_are_not_played_in_duplicate(monkeypatch):
    monkeypatch.setattr(eval_runner, "ask_for_spec", lambda config, command, *_: GameSpec("pokemon", 4, 2, seats=2))
    with pytest.raises(ConfigError, match="is dealt by a server: nothing can be dealt again; leave --duplicate out"):
        evaluate(
            [], opponents=["max_base_power", "random"], episodes=4, duplicate=True,
            overrides=["pokemon.transport=websocket"],
        )  # fmt: skip


def test_bots_of_different_games_do_not_meet(monkeypatch):
    chess = Game(opponents=("self_play", "random", "mirror"), pairings=True)
    monkeypatch.setitem(GAMES, "chess", chess)
    monkeypatch.setattr(contestants, "SCRIPTED", (*SCRIPTED, "mirror"))
    with pytest.raises(ConfigError, match=r"No game has all of the opponents damage, mirror: pokemon: .*; chess: "):
        evaluate([], opponents=["damage", "mirror"], episodes=5)


def test_a_seat_may_wait_for_the_searches_of_others_longer_than_a_servers_clients_may_be_idle(tmp_path):
    spec = GameSpec(name="openspiel/tic_tac_toe", observation_size=27, num_actions=9, seats=2)
    config = load_game("openspiel")
    run_dir = RunDir(tmp_path / "eval")
    with EvalRunner(run_dir, config, spec, Signals(), quiet=True).serving({}):
        assert run_dir.read_config().server.idle_timeout_sec == 3600.0 > config.server.idle_timeout_sec
