"""Players of a user's own: those that play, and those that fail in every way."""

from __future__ import annotations

import asyncio
import os
import time

from poke_env.battle.pokemon import Pokemon
from poke_env.player import Player, RandomPlayer

HANGS_SEC = 1000.0


class Plain:
    """No poke-env Player; it thinks for a moment, prints, and answers with a text where it does not switch."""

    async def choose_move(self, battle):
        await asyncio.sleep(0.001)
        print('{"answer": [0, 0, 1, "move 1", 1, {}]}')
        os.write(1, b"from C\n")
        order = Player.choose_random_move(battle)
        return order if isinstance(order.order, Pokemon) else order.message


class Careless(RandomPlayer):
    """From the second turn of its battles 0, 1, 2, 3 on it raises, is illegal, hangs, dies; others it plays."""

    def choose_move(self, battle):
        number = int(battle.battle_tag.rpartition("-")[2]) // 2
        if battle.turn >= 2:
            if number == 0:
                raise ValueError("careless")
            if number == 1:
                return "/choose move 9"
            if number == 2:
                time.sleep(HANGS_SEC)
            if number == 3:
                os._exit(3)
        return super().choose_move(battle)


class WithPath(RandomPlayer):
    """Needs an argument."""

    def __init__(self, path):
        super().__init__()


class Without:
    """Does not choose."""


def made(battle_format):
    """A function that makes a player."""
    return RandomPlayer(battle_format=battle_format)
