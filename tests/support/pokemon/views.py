"""What the host's own views make of lines and requests: observations, masks, facts, the simulator's words.

One Node process (views.mjs) for any number of seats. `View` asks step by step; `seen` takes whole seats at once.
"""

from __future__ import annotations

import base64
import subprocess
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count, takewhile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import orjson
from numpy.typing import NDArray

from simul.env_worker.games.pokemon.formats.spec import generation, is_doubles
from simul.env_worker.games.pokemon.host.host_messages import BattleEnd
from simul.env_worker.games.pokemon.host.tally import RewardFacts, Standing, Tally
from simul.env_worker.games.pokemon.install.node import find_node
from simul.env_worker.games.pokemon.tables import doubles_layout, layout
from simul.env_worker.games.pokemon.tables.host_tables import encoder_tables
from simul.env_worker.games.pokemon.tables.layout import PLAIN, Extras

SCRIPT = Path(__file__).with_suffix(".mjs")
SINGLES = {part.name: part for part in layout.slices(Extras(sets=True))}
DOUBLES = {part.name: part for part in doubles_layout.slices()}
Request = dict[str, Any]


class Seen(NamedTuple):
    """A decision. observation: float16 [D]; mask: uint8 [A], 1 = legal; pick: of a team preview, from 1."""

    observation: NDArray[np.float16]
    mask: NDArray[np.uint8]
    facts: RewardFacts
    pick: int

    def read(self, name: str) -> list[float]:
        """The numbers of a slice."""
        part = (DOUBLES if self.mask.size == doubles_layout.NUM_ACTIONS else SINGLES)[name]
        numbers: list[float] = self.observation[part.start : part.start + part.size].tolist()
        return numbers

    @property
    def legal(self) -> list[int]:
        """The legal actions."""
        actions: list[int] = np.flatnonzero(self.mask).tolist()
        return actions


class Told(NamedTuple):
    """What a seat is told, and its answer.

    refused: True = the simulator has called the last choice unavailable.
    actions: one for each decision; None: at random, from the view's seed.
    """

    lines: str
    request: Request | None
    refused: bool = False
    actions: Sequence[int] | None = None


class SeenSeat(NamedTuple):
    """A seat to its last record. words: its answer to each request. errors: lines it could not take, by event.

    final: where its rewards ended, if the battle was over. crashed: a request could not be taken; the rest is unseen.
    """

    decisions: list[Seen]
    words: list[str]
    errors: dict[str, int]
    final: RewardFacts | None
    crashed: bool


class SeatToSee(NamedTuple):
    """One seat of a battle, from its first line."""

    format: str
    seat: int
    records: Iterable[Told]
    extras: Extras = PLAIN
    free_switches: int | None = None
    seed: int = 0


