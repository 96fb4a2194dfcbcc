"""What a foe may still have: the pinned simulator's own sets of random battles, narrowed by what it has shown.

A set is one of a species' roles, each with a pool of moves, abilities and tera types. Roles that contradict what
was shown are out; the others count by how likely they would have shown it. Within a role all are equally likely,
which is nearly how the simulator draws them. Only public data and the seat's own view enter.

`SetBlocks` writes what follows from it into the observation's blocks `set.*`.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from functools import cache, lru_cache
from itertools import chain
from typing import Any, NamedTuple

import orjson
from poke_env.battle.pokemon import Pokemon
from poke_env.data import GenData, to_id_str

from simul.common.errors import ConfigError
from simul.env_worker.games.pokemon.battle_view.counters import move_key
from simul.env_worker.games.pokemon.encoding.pokemon_features import HALF
from simul.env_worker.games.pokemon.encoding.profiles import move_row, type_row
from simul.env_worker.games.pokemon.install.folder import HOST_FOLDER
from simul.env_worker.games.pokemon.tables import layout
from simul.env_worker.games.pokemon.tables.layout import POSSIBLE_ABILITIES, POSSIBLE_MOVES, POSSIBLE_TERAS
from simul.env_worker.games.pokemon.tables.vocabulary import vocabulary

DATA = HOST_FOLDER / "node_modules" / "pokemon-showdown" / "dist" / "data" / "random-battles"
MOVE_SLOTS = 4
KNOWN_FORMATS = re.compile(r"gen[1-9](unrated)?randombattle(blitz)?")
HIDDEN_BY_THE_BASE = ("Mega", "Gmax", "Primal")  # formes that come out as their base species


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


def check_sets_known(battle_format: str) -> None:
    """Raises ConfigError for a format without known sets."""
    if not KNOWN_FORMATS.fullmatch(battle_format):
        raise ConfigError(
            f"pokemon.set_knowledge knows the sets of gen1randombattle to gen9randombattle, not of {battle_format}: "
            "set it to false."
        )


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
        if any(part in species.get("forme", "") for part in HIDDEN_BY_THE_BASE):
            found.setdefault(to_id_str(species["baseSpecies"]), []).extend(roles)
    for name, species in dex.items():  # a forme that a Pokemon takes on in battle has the sets of the one it had before
        before = species.get("battleOnly")
        if name not in found and isinstance(before, str) and to_id_str(before) in found:
            found[name] = found[to_id_str(before)]
    return found


@lru_cache(maxsize=16384)
def possibilities(
    gen: int, species: str, base: str, level: int, shown: tuple[str, ...], ability: int, tera: int
) -> tuple[float, ...]:
    """`layout.POSSIBLE`. `ability` (row), `tera` (type id): 0 while unknown; `base`: where the species has no sets."""
    sets = known_sets(gen)
    roles = sets.get(species) or sets.get(base) or []
    roles = [role for role in roles if role.level in (0, level)] or roles
    shown = tuple([move for move in shown if any(move in role.moves for role in roles)])
    roles = [role for role in roles if all(move in role.moves for move in shown)] or roles
    roles = [role for role in roles if ability in role.abilities] or roles
    roles = [role for role in roles if tera in role.teras] or roles
    weights = [_likelihood(len(role.moves), len(shown)) for role in roles]
    total = 0.0
    for weight in weights:  # not sum(), which Python 3.12 rounds otherwise than the host
        total += weight
    moves: dict[int, float] = {}
    abilities: dict[int, float] = {}
    teras: dict[int, float] = {}
    for role, weight in zip(roles, weights):
        share = weight / total
        hidden = [row for move, row in zip(role.moves, role.rows) if move not in shown]
        if hidden and len(shown) < MOVE_SLOTS:
            _add(moves, hidden, share * min((MOVE_SLOTS - len(shown)) / len(hidden), 1.0))
        if role.abilities and not ability:
            _add(abilities, role.abilities, share / len(role.abilities))
        if role.teras and not tera:
            _add(teras, role.teras, share / len(role.teras))
    return (
        *_likeliest(moves, POSSIBLE_MOVES),
        *_likeliest(abilities, POSSIBLE_ABILITIES),
        *_likeliest(teras, POSSIBLE_TERAS),
    )


def _first_pool(entry: dict[str, Any]) -> list[str]:
    """Gen 1 has one pool, in parts."""
    parts = [entry.get(part, ()) for part in ("essentialMoves", "exclusiveMoves", "comboMoves", "moves")]
    return list(dict.fromkeys(chain.from_iterable(parts)))


def _role(level: int, pool: dict[str, Any]) -> Role:
    names = [to_id_str(name) for name in pool["movepool"]]
    return Role(
        level,
        tuple([move_key(name) for name in names]),
        tuple([move_row(name) or move_row(move_key(name)) for name in names]),
        tuple([vocabulary().ability[to_id_str(name)] for name in pool.get("abilities", ())]),
        tuple([type_row(name) for name in pool.get("teraTypes", ())]),
    )


def _likelihood(pool: int, shown: int) -> float:
    """Chance that `shown` given moves are among the four drawn from a pool."""
    chance = 1.0
    if pool > MOVE_SLOTS:
        for i in range(min(shown, MOVE_SLOTS)):
            chance *= (MOVE_SLOTS - i) / (pool - i)
    return chance


def _add(chances: dict[int, float], rows: Sequence[int], chance: float) -> None:
    for row in rows:
        chances[row] = chances.get(row, 0.0) + chance


def _likeliest(chances: dict[int, float], slots: int) -> list[float]:
    """Ids, then their chances; of equals the first."""
    first = sorted(chances.items(), key=lambda item: -item[1])[:slots]
    empty = [0.0] * (slots - len(first))
    return [*[float(row) for row, _ in first], *empty, *[min(chance, 1.0) for _, chance in first], *empty]


WIDTH = layout.width(layout.POSSIBLE)
_BLOCK = struct.Struct(f"<{WIDTH}e")
_NOTHING_KNOWN = (0.0,) * WIDTH


class SetBlocks:
    """Of one seat; `start`: where they begin in its buffer, in numbers."""

    def __init__(self, buffer: bytearray, gen: int, start: int) -> None:
        self._buffer = buffer
        self._gen = gen
        self._start = start
        self._written: list[tuple[Any, ...]] = [()] * layout.TEAM_SIZE

    def write(self, foes: Sequence[Pokemon]) -> None:
        """`foes` in the order of `foe.*`."""
        abilities = vocabulary().ability
        for index in range(layout.TEAM_SIZE):
            key: tuple[Any, ...] = ()
            if index < len(foes):
                mon = foes[index]
                tera = mon._terastallized_type
                key = (
                    mon._species,
                    mon._level,
                    tuple(mon._moves._base_moves),
                    abilities.get(mon._ability or "", 0),
                    tera._value_ if tera else 0,
                )
            if key == self._written[index]:
                continue
            self._written[index] = key
            numbers = possibilities(self._gen, key[0], mon.base_species, *key[1:]) if key else _NOTHING_KNOWN
            _BLOCK.pack_into(self._buffer, (self._start + index * WIDTH) * HALF, *numbers)
