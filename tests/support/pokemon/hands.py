"""Questions to the host's damage formula and its damage bot (hands.mjs), about Pokemon made up for them."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson
from poke_env.battle.pokemon_type import PokemonType

from simul.env_worker.games.pokemon.install.node import find_node
from simul.env_worker.games.pokemon.tables.host_tables import encoder_tables

Fighter = dict[str, Any]
BODY = {"species": "none", "level": 80, "stats": (300, 200, 200, 200, 200, 200), "ability": "", "item": "", "tera": 0}
WHOLE = {"terastallized": False, "hp": 6, "maxHp": 6, "status": "", "stages": [0] * 5, "effects": [], "down": 0}


def type_id(name: str) -> int:
    """As the formula counts types."""
    return int(PokemonType.from_name(name).value)


def fighter(*types: int, **more: Any) -> Fighter:
    """At level 80, every stat 200 and hp 300, without anything that changes damage but `more`."""
    return BODY | WHOLE | {"types": types, "baseTypes": types} | more


class Hands:
    """The process that answers."""

    def __init__(self) -> None:
        script = Path(__file__).with_suffix(".mjs")
        self.process = subprocess.Popen([find_node().path, script], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._known: set[int] = set()

    def ask(self, gen: int = 9, **question: Any) -> Any:
        """The answer to one question."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        if gen not in self._known:
            self._known.add(gen)
            self.process.stdin.write(orjson.dumps({"tables": encoder_tables(gen)}) + b"\n")
        self.process.stdin.write(orjson.dumps({"gen": gen, **question}) + b"\n")
        self.process.stdin.flush()
        return orjson.loads(self.process.stdout.readline())


@contextmanager
def answering_hands() -> Iterator[Hands]:
    """A process that ends with the block."""
    hands = Hands()
    with hands.process:
        yield hands
        assert hands.process.stdin is not None
        hands.process.stdin.close()
