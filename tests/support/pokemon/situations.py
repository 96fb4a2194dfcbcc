"""Short battles, each for one situation that is easily got wrong, recorded from the real simulator.

`situations/FORMAT.NAME.jsonl.gz` holds both seats of one; a test plays them again and compares.
`python -m tests.support.pokemon.situations` records them anew.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from typing import NamedTuple

import orjson

from simul.env_worker.games.pokemon.encoding.host_tables import encoder_tables
from simul.env_worker.games.pokemon.formats.spec import generation
from simul.env_worker.games.pokemon.host.backend import BattleStart
from simul.env_worker.games.pokemon.host.node_host import NodeHost
from simul.env_worker.games.pokemon.install.node import find_node
from tests.support.pokemon.recorded import FOLDER, RecordedSeat, recorded_seats
from tests.support.worlds import World, play


class Recipe(NamedTuple):
    """words: (seat, request number) -> the choice, "default" (the first move) where none is named.

    requests: so many of seat 0, then it is stopped.
    """

    name: str
    battle_format: str
    teams: tuple[str, str]
    words: dict[tuple[int, int], str] = {}
    requests: int = 3

    @property
    def start(self) -> BattleStart:
        return BattleStart([1, 2, 3, 4], ([5] * 4, [6] * 4), teams=self.teams)

    def choose(self, seat: int, number: int, _: object) -> str | None:
        return self.words.get((seat, number), "default") if seat or number < self.requests else None


def team(*members: str, level: int = 80, spread: str = "serious|85,85,85,85,85,85") -> str:
    """Of "species/ability/move,move" or "species/ability/move,move/item"."""
    packed = []
    for member in members:
        species, ability, moves, item = (*member.split("/"), "")[:4]
        packed.append(f"|{species}|{item}|{ability}|{moves}|{spread}|M|||{level}|")
    return "]".join(packed)


SINGLES = "gen9randombattle"
WALL = team("Shuckle/sturdy/splash,calmmind", "Slowbro/oblivious/splash,calmmind", level=100)
AEGISLASH = team("Aegislash/stancechange/tackle,kingsshield")
DISGUISED = team("Zoroark/illusion/splash,darkpulse", "Slowbro/oblivious/surf", "Garchomp/roughskin/earthquake")
COPYING = team("Slowbro/oblivious/splash,uturn", "Ditto/imposter/transform", "Garchomp/roughskin/earthquake")
COPIED = team("Garchomp/roughskin/swordsdance,protect,dragonclaw,firefang")
REVIVING = team("Pawmot/ironfist/revivalblessing", "Slowbro/oblivious/memento", "Torkoal/drought/splash")
RECHARGING = team("Necrozma/prismarmor/prismaticlaser,splash", "Slowbro/oblivious/surf")
ASLEEP = team("Snorlax//splash,bodyslam", "Slowbro//surf")
BENCH = ("Torkoal/drought/uturn", "Ditto/limber/splash", "Garchomp/roughskin/splash")
SHOWN = team(*(f"{name}/limber/splash" for name in ("Gengar", "Urshifu", "Snorlax", "Pawmot")))
TRAPPING = team("Gothitelle/shadowtag/splash")
RECIPES = (
    Recipe("illusion", SINGLES, (DISGUISED, team("Shuckle/sturdy/seismictoss,splash")), {(1, 1): "move 2"}),
    Recipe(
        "transform",
        SINGLES,
        (COPYING, COPIED),
        {(0, 1): "switch 2", (0, 3): "move 2", (0, 4): "switch 3"},
        requests=5,
    ),
    Recipe("forme_change", SINGLES, (AEGISLASH, AEGISLASH), {(1, 2): "move 2"}, requests=4),
    Recipe(
        "revival_blessing",
        SINGLES,
        (REVIVING, WALL),
        {(0, 1): "switch 2", (0, 3): "switch 2", (0, 5): "switch 2"},
        requests=6,
    ),
    Recipe("struggle", SINGLES, (WALL, team("Whimsicott/prankster/taunt"))),
    Recipe("recharge", SINGLES, (RECHARGING, WALL)),
    Recipe(
        "forced_switch",
        SINGLES,
        (team("Slowbro/oblivious/memento", *BENCH), WALL),
        {(0, 2): "switch 4", (0, 4): "switch 2"},
        requests=6,
    ),
    Recipe("maybe_trapped", SINGLES, (team(*BENCH[1:]), TRAPPING), {(0, 1): "switch 2"}, requests=2),
    Recipe(
        "preview",
        "gen9bssregi",
        (team("Slowbro/oblivious/splash", *BENCH), SHOWN),
        {(0, 1): "team 3,1,4", (1, 1): "team 2,3,4"},
    ),
    Recipe("mega", "gen7randombattle", (team("Charizard/blaze/ember/charizarditex"), WALL), {(0, 1): "move 1 mega"}),
    Recipe("pixels", "gen6battlespotsingles", (team("Gengar/cursedbody/nightshade"), WALL)),
    Recipe("fight", "gen1randombattle", (ASLEEP, team("Jynx//spore"))),
    Recipe("charging", SINGLES, (team("Venusaur/overgrow/solarbeam", "Slowbro/oblivious/surf"), WALL)),
)


def situation(name: str) -> tuple[RecordedSeat, RecordedSeat]:
    """Both seats of a recorded one."""
    one, other = recorded_seats(f"situations/*.{name}")
    return one, other


def play_all(host: NodeHost) -> Iterator[tuple[Recipe, World]]:
    """Every recipe, anew."""
    sent = 0
    for recipe in RECIPES:
        gen = generation(recipe.battle_format)
        if gen != sent:
            host.send_tables(encoder_tables(gen))
        sent = gen
        yield recipe, play(host, recipe.battle_format, recipe.start, recipe.choose)


def record() -> None:
    """Write them all."""
    (FOLDER / "situations").mkdir(exist_ok=True)
    host = NodeHost(find_node().path)
    host.start()
    for recipe, world in play_all(host):
        lines = [orjson.dumps({"battle": 0, "seat": seat.seat, "records": seat.records}) for seat in world.told]
        path = FOLDER / "situations" / f"{recipe.battle_format}.{recipe.name}.jsonl.gz"
        path.write_bytes(gzip.compress(b"\n".join(lines), mtime=0))
    host.close()


if __name__ == "__main__":
    record()
