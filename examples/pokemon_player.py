"""From a poke-env project: a `Player` of your own, as an opponent. From the folder that holds this one:

    simul up pokemon --set opponents=examples.pokemon_player:Strongest:0.5,self:0.5

and without a policy:

    simul eval pokemon --opponent examples.pokemon_player:Strongest --opponent max --battles 400
"""

from __future__ import annotations

from poke_env.battle import Battle
from poke_env.player import Player
from poke_env.player.battle_order import BattleOrder


class Strongest(Player):
    """Takes the move with the largest base power times effectiveness."""

    def choose_move(self, battle: Battle) -> BattleOrder:
        """Called for each request, in a process of its own; no server is needed."""
        foe = battle.opponent_active_pokemon
        if not battle.available_moves or foe is None:
            return self.choose_random_move(battle)
        best = max(battle.available_moves, key=lambda move: move.base_power * foe.damage_multiplier(move))
        return self.create_order(best)
