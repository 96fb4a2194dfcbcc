"""What the damage bot answers to recorded requests: golden choices.

Made by `python -m tests.support.pokemon.bot_choices`: the lines and requests of the golden vectors, told to a following
process whose bot plays the seat. tests/golden/pokemon/bot_choices.json holds a line of answers for each seat.
"""

from __future__ import annotations

import json

from simul.env_worker.games.pokemon.host.follower import Follower
from simul.env_worker.games.pokemon.host.host_messages import SeatChoice
from tests.support.playing import started_follower
from tests.support.pokemon.recorded import FOLDER, RecordedSeat, recorded_seats
from tests.support.waiting import wait_for

FILE = FOLDER / "bot_choices.json"
SETS = (
    "gen1randombattle", "gen4randombattle", "gen8randombattle", "gen9randombattle", "gen9bssregi",
    "gen4doublescustomgame", "gen9randomdoublesbattle", "gen9championsvgc2026regmb",
)  # fmt: skip


def bot_choices(name: str) -> dict[str, str]:
    """Its answers for each seat of a set."""
    seats = recorded_seats(name)
    follower = started_follower(seats[0].format)
    try:
        found = [answers(follower, number, seat) for number, seat in enumerate(seats)]
    finally:
        follower.close()
    return {f"{seat.battle} {seat.role}": "; ".join(choices) for seat, choices in zip(seats, found, strict=True)}


def answers(follower: Follower, number: int, seat: RecordedSeat) -> list[str]:
    """Of one seat; the bot's seed is the battle's number."""
    play = ("one_ply", number)
    follower.follow(number, (False, False), play=(play, None) if seat.seat == 0 else (None, play))
    requests = [(lines, request) for lines, request in seat.records if request is not None]
    for asked, (lines, request) in enumerate(requests):
        follower.see(number, seat.seat, asked, lines, request)
    follower.flush()
    choices: list[SeatChoice] = []

    def answered() -> bool:
        tick = follower.poll()
        assert not tick.errors, tick.errors
        choices.extend(tick.choices)
        return len(choices) == len(requests)

    wait_for(answered)
    return [choice.choice for choice in choices]


def main() -> None:
    found = {name: bot_choices(name) for name in SETS}
    FILE.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