class Views:
    """The process."""

    def __init__(self) -> None:
        self._process = subprocess.Popen([find_node().path, SCRIPT], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._tables: set[str] = set()
        self._ids = count()

    def open(
        self, battle_format: str, seat: int, extras: Extras = PLAIN, free_switches: int | None = None, seed: int = 0
    ) -> View:
        """A seat that has been told nothing."""
        seat_to_see = SeatToSee(battle_format, seat, (), extras, free_switches, seed)
        opened = next(self._ids)
        self._write(self._opening(opened, seat_to_see))
        return View(self, opened)

    def seen(self, seats: Iterable[SeatToSee]) -> Iterator[SeenSeat]:
        """All of them, in order."""
        seats = [one._replace(records=list(one.records)) for one in seats]
        writer = threading.Thread(target=lambda: [self._write(self._seat(one)) for one in seats])
        writer.start()
        for one in seats:
            yield _seen_seat([self.answer() for _ in one.records])
        writer.join()

    def ask(self, command: dict[str, Any]) -> dict[str, Any]:
        """One command of an open view, answered."""
        self._write([command])
        return self.answer()

    def answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the views ended, see their stderr"
        answer: dict[str, Any] = orjson.loads(line)
        return answer

    def close(self) -> None:
        """Ends the process."""
        assert self._process.stdin is not None
        with self._process:
            self._process.stdin.close()

    def _write(self, commands: Iterable[dict[str, Any]]) -> None:
        assert self._process.stdin is not None
        for command in commands:
            self._process.stdin.write(orjson.dumps(command) + b"\n")
        self._process.stdin.flush()

    def _seat(self, one: SeatToSee) -> Iterator[dict[str, Any]]:
        opened = next(self._ids)
        yield from self._opening(opened, one)
        for record in one.records:
            yield _see(opened, record) | {"actions": "random" if record.actions is None else record.actions}
        yield {"close": opened}

    def _opening(self, opened: int, one: SeatToSee) -> Iterator[dict[str, Any]]:
        gen, doubles = generation(one.format), is_doubles(one.format)
        name = f"{gen} {one.extras} {doubles}"
        if name not in self._tables:
            self._tables.add(name)
            yield {"tables": name, "value": encoder_tables(gen, one.extras, doubles)}
        more = {"seat": one.seat, "free_switches": one.free_switches, "seed": one.seed}
        yield {"open": opened, "tables": name, **more}


class View:
    """One seat, asked step by step."""

    def __init__(self, views: Views, opened: int) -> None:
        self._views = views
        self._opened = opened
        self.errors: dict[str, int] = {}

    def see(self, lines: str, request: Request, refused: bool = False, anew: bool = False) -> Seen:
        """The first decision of a request. anew: an encoder that has seen nothing before must write the same row."""
        answer = self._ask(_see(self._opened, Told(lines, request, refused)) | {"actions": None, "anew": anew})
        assert answer.get("anew") is not False, "what was kept is not what is written anew"
        return _decisions(answer)[0]

    def act(self, action: int) -> str | Seen:
        """The simulator's words, or the next decision of the request."""
        answer = self._ask({"view": self._opened, "act": action})
        return answer["words"] or _decisions(answer)[0]

    def refuse(self) -> Seen | None:
        """The simulator calls the last action invalid: the decision without it; None if nothing else is legal."""
        return next(iter(_decisions(self._ask({"view": self._opened, "refuse": True}))), None)

    def end(self, lines: str) -> RewardFacts:
        """The last lines; where the rewards of a view with `free_switches` end."""
        final = _final(self._ask(_see(self._opened, Told(lines, None))))
        assert final is not None
        return final

    def _ask(self, command: dict[str, Any]) -> dict[str, Any]:
        answer = self._views.ask(command)
        assert "crashed" not in answer, answer["crashed"]
        self.errors = answer["errors"]
        return answer


@contextmanager
def running_views() -> Iterator[Views]:
    """A process that ends with the block."""
    views = Views()
    try:
        yield views
    finally:
        views.close()


def _see(opened: int, record: Told) -> dict[str, Any]:
    return {"view": opened, "lines": record.lines, "request": record.request, "refused": record.refused}


def _seen_seat(answers: list[dict[str, Any]]) -> SeenSeat:
    taken = list(takewhile(lambda answer: "crashed" not in answer, answers))
    decisions = [one for answer in taken for one in _decisions(answer)]
    words = [answer["words"] for answer in taken if answer["decisions"]]
    last = taken[-1] if taken else {"errors": {}}
    return SeenSeat(decisions, words, last["errors"], _final(last), len(taken) < len(answers))


def _decisions(answer: dict[str, Any]) -> list[Seen]:
    return [
        Seen(
            np.frombuffer(base64.b64decode(row), np.float16),
            np.frombuffer(mask.encode(), np.uint8) - ord("0"),
            RewardFacts(_standing(standing), turn, Tally(*counts)),
            pick,
        )
        for row, mask, standing, turn, counts, pick in answer["decisions"]
    ]


def _final(answer: dict[str, Any]) -> RewardFacts | None:
    if not answer.get("final"):
        return None
    standing, counts = answer["final"]
    return BattleEnd(0, None, answer["turn"], "win", [(_standing(standing), counts)]).facts(0)


def _standing(numbers: list[float | None]) -> Standing:
    """As the host sends it; JSON has no NaN, which spoilt lines can make of hp."""
    own, foe, own_hp, foe_hp = (float("nan") if number is None else float(number) for number in numbers)
    return own, foe, own_hp, foe_hp
