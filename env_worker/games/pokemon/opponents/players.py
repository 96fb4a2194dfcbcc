"""The scripted players by name: poke-env's, and the damage bot; and the battle that each of them reads."""

from __future__ import annotations

from typing import Any, Protocol

from simul.env_worker.games.pokemon.battle_view.seat_battle import SeatBattle, SeatDoubleBattle, SeatView
from simul.env_worker.games.pokemon.opponents.one_ply.player import OnePlyPlayer
from simul.env_worker.games.pokemon.opponents.random_choice import Request
from simul.env_worker.games.pokemon.opponents.scripted import PLAYERS, ScriptedChoice, ScriptedPlayer
from simul.env_worker.games.pokemon.opponents.stock_battle import StockBattle, StockDoubleBattle, StockReader

DAMAGE = "damage"
SCRIPTED = (*PLAYERS, DAMAGE)


class SeatPlayer(Protocol):
    """Answers for a seat. Stateless: it reads the battle it is given, one of `scripted_battle`."""

    def choose(self, battle: Any, request: Request, seed: int) -> ScriptedChoice:
        """The answer to `request`, whose lines `battle` has read. Equal seeds draw equally."""


def scripted_player(kind: str, gen: int, doubles: bool) -> SeatPlayer:
    """The player called `kind`, one of SCRIPTED."""
    return OnePlyPlayer(gen, doubles) if kind == DAMAGE else ScriptedPlayer(kind, doubles)


def scripted_battle(kind: str, role: str, gen: int, doubles: bool) -> SeatView | StockReader:
    """A new battle for that player to read, at the seat `role` ("p1")."""
    if kind == DAMAGE:
        return (SeatDoubleBattle if doubles else SeatBattle)(role, gen)
    return (StockDoubleBattle if doubles else StockBattle)(role, gen)
