"""Hits of real battles (record_hits.mjs) as the damage formula foresees them."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from simul.env_worker.games.pokemon.install.node import find_node
from tests.support.pokemon.hands import Fighter, Hands, type_id

RECORDER = Path(__file__).with_name("record_hits.mjs")
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


def foreseen(hands: Hands, hit: Hit) -> np.ndarray | None:
    """Every roll of the hit, 0s where there is no damage; None for a move that the tables leave out."""
    name, user = hit["move"], fighter(hit["user"])
    if name in RISEN:
        user["effects"] = [*user["effects"], "PREPARING"]
    rolls = hands.ask(
        hit["gen"],
        rolls=f"hiddenpower{hit['hidden'].lower()}" if name == "hiddenpower" else name,
        power=GROWING[name] * hit["hit"] if name in GROWING else None,
        user=user,
        foe=fighter(hit["foe"]),
        screens=hit["screens"],
        weather=hit["weather"].upper(),
        terrain=hit["terrain"].upper().replace("TERRAIN", "_TERRAIN"),
        gravity=hit["gravity"],
    )
    return None if rolls is None else np.array(rolls)


def fighter(told: dict[str, Any]) -> Fighter:
    types, born = (list(map(_type, told[name])) for name in ("types", "base_types"))
    more = {"types": types, "baseTypes": born, "tera": _type(told["tera"]), "maxHp": told["max_hp"]}
    return told | more


def _type(name: str) -> int:
    return 19 if name == "???" else type_id(name) if name else 0
