"""Microseconds of one core of each layer of a decision: `python -m benchmarks.pokemon_layers.layer_times`.

Measured on the recorded gen 9 seats, CPU time of this thread; medians of 7 rounds after a warm-up, best round
in brackets. On a shared machine only the ratios to `json` carry over.
"""

from __future__ import annotations

import statistics
import time

import orjson

from simul.env_worker.games.pokemon.battle_view.seat_battle import SeatBattle
from simul.env_worker.games.pokemon.encoding.actions import legal_choices
from simul.env_worker.games.pokemon.encoding.encoder import SeatEncoder
from tests.support.pokemon.recorded import recorded_seats

LAYERS = ("json", "lines", "request", "mask", "encode")
ROUNDS = 7


def one_round() -> tuple[dict[str, float], int]:
    """CPU seconds per layer, decisions."""
    spent = dict.fromkeys(LAYERS, 0.0)
    decisions = 0
    clock = time.thread_time
    for seat in recorded_seats("gen9*"):
        battle = SeatBattle(seat.role, 9)
        encoder = SeatEncoder(battle, 9)
        for lines, request in seat.records:
            if request is None:
                continue
            text = orjson.dumps(request)
            times = [clock()]
            request = orjson.loads(text)
            times.append(clock())
            battle.feed(lines)
            times.append(clock())
            battle.sync(request)
            times.append(clock())
            choices = legal_choices(request, battle.position)
            times.append(clock())
            encoder.encode(request, choices)
            times.append(clock())
            decisions += 1
            for layer, start, end in zip(LAYERS, times, times[1:]):
                spent[layer] += end - start
    return spent, decisions


def main() -> None:
    one_round()
    rounds = [one_round() for _ in range(ROUNDS)]
    decisions = rounds[0][1]
    for layer in LAYERS:
        micros = [spent[layer] / decisions * 1e6 for spent, _ in rounds]
        print(f"{layer:8} {statistics.median(micros):7.1f} us [{min(micros):.1f}]")
    totals = [sum(spent.values()) / decisions * 1e6 for spent, _ in rounds]
    print(f"{'all':8} {statistics.median(totals):7.1f} us [{min(totals):.1f}]   ({decisions} decisions a round)")


if __name__ == "__main__":
    main()
