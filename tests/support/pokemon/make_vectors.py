"""Makes the golden vectors of `vectors.py`: `python -m tests.support.pokemon.make_vectors [NAME ...]`; no names: all.

Battles of the real simulator, both seats by seeded random choices, as the host's views see them.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from simul.env_worker.games.pokemon.formats.spec import ENCODER_VERSION, generation, is_doubles
from simul.env_worker.games.pokemon.formats.teams import legal_teams, read_teams
from simul.env_worker.games.pokemon.host.backend import BattleStart
from simul.env_worker.games.pokemon.host.host_messages import SeatRecord
from simul.env_worker.games.pokemon.host.node_host import NodeHost
from simul.env_worker.games.pokemon.install.node import find_node
from simul.env_worker.games.pokemon.tables import doubles_layout, layout
from simul.env_worker.games.pokemon.tables.layout import Extras
from tests.support.hosts import wait
from tests.support.pokemon.audit.teams import custom_team
from tests.support.pokemon.recorded import TEAMS
from tests.support.pokemon.vector_teams import EFFECTS, GIMMICKS
from tests.support.pokemon.vectors import (
    DEPENDENT,
    PARTS,
    Decision,
    Head,
    Record,
    Seat,
    Vectors,
    dependent,
    write_vectors,
)
from tests.support.pokemon.views import Seen, Views, running_views


class BattleSet(NamedTuple):
    """So many battles of a format; teams: of (battle, seat), None: the format draws them."""

    format: str
    battles: int
    teams: Callable[[int, int], str] | None = None
    team_file: str = ""
    requests: int = 55  # a battle stops when a seat has answered so many


def custom(battle_format: str, battles: int) -> BattleSet:
    """Of teams that no validator has seen."""
    gen = generation(battle_format)
    return BattleSet(battle_format, battles, lambda n, seat: custom_team(gen, (n, seat)))


def given(battle_format: str, battles: int, teams: Sequence[str]) -> BattleSet:
    """Of `teams`, each against the next."""
    return BattleSet(battle_format, battles, lambda n, seat: teams[(n + seat) % len(teams)])


SETS = {
    **{f"gen{gen}randombattle": BattleSet(f"gen{gen}randombattle", 6 if gen == 9 else 3) for gen in range(1, 10)},
    "gen9ou": BattleSet("gen9ou", 2, team_file="gen9ou.txt"),
    "gen9bssregi": BattleSet("gen9bssregi", 6, team_file="gen9bssregi.txt"),
    **{f"gen{gen}customgame": custom(f"gen{gen}customgame", 1) for gen in range(1, 10)},
    **{f"gen{gen}customgame.four": given(f"gen{gen}customgame", 3, GIMMICKS) for gen in (7, 8, 9)},
    "gen9customgame.effects": given("gen9customgame", 4, EFFECTS),
    "gen9randomdoublesbattle": BattleSet("gen9randomdoublesbattle", 4),
    "gen9vgc2025regi": BattleSet("gen9vgc2025regi", 5, team_file="gen9bssregi.txt"),
    "gen9championsvgc2026regmb": BattleSet("gen9championsvgc2026regmb", 3, team_file="gen9championsvgc2026regmb.txt"),
    **{f"gen{gen}doublescustomgame": custom(f"gen{gen}doublescustomgame", 2) for gen in range(3, 10)},
    **{f"gen{gen}doublescustomgame.four": given(f"gen{gen}doublescustomgame", 6, GIMMICKS) for gen in (7, 8, 9)},
    "gen9doublescustomgame.effects": given("gen9doublescustomgame", 8, EFFECTS),
}
KINDS = {"gimmick": 0.35, "switch": 0.2, "move": 0.45}


class Reader:
    """One seat of one battle, seen once for each layout."""

    def __init__(self, views: Views, chosen: BattleSet, battle: int, seat: int) -> None:
        self.free_switches = battle // 2 % 3
        self.records: list[Record] = []
        self.rows: list[NDArray[np.uint16]] = []
        self.refused = False
        self._rng = random.Random(f"{chosen.format} {battle} {seat}")
        self._doubles = is_doubles(chosen.format)
        self._views = [views.open(chosen.format, seat, extras, self.free_switches) for extras in layouts(chosen.format)]

    def read(self, record: SeatRecord) -> str | None:
        """Take a record; returns the answer to its request."""
        decisions: list[Decision] = []
        self.records.append(Record(record.lines, record.request, self.refused, decisions, None))
        if record.request is None:
            finals = [view.end(record.lines) for view in self._views]
            self.records[-1] = self.records[-1]._replace(final=finals[0])
            return None
        answers: list[str | Seen] = [view.see(record.lines, record.request, self.refused) for view in self._views]
        self.refused = False
        while not isinstance(answers[0], str):
            seen = [answer for answer in answers if isinstance(answer, Seen)]
            self.rows.append(self._wide_row(seen))
            action = self._choice(seen[0].legal)
            decisions.append(Decision(seen[0].facts, "".join(map(str, seen[0].mask.tolist())), action))
            answers = [view.act(action) for view in self._views]
        return answers[0]

    def check(self) -> None:
        """Every line was taken."""
        assert not any(view.errors for view in self._views)

    def _choice(self, legal: list[int]) -> int:
        """A kind of action by its weight, then any of this kind."""
        first_move, plain = (7, 20) if self._doubles else (6, 4)
        kinds: dict[str, list[int]] = {}
        for action in legal:
            kind = "switch" if action < first_move else "move" if action < first_move + plain else "gimmick"
            kinds.setdefault(kind, []).append(action)
        [kind] = self._rng.choices(list(kinds), [KINDS[kind] for kind in kinds])
        return self._rng.choice(kinds[kind])

    def _wide_row(self, seen: list[Seen]) -> NDArray[np.uint16]:
        """All parts of the open decision; layouts that share one must agree on it."""
        found = [one.observation.view(np.uint16) for one in seen]
        if self._doubles:
            return found[0]
        three, six, none = found
        base, sets, slices = len(none), layout.set_start(3), base_slices()
        by_damage, by_sets = (dependent(part, slices) for part in ("base.damage", "base.sets"))
        same = none.copy()
        same[by_damage] = six[by_damage]
        assert (six[:base] == same).all()
        same[by_sets] = three[by_sets]
        assert (three[:base] == same).all()
        return np.concatenate([none, six[by_damage], three[by_sets], three[base:sets], six[base:], three[sets:]])


def layouts(battle_format: str) -> tuple[Extras, ...]:
    """Those that a row is put together from."""
    sets = "random" in battle_format
    return (Extras(),) if is_doubles(battle_format) else (Extras(3, sets), Extras(6), Extras(0))


def base_slices() -> list[tuple[str, int, int]]:
    """Name, start and size of what all layouts of singles hold."""
    return [(part.name, part.start, part.size) for part in layout.slices(Extras(0))]


def head_of(battle_format: str) -> Head:
    """Parts of a row, and slices as the layouts name them."""
    gen = generation(battle_format)
    if is_doubles(battle_format):
        size = doubles_layout.OBSERVATION_SIZE
        slices = [[part.name, part.start, part.size] for part in doubles_layout.slices()]
        return Head(battle_format, gen, ENCODER_VERSION, {"base": [0, size]}, slices)
    three, six, none = layouts(battle_format)
    base, sets = layout.observation_size(none), layout.set_start(3)
    found = [(part.name, part.start, part.size) for part in layout.slices(three)]
    parts = {
        "base": base_slices(),
        **{part: [one for one in base_slices() if names.fullmatch(one[0])] for part, names in DEPENDENT.items()},
        "damage.3": [part for part in found if base <= part[1] < sets],
        "damage.6": [(part.name, part.start, part.size) for part in layout.slices(six) if part.start >= base],
        "sets": [part for part in found if part[1] >= sets],
    }
    start, starts, named = 0, {}, []
    for part in PARTS:
        starts[part] = [start, sum(size for _, _, size in parts[part])]
        for name, _, size in parts[part]:
            named.append([name, start, size])
            start += size
    return Head(battle_format, gen, ENCODER_VERSION, starts, named)


@dataclass
class Maker:
    """Plays one set."""

    host: NodeHost
    views: Views
    chosen: BattleSet
    rows: list[NDArray[np.uint16]] = field(default_factory=list)

    def vectors(self) -> Vectors:
        file = self.chosen.team_file
        legal = legal_teams(self.host, self.chosen.format, read_teams(str(TEAMS / file))) if file else []
        seats = [seat for battle in range(self.chosen.battles) for seat in self._battle(battle, legal)]
        return Vectors(head_of(self.chosen.format), seats, np.array(self.rows))

    def _battle(self, battle: int, legal: list[str]) -> Iterator[Seat]:
        readers = [Reader(self.views, self.chosen, battle, seat) for seat in (0, 1)]
        self.host.start_battle(battle, self.chosen.format, self._start(battle, legal))
        while not self._exchange(battle, readers):
            pass
        for seat, reader in enumerate(readers):
            yield Seat(battle, seat, reader.free_switches, reader.records, len(self.rows))
            self.rows += reader.rows

    def _exchange(self, battle: int, readers: list[Reader]) -> bool:
        """Send what was asked and answer what comes back; True = the battle is over."""
        self.host.flush()
        tick = wait(self.host)
        for error in tick.errors:
            assert error.kind == "unavailable", error
            readers[error.seat or 0].refused = True
        answers = [(record, readers[record.seat].read(record)) for record in tick.records]
        if tick.ended:
            for reader in readers:
                reader.check()
            return True
        if max(len(reader.records) for reader in readers) >= self.chosen.requests:
            self.host.stop_battle(battle)
            return False
        for record, words in answers:
            if words is not None:
                self.host.choose(battle, record.seat, record.request_number, words)
        return False

    def _start(self, battle: int, legal: list[str]) -> BattleStart:
        rng = random.Random(f"{self.chosen.format} {battle}")
        seed, first, second = ([rng.getrandbits(16) for _ in range(4)] for _ in range(3))
        teams: tuple[str | None, str | None] = (None, None)
        if self.chosen.teams:
            teams = (self.chosen.teams(battle, 0), self.chosen.teams(battle, 1))
        elif legal:
            teams = (rng.choice(legal), rng.choice(legal))
        return BattleStart(seed, (first, second), teams)


def main(wanted: list[str]) -> None:
    host = NodeHost(find_node().path)
    host.start()
    with running_views() as views:
        for name in wanted or SETS:
            vectors = Maker(host, views, SETS[name]).vectors()
            write_vectors(name, vectors)
            print(name, len(vectors.seats), "seats", len(vectors.rows), "decisions")
    host.close()


if __name__ == "__main__":
    main(sys.argv[1:])
