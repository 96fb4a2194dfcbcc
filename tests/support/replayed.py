"""A battle of a Showdown server once more, on the simulator host that training uses."""

from __future__ import annotations

import json

from simul.common.config.games.pokemon import PokemonConfig
from simul.common.protocol.decisions import Decision
from simul.env_worker.games.pokemon.formats.tables import configured_tables
from simul.env_worker.games.pokemon.host.backend import BattleStart
from simul.env_worker.games.pokemon.host.node_host import NodeHost
from simul.env_worker.games.pokemon.install.node import find_node
from tests.support.hosts import wait


def compare_with_training(
    log, name: str, asked: list[Decision], chosen: dict[tuple[int, int, int], int],
    battle_format: str = "gen9randombattle",
) -> int:  # fmt: skip
    """Play a battle again on the host, our seat by the actions that were `chosen` (by env, step and attempt).

    Compares each of our decisions with what the agent `asked`; returns how many. The server's log holds the choices
    of the other seat that were not refused.
    """
    start = json.loads(log["inputLog"][0].removeprefix(">start "))
    players = [json.loads(line.split(" ", 2)[2]) for line in log["inputLog"][1:3]]
    seat = next(i for i, player in enumerate(players) if player["name"] == name)
    theirs = [line[4:] for line in log["inputLog"][3:] if line.startswith(f">p{2 - seat} ")]
    host = NodeHost(find_node().path)
    host.start()
    host.send_tables(configured_tables(PokemonConfig(format=battle_format)))
    host.start_battle(0, battle_format, BattleStart(
        seed=start["seed"], team_seeds=(players[0]["seed"], players[1]["seed"]), encode=(seat == 0, seat == 1),
        names=(players[0]["name"], players[1]["name"]),
    ))  # fmt: skip
    host.flush()
    compared, ended = 0, False
    try:
        while not ended and compared < len(asked) + 1:
            tick = wait(host)
            for record in tick.records:
                if record.request is not None and theirs:
                    host.choose(0, record.seat, record.request_number, theirs.pop(0))
            for row in tick.rows:
                decision = asked[compared]
                assert row.observation.tobytes() == decision.observation.tobytes(), f"{compared} of {len(asked)}"
                assert row.mask.tobytes() == decision.mask.tobytes()
                host.act(0, seat, row.request_number, chosen[decision.env, decision.step, decision.attempt])
                compared += 1
            ended = bool(tick.ended)
            host.flush()
    finally:
        host.close()
    assert compared == len(asked)
    return compared
