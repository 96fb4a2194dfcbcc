"""Making a player of a user's own, and what its answers mean."""

from __future__ import annotations

import asyncio

import pytest
from poke_env.battle.move import Move
from poke_env.battle.pokemon import Pokemon
from poke_env.concurrency import POKE_LOOP
from poke_env.player import Player, RandomPlayer
from poke_env.player.battle_order import DefaultBattleOrder, DoubleBattleOrder
from poke_env.ps_client import PSClient

from simul.common.errors import ConfigError
from simul.env_worker.games.pokemon.opponents.player_process import NeedsServerError, command_of, make_player
from simul.env_worker.games.pokemon.opponents.stock_battle import StockBattle
from tests.support.pokemon import own_players

FORMAT = "gen9randombattle"
BATTLE = StockBattle("p1", 9)


@pytest.fixture(autouse=True)
def _client(monkeypatch):
    """A player's process has no server for all its life; this one gets it back."""
    for name in ("listen", "send_message", "log_in", "wait_for_login", "logged_in"):
        monkeypatch.setattr(PSClient, name, getattr(PSClient, name))


def name(player: str) -> str:
    return f"{own_players.__name__}:{player}"


@pytest.mark.parametrize(
    ("player", "sentence"),
    [
        ("no.such:Bot", r"module 'no.such' of 'no.such:Bot' cannot be imported"),
        (name("Planned"), "has no player 'Planned'; did you mean Plain"),
        (name("Without"), r"Without has no choose_move\(battle\)"),
        (name("WithPath"), "WithPath cannot be made: TypeError: .*'path'"),
        (name("asyncio"), "is a module; expected a class"),
    ],
)
def test_a_player_that_cannot_be_made_is_refused_with_a_sentence(player, sentence):
    with pytest.raises(ConfigError, match=sentence):
        make_player(player, FORMAT)


def test_a_player_is_made_for_the_format_and_without_a_connection():
    player = make_player(name("made"), "gen4randombattle")
    assert isinstance(player, RandomPlayer)
    assert player.format == "gen4randombattle"
    waits = asyncio.run_coroutine_threadsafe(player.ladder(1), POKE_LOOP)
    with pytest.raises(NeedsServerError, match="made sends to a Showdown server itself"):
        waits.result(timeout=60)


@pytest.mark.parametrize(
    ("choice", "command"),
    [
        ("/choose move 1", "move 1"),
        ("/team 3142", "team 3142"),
        ("switch Pikachu", "switch Pikachu"),
        (DefaultBattleOrder(), "default"),
    ],
)
def test_what_a_player_says_is_kept(choice, command):
    assert command_of(choice, BATTLE, {}) == command


@pytest.mark.parametrize("choice", [None, 3, "", "move 1\n/forfeit", "move 1|2"])
def test_what_is_no_choice_is_refused(choice):
    with pytest.raises((TypeError, ValueError), match=r"expected a .*such as '/choose move 1'"):
        command_of(choice, BATTLE, {})


def test_a_switch_names_the_place_because_two_may_have_one_name():
    battle = StockBattle("p1", 4)
    ditto, mew = Pokemon(4, species="ditto"), Pokemon(4, species="mew")
    battle._team = {"p1: Ditto": ditto, "p1: Mew": mew}
    request = {"side": {"pokemon": [{"ident": "p1: Ditto"}, {"ident": "p1: Mew"}]}}
    assert command_of(Player.create_order(mew), battle, request) == "switch 2"
    stays = Player.create_order(Move("tackle", 4), move_target=1)
    assert command_of(DoubleBattleOrder(stays, Player.create_order(mew)), battle, request) == "move tackle 1, switch 2"
