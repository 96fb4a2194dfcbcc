"""A battle of a Showdown server once more, on the simulator host that training uses."""

from __future__ import annotations

import json

from simul.common.protocol.decisions import Decision
from simul.env_worker.games.pokemon.encoding.host_tables import encoder_tables
from simul.env_worker.games.pokemon.host.backend import BattleStart
from simul.env_worker.games.pokemon.host.host_messages import SeatRecord
from simul.env_worker.games.pokemon.host.node_host import NodeHost
from simul.env_worker.games.pokemon.install.node import find_node
from simul.env_worker.games.pokemon.source.double_seat import DoubleSeat
from simul.env_worker.games.pokemon.source.rewards import RewardWeights
from tests.support.hosts import wait
from tests.support.pokemon.recorded_doubles import Listening


class DoublesReader:
    """Our seat of a battle of doubles once more, by the actions that were chosen: nobody else encodes those."""

    def __init__(self, seat: int, asked: list[Decision], chosen: dict[tuple[int, int, int], int]) -> None:
        self._seat = DoubleSeat(0, seat, 0, 9, "learner", 0, RewardWeights())
        self._actions = [chosen[decision.env, decision.step, decision.attempt] for decision in asked]
        self._attempts = [decision.attempt for decision in asked]

    def rows(self, record: SeatRecord, at: int) -> list[Decision]:
        """The decisions that a record asks for, the `at`-th of the battle first."""
        self._seat.read_lines(record.lines, record.request)
        if record.request is None:
            return []
        self._seat.redo = self._attempts[at] > 0
        rows: list[Decision] = []
        decision: Decision | None = self._seat.decide(record.request_number, record.request)
        while decision is not None:
            rows.append(decision)
            assert self._seat.answer(Listening(), 0, self._actions[at + len(rows) - 1])
            decision = self._seat.follow_up()
        return rows


def compare_with_training(
    log, name: str, asked: list[Decision], said: list[str], battle_format: str = "gen9randombattle",
    chosen: dict[tuple[int, int, int], int] | None = None,
) -> int:  # fmt: skip
    """Replay a battle on the host; compare each of our seat's decisions with what the agent asked.

    The server's log holds no choice that was refused ("maybe trapped"): those are repeated from what the agent `said`.
    `chosen`: in doubles, the action by env, step and attempt.
    """
    options = {key: json.loads(rest) for key, rest in (line[1:].split(" ", 1) for line in log["inputLog"][:1])}
    players = [json.loads(line.split(" ", 2)[2]) for line in log["inputLog"][1:3]]
    seat = next(i for i, player in enumerate(players) if player["name"] == name)
    choices = [line[1:].split(" ", 1) for line in log["inputLog"][3:] if line.startswith((">p1 ", ">p2 "))]
    host = NodeHost(find_node().path)
    host.start()
    host.send_tables(encoder_tables(9))
    reader = None if chosen is None else DoublesReader(seat, asked, chosen)
    start = BattleStart(
        seed=options["start"]["seed"], encode=(False, False) if reader else (seat == 0, seat == 1),
        team_seeds=(players[0]["seed"], players[1]["seed"]), names=(players[0]["name"], players[1]["name"]),
    )  # fmt: skip
    host.start_battle(0, battle_format, start)
    numbers = {0: 0, 1: 0}
    compared = requests = 0
    try:
        while True:
            host.ping(1)
            host.flush()
            tick = host.poll()
            while tick.pong is None:
                tick.__dict__.update(_merged(tick, wait(host)))
            for one in (*tick.rows, *tick.records):
                numbers[one.seat] = one.request_number
                if one.seat != seat:
                    continue
                rows = reader.rows(one, compared) if reader else [one]
                requests += bool(rows)
                for row in rows:
                    decision = asked[compared]
                    assert row.observation.tobytes() == decision.observation.tobytes(), f"{compared} of {len(asked)}"
                    assert row.mask.tobytes() == decision.mask.tobytes()
                    compared += 1
            if tick.ended or not choices:
                break
            refused = compared < len(asked) and asked[compared].attempt > 0
            side, choice = (f"p{seat + 1}", said[requests - 1]) if refused else choices.pop(0)
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
