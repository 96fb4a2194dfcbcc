"""poke-env's scripted players on an offline battle: only their choices, without connection or account.

Where poke-env raises, a random legal choice takes the place of the player's.
"""

from __future__ import annotations

import random
from typing import Any, NamedTuple

from poke_env.battle.double_battle import DoubleBattle
from poke_env.battle.move import Move
from poke_env.battle.pokemon import Pokemon
from poke_env.player import MaxBasePowerPlayer, RandomPlayer, SimpleHeuristicsPlayer
from poke_env.player.battle_order import DefaultBattleOrder, DoubleBattleOrder, PassBattleOrder, SingleBattleOrder

from simul.env_worker.games.pokemon.opponents.random_choice import Request, random_choice
from simul.env_worker.games.pokemon.opponents.stock_battle import StockReader

PLAYERS = {
    "random": RandomPlayer,
    "max_base_power": MaxBasePowerPlayer,
    "simple_heuristics": SimpleHeuristicsPlayer,
}


class ScriptedChoice(NamedTuple):
    """`command`: the choice in the simulator's protocol.

    defaulted: poke-env returned its default order, in doubles for one slot or both.
    failure: what the player raised, "" for nothing; the command is then a random legal one.
    """

    command: str
    defaulted: bool = False
    failure: str = ""


class ScriptedPlayer:
    """One kind of player. Stateless: it reads the battle of the calling seat."""

    def __init__(self, kind: str, doubles: bool = False) -> None:
        self.kind = kind
        player_class = PLAYERS[kind]
        # Player.__init__ opens a websocket client; the choice needs only the format.
        self._player: Any = object.__new__(player_class)
        self._player._format = "doubles" if doubles else "singles"

    def choose(self, battle: StockReader, request: Request, seed: int) -> ScriptedChoice:
        """The answer to `request`, whose lines `battle` has read. Equal seeds give equal choices."""
        try:
            battle.parse_request(request)
            return self._chosen(battle, request, seed)
        except Exception as error:  # noqa: BLE001 - poke-env may raise anything
            failure = f"{self.kind} raised {type(error).__name__}: {error}"
            return ScriptedChoice(random_choice(request, random.Random(seed)), failure=failure)

    def _chosen(self, battle: StockReader, request: Request, seed: int) -> ScriptedChoice:
        random.seed(seed)  # poke-env draws from the module's generator
        if request.get("teamPreview"):
            return ScriptedChoice(self._player.teampreview(battle).removeprefix("/"))
        order = self._player.choose_move(battle)
        orders = [order.first_order, order.second_order] if isinstance(order, DoubleBattleOrder) else [order]
        if isinstance(orders[0], DefaultBattleOrder):  # it stands for both slots
            return ScriptedChoice("default", defaulted=True)
        commands = [command_of(part, battle, request, slot) for slot, part in enumerate(orders)]
        return ScriptedChoice(", ".join(commands), defaulted="default" in commands)


def place_of(pokemon: Pokemon, battle: StockReader, request: Request) -> int:
    """Where a request lists it, from 1: its name may be that of another, transformed one, too."""
    ident = next(ident for ident, mon in battle.team.items() if mon is pokemon)
    return [entry["ident"] for entry in request["side"]["pokemon"]].index(ident) + 1


def command_of(order: SingleBattleOrder, battle: StockReader, request: Request, slot: int) -> str:
    """An order by slot of the request instead of by name. `slot`: of the acting Pokémon, 0 in singles."""
    target = order.order
    if isinstance(order, PassBattleOrder):
        return "pass"
    if isinstance(order, DefaultBattleOrder):
        return "default"
    if isinstance(target, Pokemon):
        return f"switch {place_of(target, battle, request)}"
    assert isinstance(target, Move)
    enabled = [offer for offer in enumerate(request["active"][slot]["moves"], 1) if not offer[1].get("disabled")]
    available = battle.available_moves[slot] if isinstance(battle, DoubleBattle) else battle.available_moves
    index = next(index for index, move in enumerate(available) if move is target)
    number, entry = enabled[index]
    aim = f" {order.move_target}" if order.move_target and "target" in entry else ""  # a locked move has its target
    suffix = (
        " mega"
        if order.mega
        else " zmove"
        if order.z_move
        else " dynamax"
        if order.dynamax
        else " terastallize"
        if order.terastallize
        else ""
    )
    return f"move {number}{aim}{suffix}"
