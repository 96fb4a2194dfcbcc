"""A battle of a Showdown server once more, on the simulator host that training uses."""

from __future__ import annotations

import json
import select

from common.decisions import Decision
from env_worker.games.pokemon.battle_host import BattleStart
from env_worker.games.pokemon.host import SimHost
from env_worker.games.pokemon.host_tables import encoder_tables
from env_worker.games.pokemon.node import find_node


def compare_with_training(log, name: str, asked: list[Decision], said: list[str]) -> int:
    """Replay a battle on the host; compare each of our seat's rows with what the agent asked.

    The server's log holds no choice that was refused ("maybe trapped"): those are repeated from what the agent `said`.
    """
    options = {key: json.loads(rest) for key, rest in (line[1:].split(" ", 1) for line in log["inputLog"][:1])}
    players = [json.loads(line.split(" ", 2)[2]) for line in log["inputLog"][1:3]]
    seat = next(i for i, player in enumerate(players) if player["name"] == name)
    choices = [line[1:].split(" ", 1) for line in log["inputLog"][3:] if line.startswith((">p1 ", ">p2 "))]
    host = SimHost(find_node().path)
    host.start()
    host.send_tables(encoder_tables(9))
    start = BattleStart(
        seed=options["start"]["seed"], encode=(seat == 0, seat == 1),
        team_seeds=(players[0]["seed"], players[1]["seed"]), names=(players[0]["name"], players[1]["name"]),
    )  # fmt: skip
    host.start_battle(0, "gen9randombattle", start)
    numbers = {0: 0, 1: 0}
    compared = 0
    try:
        while True:
            host.ping(1)
            host.flush()
            tick = host.poll()
            while tick.pong is None:
                select.select([host.fileno()], [], [], 10)
                tick.__dict__.update(_merged(tick, host.poll()))
            for row in tick.rows:
                numbers[row.seat] = row.request_number
                decision = asked[compared]
                assert row.observation.tobytes() == decision.observation.tobytes(), f"{compared} of {len(asked)}"
                assert row.mask.tobytes() == decision.mask.tobytes()
                compared += 1
            for record in tick.records:
                numbers[record.seat] = record.request_number
            if tick.ended or not choices:
                break
            refused = compared < len(asked) and asked[compared].attempt > 0
            side, choice = (f"p{seat + 1}", said[compared - 1]) if refused else choices.pop(0)
            host.choose(0, int(side[1]) - 1, numbers[int(side[1]) - 1], choice)
    finally:
        host.close()
    assert compared == len(asked)
    return compared


def _merged(first, second):
    return {
        "records": first.records + second.records, "rows": first.rows + second.rows,
        "errors": first.errors + second.errors, "ended": first.ended + second.ended, "pong": second.pong,
    }  # fmt: skip
