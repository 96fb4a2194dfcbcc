"""Teams no rule allows: any species with any ability, item and moves, and much of what battles rarely show.

Custom games are played with them so that the protocol's rare events come up.
"""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from poke_env.data import GenData, to_id_str

from simul.env_worker.games.pokemon.tables import layout

ITEMS = (Path(layout.__file__).parent / "items.txt").read_text().split()
RARE_MOVES_TEXT = """
acupressure aromatherapy assist batonpass bellydrum clearsmog coil conversion conversion2 copycat courtchange
covet curse dig doomdesire dynamicpunch encore fly forestscurse guardswap haze healbell heartswap hyperbeam
lunardance mefirst metronome mimic mirrormove partingshot payback perishsong powerswap protect psychup recover
reflecttype rest revivalblessing roar roleplay skillswap sleeptalk soak solarbeam spectralthief spikes
stealthrock substitute swagger switcheroo telekinesis thief topsyturvy toxic toxicspikes transform triattack
trick uturn wish yawn
"""
RARE_MOVES = RARE_MOVES_TEXT.split()
RARE_POKEMON_TEXT = """
aegislash/leftovers/stancechange cherrim/heatrock/flowergift charizard/charizarditex/blaze
cramorant/leftovers/gulpmissile ditto/choicescarf/imposter eiscue/leftovers/iceface gardevoir/leppaberry/trace
groudon/redorb/drought hooh/powerherb/regenerator kyogre/blueorb/drizzle mewtwo/mewtwonitey/pressure
mimikyu/ghostiumz/disguise minior/whiteherb/shieldsdown morpeko/leftovers/hungerswitch oricorio/leftovers/dancer
ogerponwellspring/wellspringmask/waterabsorb pikachu/leppaberry/symbiosis porygon2/leftovers/download
snorlax/normaliumz/magician terapagos/leftovers/terashift weezinggalar/leftovers/neutralizinggas
yamask/leftovers/mummy yamaskgalar/leftovers/wanderingspirit zoroark/lifeorb/illusion
zygarde/leftovers/powerconstruct smeargle/leppaberry/frisk weavile/leftovers/pickpocket
metagross/metagrossite/clearbody
"""
RARE_POKEMON = RARE_POKEMON_TEXT.split()
TERA_TYPES = ("Fire", "Water", "Ghost", "Normal", "Stellar")


class Choice(NamedTuple):
    """What a generation offers, by id."""

    species: list[str]
    abilities: list[str]
    moves: list[str]
    rare_moves: list[str]
    rare_pokemon: list[list[str]]  # [species, item, ability]


@cache
def _choice(gen: int) -> Choice:
    data = GenData.from_gen(gen)
    own = {id_: entry for id_, entry in data.pokedex.items() if _is_own_species(id_, entry)}
    moves = {id_: move for id_, move in data.moves.items() if not ("isZ" in move or "isMax" in move)}
    return Choice(
        species=list(own),
        abilities=sorted({to_id_str(ability) for entry in own.values() for ability in entry["abilities"].values()}),
        moves=list(moves),
        rare_moves=[move for move in RARE_MOVES if move in moves],
        rare_pokemon=[rare.split("/") for rare in RARE_POKEMON if rare.split("/")[0] in own],
    )


def _is_own_species(id_: str, entry: dict[str, Any]) -> bool:
    """Not MissingNo, not Create-A-Pokemon, no spelling of another one."""
    return "types" in entry and entry["num"] > 0 and to_id_str(entry["name"]) == id_


def wild_team(gen: int, seed: object) -> str:
    """A packed team of six; the same seed gives the same team."""
    rng = random.Random(f"{gen} {seed}")
    choice = _choice(gen)
    rare = rng.sample(choice.rare_pokemon, min(3, len(choice.rare_pokemon)))
    common = [[name, "", ""] for name in rng.sample(choice.species, 6 - len(rare))]
    return "]".join(_packed(rng, gen, choice, *pokemon) for pokemon in rng.sample(rare + common, 6))


def _packed(rng: random.Random, gen: int, choice: Choice, species: str, item: str, ability: str) -> str:
    moves = rng.sample(choice.moves, 2) + rng.sample(choice.rare_moves, 2)
    if gen >= 2:
        item = item or rng.choice(ITEMS)
    if gen >= 3:
        ability = ability or rng.choice(choice.abilities)
    tera = rng.choice(TERA_TYPES) if gen == 9 else ""
    level = rng.choice((50, 80, 100))
    return f"|{species}|{item}|{ability}|{','.join(moves)}|serious|85,85,85,85,85,85||||{level}|,,,G,10,{tera}"
