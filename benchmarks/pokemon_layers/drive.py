"""`python -m benchmarks.pokemon_layers.drive`: one process of the layers that have no server."""

from __future__ import annotations

import argparse
import gc
import signal
import sys
from pathlib import Path

import msgspec

from benchmarks.pokemon_layers.hosted import HostedBattles
from benchmarks.pokemon_layers.sourced import SourcedBattles
from benchmarks.pokemon_layers.window import serve
from simul.common.config.loader import load_config
from simul.env_worker.__main__ import COLLECTOR_THRESHOLDS
from simul.env_worker.games.pokemon.simulator.node import find_node

SOURCED: dict[str, dict[str, str | int]] = {
    "encoding_bare": {"encoder": "python", "damage_attackers": 0},
    "encoding": {"encoder": "python"},
    "host_encoding_bare": {"encoder": "host", "damage_attackers": 0},
    "host_encoding": {"encoder": "host"},
    "websocket": {"transport": "websocket"},
}


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("layer", choices=("ipc", "parsing", *SOURCED))
    parser.add_argument("--config", type=Path, required=True)
    parser.add_argument("--set", dest="overrides", action="append", default=[])
    parser.add_argument("--envs", type=int, required=True)
    parser.add_argument("--seed", type=int, required=True)
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    pokemon = load_config(options.config, options.overrides).pokemon
    battles: HostedBattles | SourcedBattles
    if options.layer in SOURCED:
        pokemon = msgspec.structs.replace(pokemon, **SOURCED[options.layer])
        battles = SourcedBattles(pokemon, envs=options.envs, seed=options.seed)
    else:
        parse = options.layer == "parsing"
        battles = HostedBattles(find_node().path, pokemon, envs=options.envs, seed=options.seed, parse=parse)
    try:
        gc.collect()
        gc.freeze()  # and thresholds: as the env worker does
        gc.set_threshold(*COLLECTOR_THRESHOLDS)
        serve(battles.turn, lambda: battles.decisions, battles.pids)
    finally:
        battles.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
