"""The tracker's tables agree with what poke-env does with the same data."""

from __future__ import annotations

from poke_env.battle.pokemon import Pokemon
from poke_env.data import GenData

from simul.env_worker.games.pokemon.encoding.host_tables import STAT_ORDER, tracker_tables

GEN = 8  # has every kind of entry that poke-env cannot use


def test_species_are_those_that_poke_env_can_make():
    species = tracker_tables(GEN)["species"]
    for id_ in GenData.from_gen(GEN).pokedex:
        try:
            mon = Pokemon(GEN, species=id_)
        except (KeyError, TypeError):
            assert id_ not in species
            continue
        types, stats, abilities, base, forme_ability = species[id_]
        assert types[0] == mon.type_1.value
        assert (mon.type_2.value if mon.type_2 else None) == (types[1] if len(types) > 1 else None)
        assert dict(zip(STAT_ORDER, stats)) == mon.base_stats
        assert base == mon.base_species
        assert forme_ability == mon.forme_change_ability
        assert forme_ability is not None or abilities == mon.possible_abilities
