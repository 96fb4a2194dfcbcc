"""`python -m benchmarks.pokemon_layers.poke_env_client`: poke-env's RandomPlayer against itself over a server."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import sys
import time
import uuid

from poke_env import AccountConfiguration, ServerConfiguration
from poke_env.battle import AbstractBattle
from poke_env.player import BattleOrder, RandomPlayer

from benchmarks.pokemon_layers.window import serve

LOGIN_SEC = 60.0
FOR_EVER = 10_000_000
WARM_UP_DECISIONS = 500  # the first battles start slowly


class CountingPlayer(RandomPlayer):
    """poke-env's player, counted."""

    decisions = 0  # of all players of this process, which share one event loop

    def choose_move(self, battle: AbstractBattle) -> BattleOrder:
        CountingPlayer.decisions += 1
        return super().choose_move(battle)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--url", required=True)
    parser.add_argument("--server-pid", type=int, required=True)
    parser.add_argument("--format", required=True)
    parser.add_argument("--concurrency", type=int, required=True)
    options = parser.parse_args()
    players = [_player(options.url, options.format, options.concurrency) for _ in range(2)]
    deadline = time.monotonic() + LOGIN_SEC
    while not all(player.ps_client.logged_in.is_set() for player in players):  # poke-env's own wait is 5 s
        if time.monotonic() > deadline:
            sys.exit(f"no login within {LOGIN_SEC:.0f} s")
        time.sleep(0.05)
    started: list[object] = []

    def turn() -> None:
        """The battles run on poke-env's own thread; this one only lets time pass."""
        if not started:
            battles = players[0]._battle_against(players[1], n_battles=FOR_EVER)
            started.append(asyncio.run_coroutine_threadsafe(battles, players[0].ps_client.loop))
        time.sleep(0.05)

    serve(turn, lambda: CountingPlayer.decisions, [options.server_pid], WARM_UP_DECISIONS)
    os._exit(0)  # battles are running


def _player(url: str, battle_format: str, concurrency: int) -> CountingPlayer:
    return CountingPlayer(
        AccountConfiguration(f"b{uuid.uuid4().hex[:12]}", None),
        battle_format=battle_format,
        log_level=logging.CRITICAL,
        max_concurrent_battles=concurrency,
        server_configuration=ServerConfiguration(url, "http://127.0.0.1/"),
    )


if __name__ == "__main__":
    sys.exit(main())
