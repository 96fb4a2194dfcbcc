"""Custom teams for the audit: species with an ability of their own, items of the generation, any moves, many rare ones.

(The wild teams of `wild_teams.py` have abilities and items that their generation or species never had: no rule
says what the simulator should do with those.)
"""

from __future__ import annotations

import random
from functools import cache
from typing import NamedTuple

from poke_env.battle.move import Move
from poke_env.data import GenData, to_id_str

from tests.support.pokemon.wild_teams import RARE_MOVES, TERA_TYPES

# By the generation that brought them.
ITEMS = {
    2: "leftovers quickclaw scopelens brightpowder",
    3: "choiceband sitrusberry lumberry salacberry whiteherb shellbell leppaberry",
    4: "lifeorb toxicorb flameorb choicescarf choicespecs powerherb focussash jabocaberry rowapberry stickybarb",
    5: "lightclay airballoon redcard ejectbutton rockyhelmet ringtarget normalgem",
    6: "assaultvest weaknesspolicy keeberry marangaberry",
    7: "electricseed psychicseed normaliumz firiumz ghostiumz psychiumz wateriumz",
    8: "ejectpack roomservice heavydutyboots throatspray blunderpolicy",
    9: "boosterenergy clearamulet loadeddice mirrorherb covertcloak",
}
# first generation, last generation, species, item or "", ability or "" (any of its own), moves that it has
RARE_TEXT = """
3 9 castform - forecast sunnyday,raindance
4 9 cherrim - flowergift sunnyday
5 9 ditto choicescarf imposter transform
5 9 zoroark lifeorb illusion nastyplot
5 9 darmanitan - zenmode bellydrum
5 9 meloetta - serenegrace relicsong
6 7 charizard charizarditex blaze solarbeam
6 7 metagross metagrossite clearbody protect
6 7 gardevoir gardevoirite trace wish
6 7 groudon redorb drought solarbeam
6 7 kyogre blueorb drizzle protect
6 9 aegislash leftovers stancechange kingsshield,shadowball
6 9 greninja lifeorb protean uturn
7 9 mimikyu leftovers disguise substitute
7 9 minior whiteherb shieldsdown shellsmash
7 7 zygarde leftovers powerconstruct rest
7 9 wishiwashi - schooling rest
7 9 oricorio - dancer quiverdance
8 9 cramorant - gulpmissile surf
8 9 eiscue - iceface bellydrum
8 9 morpeko - hungerswitch aurawheel
8 9 weezinggalar - neutralizinggas toxicspikes
8 9 cinderace - libero courtchange
8 9 cyclizar - regenerator shedtail
9 9 ogerponwellspring wellspringmask waterabsorb encore
9 9 terapagos - terashift calmmind
9 9 palafin - zerotohero flipturn
9 9 orthworm - eartheater shedtail
2 9 smeargle - - batonpass,spiderweb
2 9 umbreon - - batonpass,meanlook
3 9 ninjask - speedboost batonpass,swordsdance
3 9 breloom toxicorb poisonheal protect
2 9 politoed - - perishsong,psychup
1 9 gengar - - substitute,confuseray
"""


class RarePokemon(NamedTuple):
    first: int
    last: int
    species: str
    item: str
    ability: str
    moves: list[str]


def _rare(line: str) -> RarePokemon:
    first, last, species, item, ability, moves = line.replace(" -", " ").split(" ")
    return RarePokemon(int(first), int(last), species, item, ability, moves.split(","))


RARE = [_rare(line) for line in RARE_TEXT.strip().split("\n")]


class _Offer(NamedTuple):
    """What a generation has, by id."""

    abilities: dict[str, list[str]]  # of each species
    names: dict[str, str]  # what the protocol calls each species
    moves: list[str]
    rare_moves: list[str]
    items: list[str]
    rare: list[RarePokemon]


@cache
def _offer(gen: int) -> _Offer:
    data = GenData.from_gen(gen)
    own = {
        name: [to_id_str(ability) for ability in entry["abilities"].values()]
        for name, entry in data.pokedex.items()
        if "types" in entry
        and entry["num"] > 0
        and to_id_str(entry["name"]) == name
        and "battleOnly" not in entry
        and "requiredItem" not in entry
        and "requiredItems" not in entry
        and not entry.get("forme", "").startswith(("Mega", "Primal", "Gmax"))
    }
    moves = [name for name, move in data.moves.items() if not ("isZ" in move or "isMax" in move)]
    return _Offer(
        own,
        {name: data.pokedex[name].get("baseSpecies", name).lower() for name in own},
        moves,
        [move for move in RARE_MOVES if move in data.moves],
        " ".join(items for first, items in ITEMS.items() if first <= gen).split(),
        [rare for rare in RARE if rare.first <= gen <= rare.last and rare.species in own],
    )


def custom_team(gen: int, seed: object) -> str:
    """A packed team of six, three of them rare; the same seed gives the same team."""
    rng, offer = random.Random(f"{gen} {seed}"), _offer(gen)
    rare = rng.sample(offer.rare, min(3, len(offer.rare)))
    taken = {offer.names[one.species] for one in rare}
    others = [name for name in offer.abilities if offer.names[name] not in taken]
    names = rng.sample(others, 6 - len(rare))
    while len({offer.names[name] for name in names}) < len(names):  # formes of one species have one name in battle
        names = rng.sample(others, 6 - len(rare))
    members = [*rare, *(RarePokemon(1, 9, name, "", "", []) for name in names)]
    return "]".join(_packed(rng, gen, offer, member) for member in rng.sample(members, 6))


def _packed(rng: random.Random, gen: int, offer: _Offer, member: RarePokemon) -> str:
    moves = [move for move in member.moves if move in offer.moves]
    while len(moves) < 4:
        move = rng.choice(offer.rare_moves if rng.random() < 0.5 and offer.rare_moves else offer.moves)
        if move != "struggle" and Move.retrieve_id(move) not in map(
            Move.retrieve_id, moves
        ):  # one hidden power, as everywhere
            moves.append(move)
    item = (member.item or rng.choice(offer.items)) if gen >= 2 else ""
    ability = (member.ability or rng.choice(offer.abilities[member.species])) if gen >= 3 else "noability"
    spread = "85,85,85,85,85,85" if gen > 2 else "252,252,252,252,252,252"
    tera = rng.choice(TERA_TYPES) if gen == 9 else ""
    level = rng.choice((50, 80, 100))
    return f"|{member.species}|{item}|{ability}|{','.join(moves)}|serious|{spread}||||{level}|,,,G,10,{tera}"


def team(*members: str, level: int = 80, spread: str = "serious|85,85,85,85,85,85") -> str:
    """Of "species/ability/move,move" or "species/ability/move,move/item"."""
    packed = []
    for member in members:
        species, ability, moves, item = (*member.split("/"), "")[:4]
        packed.append(f"|{species}|{item}|{ability}|{moves}|{spread}|M|||{level}|")
    return "]".join(packed)
