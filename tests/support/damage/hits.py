"""Hits of real battles (record_hits.mjs) as the damage formula's own input."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from simul.env_worker.games.pokemon.damage.formula import hit_before_roll, rolls
from simul.env_worker.games.pokemon.damage.moves import damage_move
from simul.env_worker.games.pokemon.damage.pairs import Attacker, Defender
from simul.env_worker.games.pokemon.damage.rules import tables
from simul.env_worker.games.pokemon.damage.types import FACTS, PREPARING, Fighter, Surroundings
from simul.env_worker.games.pokemon.encoding.profiles import type_row

from simul.env_worker.games.pokemon.install.node import find_node

RECORDER = Path(__file__).with_name("record_hits.mjs")
WEATHERS = {
    "sunnyday": ("sun", 0),
    "desolateland": ("sun", 1),
    "raindance": ("rain", 0),
    "primordialsea": ("rain", 2),
    "sandstorm": ("sand", 0),
    "snowscape": ("snow", 0),
    "hail": ("snow", 4),
    "deltastream": ("", 3),
}
TERRAINS = {f"{name}terrain": f"{name}_terrain" for name in ("electric", "grassy", "misty", "psychic")}
RISEN = ("meteorbeam", "electroshot")  # the user's stage was raised before the hit that was recorded
GROWING = {"tripleaxel": 20, "triplekick": 10}  # with every hit; the tables hold the average
Hit = dict[str, Any]


@cache
def record(generations: tuple[int, ...], count: int, seed: int) -> list[Hit]:
    """`count` hits of each generation, of seeded random battles, with `gen` and the true sets.

    One process plays them all, once for all tests that ask for the same: most of the time is Node's to start.
    """
    wanted = ",".join(map(str, generations))
    command = [find_node().path, str(RECORDER), wanted, str(count), str(seed)]
    out = subprocess.run(command, check=True, capture_output=True, timeout=600).stdout
    return [orjson.loads(line) for line in out.splitlines()]


def foreseen(gen: int, hit: Hit) -> np.ndarray | None:
    """Every roll of the hit, a single 0 where there is none; None for a move that the tables leave out."""
    around = surroundings(hit)
    name = hit["move"]
    move = damage_move(gen, f"hiddenpower{hit['hidden'].lower()}" if name == "hiddenpower" else name)
    if move is None:
        return None
    if name in GROWING:
        move = move._replace(power=GROWING[name] * hit["hit"])
    user = fighter(hit["user"])
    if name in RISEN:
        user = user._replace(effects=(*user.effects, PREPARING))
    ((_, move_used),) = Attacker(gen, user, ((name, move),), False, around).moves
    defender = Defender(gen, fighter(hit["foe"]), tuple(hit["screens"]), around, {})
    blow = hit_before_roll(tables(gen), move_used, defender.target_for(move_used))
    return np.array([0] if blow is None else rolls(blow))


def fighter(told: dict[str, Any]) -> Fighter:
    return Fighter(
        species=told["species"],
        level=told["level"],
        stats=tuple(told["stats"]),
        types=tuple(_type(name) for name in told["types"]),
        base_types=tuple(_type(name) for name in told["base_types"]),
        ability=told["ability"],
        item=told["item"],
        tera=type_row(told["tera"]),
        terastallized=told["terastallized"],
        hp=told["hp"],
        max_hp=told["max_hp"],
        status=told["status"],
        stages=tuple(told["stages"]),
        effects=tuple(told["effects"]),
        down=told["down"],
    )


def _type(name: str) -> int:
    return 19 if name == "???" else type_row(name)


def surroundings(hit: Hit) -> Surroundings:
    weather, harsh = WEATHERS.get(hit["weather"], ("", 0))
    terrain = TERRAINS.get(hit["terrain"], "")
    return Surroundings(sum(FACTS[fact] for fact in (weather, terrain) if fact), harsh, hit["gravity"])
