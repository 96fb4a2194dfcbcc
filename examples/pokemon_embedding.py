"""From a poke-env project: an `embed_battle` of a dozen numbers, and a reward. From the folder that holds this one:

    simul up pokemon --set pokemon.observation=examples.pokemon_embedding:Dozen \
        --set pokemon.builtin_observation=false --set network.name=mlp_lstm \
        --set pokemon.reward=examples.pokemon_embedding:faint_reward --set opponents=max:1
"""

from __future__ import annotations

from poke_env.battle import AbstractBattle, Battle


class Dozen:
    """Power and effectiveness of the four moves, living Pokémon and hp of both sides."""

    names = (*(f"{what}.{i}" for what in ("power", "multiplier") for i in range(4)), "alive", "foes", "hp", "foe_hp")
    size = len(names)

    def embed_battle(self, battle: Battle) -> list[float]:
        """Called before each decision. The actions 6 to 9 are the moves in this order."""
        own, foe = battle.active_pokemon, battle.opponent_active_pokemon
        moves = list(own.moves.values())[:4] if own else []
        power = [move.base_power / 100 for move in moves]
        multiplier = [foe.damage_multiplier(move) / 4 if foe else 0.25 for move in moves]
        alive = sum(not mon.fainted for mon in battle.team.values()) / 6
        foes = 1 - sum(mon.fainted for mon in battle.opponent_team.values()) / 6
        hp = [mon.current_hp_fraction if mon else 0.0 for mon in (own, foe)]
        missing = [0.0] * (4 - len(moves))
        return [*power, *missing, *multiplier, *missing, alive, foes, *hp]


def faint_reward(battle: AbstractBattle, before: AbstractBattle) -> float:
    """What poke-env's reward_computing_helper calls fainted_value: 0.05 for each foe, less 0.05 for each own one."""
    ahead = [
        sum(mon.fainted for mon in seen.opponent_team.values()) - sum(mon.fainted for mon in seen.team.values())
        for seen in (battle, before)
    ]
    return 0.05 * (ahead[0] - ahead[1])
