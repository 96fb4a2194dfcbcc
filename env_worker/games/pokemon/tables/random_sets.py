"""The pinned simulator's own sets of random battles: public data, by which the host says what a foe may still have.

A set is one of a species' roles, each with a pool of moves, abilities and tera types. Roles that contradict what
was shown are out; the others count by how likely they would have shown it. Within a role all are equally likely,
which is nearly how the simulator draws them (`node/encoder/set_knowledge.mjs`).
"""

from __future__ import annotations

import re
from functools import cache
from itertools import chain
from typing import Any, NamedTuple

import orjson
from poke_env.battle.move import Move
from poke_env.battle.pokemon_type import PokemonType
from poke_env.data import GenData, to_id_str

from simul.common.errors import ConfigError
from simul.env_worker.games.pokemon.install.folder import HOST_FOLDER
from simul.env_worker.games.pokemon.tables.vocabulary import vocabulary

DATA = HOST_FOLDER / "node_modules" / "pokemon-showdown" / "dist" / "data" / "random-battles"
KNOWN_FORMATS = re.compile(r"gen[1-9](unrated)?randombattle(blitz)?")
HIDDEN_BY_THE_BASE = ("Mega", "Gmax", "Primal")  # formes that come out as their base species
CALLED_AS_THE_BASE = ("greninjabond", "rockruffdusk")  # by every line and request


class Role(NamedTuple):
    """One kind of set; level 0: any.

    Attributes:
        moves: ids as the battle knows them, and their rows; hidden powers are one id with many rows.
        abilities: rows. teras: type ids.
    """

    level: int
    moves: tuple[str, ...]
    rows: tuple[int, ...]
    abilities: tuple[int, ...]
    teras: tuple[int, ...]


def sets_known(battle_format: str) -> bool:
    """Whether the sets of a format's teams are known: those of the random battles of singles are."""
    return KNOWN_FORMATS.fullmatch(battle_format) is not None


@cache
def known_sets(gen: int) -> dict[str, list[Role]]:
    """Roles by the species that a battle shows. Raises ConfigError where the simulator is not installed."""
    path = DATA / f"gen{gen}" / ("data.json" if gen == 1 else "sets.json")
    try:
        entries: dict[str, dict[str, Any]] = orjson.loads(path.read_bytes())
    except OSError as error:
        raise ConfigError(
            f"pokemon.set_knowledge: the simulator's {path.name} is missing; run `make setup`."
        ) from error
    dex = GenData.from_gen(gen).pokedex
    found: dict[str, list[Role]] = {}
    for name, entry in entries.items():
        pools = entry.get("sets") or [{"movepool": _first_pool(entry)}]
        roles = [_role(entry.get("level", 0), pool) for pool in pools if pool["movepool"]]
        found.setdefault(name, []).extend(roles)
        species = dex.get(name, {})
        if name in CALLED_AS_THE_BASE or any(part in species.get("forme", "") for part in HIDDEN_BY_THE_BASE):
            found.setdefault(to_id_str(species["baseSpecies"]), []).extend(roles)
    for name, species in dex.items():  # a forme that a Pokemon takes on in battle has the sets of the one it had before
        before = species.get("battleOnly")
        if name not in found and isinstance(before, str) and to_id_str(before) in found:
            found[name] = found[to_id_str(before)]
    return found


def _first_pool(entry: dict[str, Any]) -> list[str]:
    """Gen 1 has one pool, in parts."""
    parts = [entry.get(part, ()) for part in ("essentialMoves", "exclusiveMoves", "comboMoves", "moves")]
    return list(dict.fromkeys(chain.from_iterable(parts)))


def _role(level: int, pool: dict[str, Any]) -> Role:
    names = [to_id_str(name) for name in pool["movepool"]]
    return Role(
        level,
        tuple([Move.retrieve_id(name) for name in names]),
        tuple([_move_row(name) or _move_row(Move.retrieve_id(name)) for name in names]),
        tuple([vocabulary().ability[to_id_str(name)] for name in pool.get("abilities", ())]),
        tuple([int(PokemonType.from_name(name).value) for name in pool.get("teraTypes", ())]),
    )


def _move_row(move_id: str) -> int:
    rows = vocabulary().move
    return rows.get(move_id) or rows.get(move_id.rstrip("0123456789"), 0)
