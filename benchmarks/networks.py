"""`make bench-networks`: size, forward time and update time of each network for any game, beside those of `mlp`.

All in one process on one thread, float32. Forwards are recorded, as a server on a CPU serves them. Each round times
every network once, and the ratio of a round is that to `mlp` in the same round: the median over the rounds is printed.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from benchmarks.harness.report import conditions, in_one_line, markdown_table
from simul.common.config.games.pokemon import PokemonConfig
from simul.common.config.schema import NetworkConfig
from simul.common.nets.base import RecurrentNetwork
from simul.common.nets.build import build_network
from simul.common.nets.traced import trace_network
from simul.common.protocol.specs import EntityGroup, GameSpec, Slice, random_observations
from simul.env_worker.games.blokus.board import duo
from simul.env_worker.games.blokus.observation import game_spec
from simul.env_worker.games.ofc.observation import ofc_spec
from simul.env_worker.games.ofc.rules import Rules
from simul.env_worker.games.pokemon.formats.spec import pokemon_spec

BATCHES = 1, 64
STEPS, SESSIONS = 32, 32
UNITS = 12


def _units() -> tuple[Slice, ...]:
    parts = [Slice("score", 0, 16)]
    for i in range(UNITS):
        at = 16 + 6 * i
        parts += [
            Slice(f"unit.{i}.kind", at, 1, "id", high=49.0, vocabulary=50, table="kind"),
            Slice(f"unit.{i}.facts", at + 1, 4),
            Slice(f"unit.{i}.present", at + 5, 1),
        ]
    return tuple(parts)


VARIANTS = {
    "mlp": NetworkConfig("mlp"),
    "mlp, entities: flat": NetworkConfig("mlp", {"entities": "flat"}),
    "mlp, shared: false": NetworkConfig("mlp", shared=False),
    "mlp_lstm": NetworkConfig("mlp_lstm"),
    "mlp_gru": NetworkConfig("mlp_gru"),
    "attention": NetworkConfig("attention"),
    "attention, layers: 2": NetworkConfig("attention", {"layers": 2}),
    "attention, memory: gru": NetworkConfig("attention", {"memory": "gru"}),
    "attention, memory: lstm": NetworkConfig("attention", {"memory": "lstm"}),
}


def _beside_mlp(name: str, options: dict[str, Any] | None = None) -> dict[str, NetworkConfig]:
    return {"mlp": NetworkConfig("mlp"), name: NetworkConfig(name, options or {})}


def _games() -> list[tuple[GameSpec, dict[str, NetworkConfig]]]:
    """Each game, and the networks that are timed on it, the one that ratios are to first."""
    unit = EntityGroup("unit", UNITS, "present")
    return [
        (GameSpec("vector", 64, 8), VARIANTS),
        (GameSpec("entities", 16 + 6 * UNITS, 8, layout=_units(), entities=(unit,)), VARIANTS),
        (
            GameSpec("image", 42 * 42 * 3, 8, "uint8", observation_shape=(42, 42, 3), observation_axes="HWC"),
            _beside_mlp("conv_lstm") | {"conv_lstm, memory: false": NetworkConfig("conv_lstm", {"memory": False})},
        ),
        (game_spec(duo()), _beside_mlp("board_resnet", {"channels": 32, "blocks": 3})),
        (ofc_spec(Rules()), _beside_mlp("ofc")),
        (
            pokemon_spec(PokemonConfig()),
            _beside_mlp("pokemon")
            | {
                "pokemon, memory: gru": NetworkConfig("pokemon", {"memory": "gru"}),
                "pokemon, memory: none": NetworkConfig("pokemon", {"memory": "none"}),
                "pokemon, attention: 1": NetworkConfig("pokemon", {"attention": 1}),
                "attention": NetworkConfig("attention", {"entities": ["own", "foe", "move"]}),
            },
        ),
    ]


def main() -> int:
    """Print a table for each game."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15, help="of every measurement")
    options = parser.parse_args()
    torch.set_num_threads(1)
    for spec, configs in _games():
        print(f"{spec.name}: {spec.observation_size} numbers, {spec.num_actions} actions\n")
        print(_table(spec, configs, options.rounds), end="\n\n")
    print(in_one_line(conditions(rounds=options.rounds, dtype="float32", threads=1)))
    return 0


def _table(spec: GameSpec, configs: dict[str, NetworkConfig], rounds: int) -> str:
    networks = {label: build_network(config, spec, seed=1) for label, config in configs.items()}
    measured = [
        _beside_first({label: _forward(network, spec, n) for label, network in networks.items()}, rounds)
        for n in BATCHES
    ]
    measured.append(_beside_first({label: _update(network, spec) for label, network in networks.items()}, rounds))
    rows = [
        (
            f"`{label}`",
            f"{sum(parameter.numel() for parameter in network.parameters()):,}",
            str(network.state_size),
            *(columns[label] for columns in measured),
        )
        for label, network in networks.items()
    ]
    heads = ("network", "parameters", "state", *(f"forward of {n}" for n in BATCHES), f"update of {STEPS} x {SESSIONS}")
    return markdown_table(heads, rows)


def _beside_first(work: dict[str, Callable[[], None]], rounds: int) -> dict[str, str]:
    """Processor time: of the first the median, of the others relative to it, with quartiles over the rounds."""
    for run in work.values():  # warm-up: recorded forwards are compiled
        for _ in range(5):
            run()
    rows = np.array([[_time(run) for run in work.values()] for _ in range(rounds)])
    low, middle, high = np.quantile(rows / rows[:, :1], (0.25, 0.5, 0.75), axis=0)
    ratios = [f"{m:.2f} ({a:.2f}-{b:.2f})" for a, m, b in zip(low, middle, high)]
    return dict(zip(work, [_in_words(float(np.median(rows[:, 0]))), *ratios[1:]]))


def _in_words(seconds: float) -> str:
    return f"{1e6 * seconds:,.0f} us" if seconds < 1e-2 else f"{1e3 * seconds:,.0f} ms"


def _time(run: Callable[[], None], least_sec: float = 0.02) -> float:
    """Processor seconds of a call, over as many as take `least_sec`."""
    begin, calls = time.process_time(), 0
    while (taken := time.process_time() - begin) < least_sec:
        run()
        calls += 1
    return taken / calls


def _forward(network: RecurrentNetwork, spec: GameSpec, rows: int) -> Callable[[], None]:
    forward = trace_network(network, spec).forward
    observation = torch.from_numpy(random_observations(spec, rows, np.random.default_rng(0)))
    inputs = observation, torch.ones(rows, spec.num_actions, dtype=torch.bool), network.initial_state(rows)

    def run() -> None:
        with torch.inference_mode():
            forward(*inputs)

    return run


def _update(network: RecurrentNetwork, spec: GameSpec) -> Callable[[], None]:
    """Forward and backward pass over a minibatch."""
    rows = random_observations(spec, STEPS * SESSIONS, np.random.default_rng(0))
    observation = torch.from_numpy(rows).unflatten(0, (STEPS, SESSIONS))
    mask = torch.ones(STEPS, SESSIONS, spec.num_actions, dtype=torch.bool)
    state, lengths = network.initial_state(SESSIONS), torch.full((SESSIONS,), STEPS)

    def run() -> None:
        network.zero_grad()
        logits, value = network.unroll(observation, mask, state, lengths)
        (logits.square().mean() + value.square().mean()).backward()

    return run


if __name__ == "__main__":
    sys.exit(main())
