"""`python -m benchmarks.pokemon_layers.drive`: one process of the layers that have no server."""

from __future__ import annotations

import argparse
import gc
import random
import select
import signal
import sys
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.pokemon_layers.window import serve
from simul.common.config.games.pokemon import PokemonConfig
from simul.common.config.loader import load_config
from simul.common.config.schema import OpponentsConfig
from simul.common.errors import EnvError
from simul.common.protocol.decisions import Action, Decision
from simul.common.protocol.messages import DECISION
from simul.env_worker.__main__ import COLLECTOR_THRESHOLDS
from simul.env_worker.games.pokemon.host.backend import drawn_start
from simul.env_worker.games.pokemon.host.node_host import NodeHost
from simul.env_worker.games.pokemon.install.node import find_node
from simul.env_worker.games.pokemon.source.source import PokemonSource

SELF_PLAY = OpponentsConfig(self_play=1.0)
WAIT_SEC = 0.2
SOURCED: dict[str, dict[str, str | int]] = {
    "encoding_bare": {"damage_attackers": 0},
    "encoding": {},
    "websocket": {"transport": "websocket"},
}
GIMMICKS = (("canTerastallize", " terastallize"), ("canMegaEvo", " mega"), ("canDynamax", " dynamax"))


def legal_choices(request: dict[str, Any]) -> list[str]:
    """Every choice that the simulator accepts, as its protocol writes it."""
    side = request["side"]["pokemon"]
    if "active" not in request:
        return _switches(side, fainted=any(entry.get("reviving") for entry in side))
    active = request["active"][0]
    moves = [f"move {slot}" for slot, move in enumerate(active["moves"], 1) if not move.get("disabled")]
    choices = [move + word for key, word in GIMMICKS if active.get(key) for move in moves] + moves
    if zmoves := active.get("canZMove"):
        choices += [f"move {slot} zmove" for slot, zmove in enumerate(zmoves, 1) if zmove and f"move {slot}" in moves]
    return choices if active.get("trapped") else choices + _switches(side, fainted=False)


def random_choice(request: dict[str, Any], rng: random.Random) -> str:
    """One of them; `default` for a team preview."""
    if request.get("teamPreview"):
        return "default"
    choices = legal_choices(request)
    return choices[int(rng.random() * len(choices))]


def _switches(side: list[dict[str, Any]], *, fainted: bool) -> list[str]:
    return [
        f"switch {slot}"
        for slot, entry in enumerate(side, 1)
        if not entry["active"] and entry["condition"].endswith(" fnt") == fainted
    ]


class HostedBattles:
    """Keeps `envs` battles running on one host."""

    def __init__(self, node: Path, config: PokemonConfig, *, envs: int, seed: int) -> None:
        self.decisions = 0
        self._format = config.format
        self._rng = random.Random(seed)
        self._started = 0
        self._host = NodeHost(node, accelerate=config.accelerate)
        self._host.start()
        for _ in range(envs):
            self._start_battle()
        self._host.flush()

    @property
    def pids(self) -> list[int]:
        return [self._host.pid]

    def turn(self) -> None:
        """Wait for requests, answer all that are there."""
        host, rng = self._host, self._rng
        select.select([host.fileno()], [host.write_fileno()] if host.wants_write else [], [], WAIT_SEC)
        tick = host.poll()
        for battle, seat, request_number, _, request in tick.records:
            if request is None:
                continue
            host.choose(battle, seat, request_number, random_choice(request, rng))
            self.decisions += 1
        for error in tick.errors:
            if error.kind != "unavailable":  # a new request follows that one by itself
                raise EnvError(f"the simulator refused a choice: {error}")
        for _ in tick.ended:
            self._start_battle()
        host.flush()

    def close(self) -> None:
        self._host.close()

    def _start_battle(self) -> None:
        number, self._started = self._started, self._started + 1
        self._host.start_battle(number, self._format, drawn_start(self._rng))


class SourcedBattles:
    """A source of self-play whose decisions are answered at random within the mask."""

    def __init__(self, config: PokemonConfig, *, envs: int, seed: int) -> None:
        self.decisions = 0
        self._rng = random.Random(seed)
        self._source = PokemonSource(config, SELF_PLAY, envs=envs, seed=seed, index=0)
        self._source.start()

    @property
    def pids(self) -> list[int]:
        return list(self._source.metrics()["host_pids"])

    def turn(self) -> None:
        """One turn of the worker's loop."""
        decisions = self._source.poll()
        if not decisions:
            select.select(self._source.files(), [], [], WAIT_SEC)
            return
        actions = [self._action(decision) for decision in decisions if decision.kind == DECISION]
        self.decisions += len(actions)
        self._source.act(actions)

    def close(self) -> None:
        self._source.close()

    def _action(self, decision: Decision) -> Action:
        assert decision.mask is not None
        legal = decision.mask.nonzero()[0]
        return Action(
            decision.env, decision.seat, decision.episode, decision.step, decision.attempt,
            action=int(legal[int(self._rng.random() * len(legal))]), log_prob=0.0, value=0.0, policy_version=0,
        )  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("layer", choices=("ipc", *SOURCED))
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
        battles = HostedBattles(find_node().path, pokemon, envs=options.envs, seed=options.seed)
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
