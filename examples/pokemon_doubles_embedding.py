"""The same in doubles, where `slot` (0 left, 1 right) is the one that decides. From the folder that holds this one:

    simul up pokemon --set pokemon.format=gen9randomdoublesbattle --set opponents=max:1 \
        --set pokemon.observation=examples.pokemon_doubles_embedding:Pair
"""

from __future__ import annotations

from poke_env.battle import DoubleBattle


class Pair:
    """Power of the slot's moves against either foe, beside the built-in observation."""

    names = tuple(f"power.{i}.{foe}" for i in range(4) for foe in ("left", "right"))
    size = len(names)

    def embed_battle(self, battle: DoubleBattle, slot: int) -> list[float]:
        """Called before the decision of each slot."""
        own, foes = battle.active_pokemon[slot], battle.opponent_active_pokemon
        moves = list(own.moves.values())[:4] if own else []
        power = [m.base_power / 400 * (foe.damage_multiplier(m) if foe else 0.0) for m in moves for foe in foes]
        return power + [0.0] * (self.size - len(power))
