"""poke-env's own scripted players on an offline battle: their choices only, no connection, no account."""

from __future__ import annotations

import random
from typing import Any, NamedTuple

from poke_env.battle.battle import Battle
from poke_env.battle.move import Move
from poke_env.battle.pokemon import Pokemon
from poke_env.player import MaxBasePowerPlayer, RandomPlayer, SimpleHeuristicsPlayer
from poke_env.player.battle_order import DefaultBattleOrder, SingleBattleOrder

PLAYERS = {
    "random": RandomPlayer,
    "max_base_power": MaxBasePowerPlayer,
    "simple_heuristics": SimpleHeuristicsPlayer,
}


class ScriptedChoice(NamedTuple):
    """`command` is what the simulator is told; `defaulted`: the player itself had no better idea."""

    command: str
    defaulted: bool


class ScriptedPlayer:
    """One kind of player. Stateless: it reads the battle of the seat that asks."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        player_class = PLAYERS[kind]
        # Player.__init__ would open a websocket client; the choice needs nothing of it but the format.
        self._player: Any = object.__new__(player_class)
        self._player._format = "singles"

    def choose(self, battle: Battle, request: dict[str, Any], seed: int) -> ScriptedChoice:
        """The player's answer to `request`, which `battle` has parsed. Equal seeds draw equally."""
        random.seed(seed)  # poke-env draws from the module's generator
        order = self._player.choose_move(battle)
        if isinstance(order, DefaultBattleOrder):
            return ScriptedChoice("default", True)
        return ScriptedChoice(command_of(order, battle, request), False)


def command_of(order: SingleBattleOrder, battle: Battle, request: dict[str, Any]) -> str:
    """An order by slot of the request instead of by name."""
    target = order.order
    if isinstance(target, Pokemon):
        ident = next(ident for ident, mon in battle.team.items() if mon is target)
        slots = [entry["ident"] for entry in request["side"]["pokemon"]]
        return f"switch {slots.index(ident) + 1}"
    assert isinstance(target, Move)
    enabled = [slot for slot, entry in enumerate(request["active"][0]["moves"], 1) if not entry.get("disabled")]
    index = next(index for index, move in enumerate(battle.available_moves) if move is target)
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
    return f"move {enabled[index]}{suffix}"
