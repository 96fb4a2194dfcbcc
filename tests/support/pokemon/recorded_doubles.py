"""Recorded battles of doubles, decided anew by random legal actions: the recorded lines come whatever is chosen."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any, NamedTuple

from simul.common.protocol.decisions import Decision
from simul.env_worker.games.pokemon.source.double_seat import DoubleSeat
from simul.env_worker.games.pokemon.source.rewards import RewardWeights
from tests.support.pokemon.recorded import RecordedSeat, recorded_seats

SEATS = (*recorded_seats("gen9randomdoublesbattle"), *recorded_seats("gen9vgc2025regi"))


class Listening:
    """Takes a seat's words as a simulator host would."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def choose(self, battle: int, seat: int, request_number: int, choice: str) -> None:
        self.said.append(choice)


class Asked(NamedTuple):
    """One decision; `said`: the simulator's words if it was the last of its request, once it is answered."""

    seat: DoubleSeat
    request: dict[str, Any]
    decision: Decision
    action: int
    said: str | None


def double_seat(recorded: RecordedSeat) -> DoubleSeat:
    return DoubleSeat(0, recorded.seat, 0, recorded.gen, "learner", 0, RewardWeights(1.0))


def decisions(recorded: RecordedSeat) -> Iterator[Asked]:
    """Every decision of a seat, answered."""
    rng = random.Random(f"{recorded.format}/{recorded.battle}/{recorded.seat}")
    seat, host = double_seat(recorded), Listening()
    for number, (lines, request) in enumerate(recorded.records):
        seat.battle.feed(lines)
        if request is None:
            continue
        decision: Decision | None = seat.decide(number, request)
        while decision is not None:
            assert decision.mask is not None
            action = rng.choice([action for action, legal in enumerate(decision.mask) if legal])
            said = len(host.said)
            assert seat.answer(host, 0, action)  # type: ignore[arg-type]
            yield Asked(seat, request, decision, action, host.said[said] if len(host.said) > said else None)
            decision = seat.follow_up()
