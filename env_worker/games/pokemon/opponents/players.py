"""The scripted players by name: poke-env's, and the damage bot."""

from __future__ import annotations

from typing import Protocol

from simul.env_worker.games.pokemon.battle_view.seat_battle import Request, SeatView
from simul.env_worker.games.pokemon.opponents.one_ply.player import OnePlyPlayer
from simul.env_worker.games.pokemon.opponents.scripted import PLAYERS, ScriptedChoice, ScriptedPlayer

DAMAGE = "damage"
SCRIPTED = (*PLAYERS, DAMAGE)


class SeatPlayer(Protocol):
    """Answers for a seat. Stateless: it reads the battle it is given."""

    def choose(self, battle: SeatView, request: Request, seed: int) -> ScriptedChoice:
        """The answer to `request`, which `battle` has parsed. Equal seeds draw equally."""


def scripted_player(kind: str, gen: int, doubles: bool) -> SeatPlayer:
    """The player called `kind`, one of SCRIPTED."""
    return OnePlyPlayer(gen, doubles) if kind == DAMAGE else ScriptedPlayer(kind, doubles)
