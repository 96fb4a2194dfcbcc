"""Engines on the stand-in device, and the batches of sessions that live in their tables."""

from __future__ import annotations

import logging

import numpy as np
import torch

from simul.common.config.games.pokemon import PokemonConfig
from simul.common.config.schema import NetworkConfig
from simul.common.nets.base import RecurrentNetwork
from simul.common.nets.build import build_network
from simul.common.protocol.specs import GameSpec, random_observations
from simul.common.runtime import rng
from simul.env_worker.games.ofc.observation import ofc_spec
from simul.env_worker.games.ofc.rules import Rules
from simul.env_worker.games.pokemon.formats.spec import pokemon_spec
from simul.inference_server.engine.engine import DeviceBackend
from simul.inference_server.engine.graphs import GraphEngine
from tests.support.declared import DECLARED
from tests.support.engines import act
from tests.support.graph_stand_in import StandInGraphs

SPEC = GameSpec(name="test", observation_size=6, num_actions=5)
IMAGE = GameSpec("image", 62, 3, "uint8", observation_shape=(4, 5, 3), observation_axes="HWC")
HALF = GameSpec(name="half", observation_size=7, num_actions=3, observation_dtype="float16")
BOARD = GameSpec(
    "board", 42, 5, observation_shape=(2, 5, 4), observation_axes="CHW", action_planes=3,
    action_cells=(-1, 7, 30, 59, -1),
)  # fmt: skip
SLOTS = 200
MAX_BATCH = 20
BUCKETS = (1, 2, 4, 8, 16, 24)
SIZES = (1, 2)
LOG = logging.getLogger("test")


def network(seed: int = 0, spec: GameSpec = SPEC) -> RecurrentNetwork:
    return build_network(NetworkConfig(options={"hidden": 16}), spec, seed=seed)


def smallest_networks() -> dict[str, tuple[NetworkConfig, GameSpec]]:
    """Each network that can be named, in each kind of memory, and a game for it."""
    of = {
        "mlp": (NetworkConfig("mlp", {"hidden": 16, "width": 8}), DECLARED),
        "mlp, separate": (NetworkConfig("mlp", {"hidden": 16, "width": 8}, shared=False), DECLARED),
        "mlp_lstm": (NetworkConfig("mlp_lstm", {"hidden": 16, "embedding": "auto"}), DECLARED),
        "mlp_gru": (NetworkConfig("mlp_gru", {"hidden": 16, "width": 8}), DECLARED),
        "conv_lstm": (NetworkConfig("conv_lstm", {"hidden": 16, "channels": [4, 6], "blocks": 1}), IMAGE),
        "board_resnet": (NetworkConfig("board_resnet", {"channels": 4, "blocks": 1}), BOARD),
        "ofc": (NetworkConfig("ofc"), ofc_spec(Rules())),
    }
    for memory in ("none", "gru", "lstm"):
        options = {"hidden": 16, "width": 8, "memory": memory}
        of[f"attention, {memory}"] = NetworkConfig("attention", options), DECLARED
        options = {"hidden": 16, "entity": 8, "memory": memory, "attention": int(memory == "gru")}
        of[f"pokemon, {memory}"] = NetworkConfig("pokemon", options), pokemon_spec(PokemonConfig(set_knowledge=False))
    return of


def engine(device: StandInGraphs, net: RecurrentNetwork | None = None, spec: GameSpec = SPEC, **more) -> GraphEngine:
    options = {"precision": torch.float32, "max_batch": MAX_BATCH, "max_sessions": SLOTS} | more
    net = net or network(spec=spec)
    made = GraphEngine(net, spec, device=torch.device("cpu"), graphs=device, log=LOG, **options)
    run = made._recording.forward
    made._backend = DeviceBackend(run, made._table, spec.num_actions)  # what runs where no graph does
    return made


def captured(device: StandInGraphs, *args, **more) -> GraphEngine:
    made = engine(device, *args, **more)
    made.warm_up(SIZES)
    assert made.runner.endswith(" graphs")
    return made


class Sessions:
    """What an engine's rows belong to: every slot's newest row and its spare one, as the server keeps them."""

    def __init__(self, zero_row: int, spec: GameSpec = SPEC, seed: int = 0) -> None:
        self.newest = np.full(SLOTS, zero_row)
        self.spare = 2 * np.arange(SLOTS)
        self._zero, self._spec = zero_row, spec
        self._draw = np.random.default_rng(seed)

    def batch(self, n: int, redo_share: float = 0.2):
        """Arguments of `act` for n sessions: first steps, next steps, steps that are done again."""
        draw, spec = self._draw, self._spec
        slots = draw.permutation(SLOTS)[:n]
        first = self.newest[slots] == self._zero
        redo = (draw.random(n) < redo_share) & ~first
        read, write = self.newest[slots], self.spare[slots]
        read, write = np.where(redo, write, read), np.where(redo, read, write)
        self.newest[slots], self.spare[slots] = write, write ^ 1
        noise = rng.gumbel(slots.astype(np.uint64), np.zeros(n, np.uint64), np.zeros(n, np.uint64), spec.num_actions)
        noise[draw.random(n) < 0.3] = 0.0
        mask = (draw.random((n, spec.num_actions)) < 0.6).astype(np.uint8)
        mask[:, 0] = 1
        if spec.observation_dtype == "uint8" or spec.layout:
            observation = random_observations(spec, n, draw)
        else:
            observation = draw.standard_normal((n, spec.observation_size)).astype(spec.dtype())
        temperature = draw.choice([0.5, 1.0, 2.0], n).astype(np.float32)
        return observation, mask, read, write, noise, temperature


def table(made: GraphEngine) -> np.ndarray:
    """Everything but the scratch row."""
    return made.states(np.arange(made.zero_row + 1))


def assert_same(found, expected, within: float = 0.0) -> None:
    for name in ("action", "log_prob", "value"):
        np.testing.assert_allclose(
            getattr(found, name), getattr(expected, name), rtol=within, atol=within, err_msg=name
        )  # fmt: skip
        assert getattr(found, name).dtype == getattr(expected, name).dtype


def act_alike(graphs: GraphEngine, eager: GraphEngine, batch, within: float = 0.0) -> None:
    """`within`: what rounding may differ by. Of some matrix products the last bit depends on where an input lies."""
    assert_same(act(graphs, *batch), act(eager, *batch), within)
    np.testing.assert_allclose(table(graphs), table(eager), rtol=within, atol=within)
