"""Sampling, the state table and weights, without sockets."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from simul.common.config.schema import NetworkConfig
from simul.common.errors import ConfigError
from simul.common.nets.base import RecurrentNetwork
from simul.common.nets.build import build_network
from simul.common.nets.devices import choose_device, choose_precision
from simul.common.protocol.masks import pack_masks
from simul.common.protocol.specs import GameSpec, random_observations
from simul.common.runtime import rng
from simul.inference_server.engine.engine import PolicyEngine
from tests.support.engines import act

SPEC = GameSpec(name="test", observation_size=6, num_actions=5)


IMAGE = GameSpec("image", 62, 5, "uint8", observation_shape=(4, 5, 3), observation_axes="HWC")
NETWORKS = {SPEC: NetworkConfig(options={"hidden": 16}), IMAGE: NetworkConfig("conv_lstm", {"hidden": 16, "blocks": 1})}
both_networks = pytest.mark.parametrize("spec", NETWORKS, ids=["mlp_lstm", "conv_lstm"])


def _network(seed: int = 0, spec: GameSpec = SPEC):
    return build_network(NETWORKS[spec], spec, seed=seed)


def _engine(spec: GameSpec = SPEC, **more) -> PolicyEngine:
    options = {"max_sessions": 8, "device": torch.device("cpu"), "precision": torch.float32} | more
    return PolicyEngine(_network(spec=spec), spec, **options)


def _observations(spec: GameSpec, rows: int, seed: int) -> np.ndarray:
    return random_observations(spec, rows, np.random.default_rng(seed))


def _noise(n: int, seed: int = 0) -> np.ndarray:
    keys = np.full(n, rng.session_key(seed, "a", 0, 0, 0), np.uint64)
    return rng.gumbel(keys, np.arange(n, dtype=np.uint64), np.zeros(n, np.uint64), 5)


@both_networks
def test_stepping_through_the_table_is_stepping_the_network(spec: GameSpec) -> None:
    engine, network = _engine(spec), _network(spec=spec)
    state = network.initial_state(1)
    rows = _observations(spec, 6, seed=0)[:, None]
    mask = np.ones((1, 5), np.uint8)
    read = engine.zero_row
    for t, observation in enumerate(rows):
        out = act(engine, observation, mask, np.array([read]), np.array([t % 2]), np.zeros((1, 5), np.float32))
        logits, value, state = network(torch.from_numpy(observation), torch.from_numpy(mask) > 0, state)
        assert out.value[0] == pytest.approx(value.item(), abs=1e-6)
        assert out.action[0] == logits.argmax().item()
        assert np.allclose(engine.states(np.array([t % 2]))[0], state[0].detach().numpy(), atol=1e-6)
        read = t % 2


@both_networks
@pytest.mark.parametrize("precision", [torch.float32, torch.bfloat16])
def test_deterministic_rows_do_not_depend_on_position_or_mates(precision: torch.dtype, spec: GameSpec) -> None:
    engine = _engine(spec, deterministic=True, precision=precision, max_sessions=200)
    generator = np.random.default_rng(1)
    observation = _observations(spec, 150, seed=1)
    mask, noise = np.ones((150, 5), np.uint8), _noise(150)
    rows = np.arange(150)
    zero = np.full(150, engine.zero_row)
    together = act(engine, observation, mask, zero, rows, noise)
    order = generator.permutation(150)
    shuffled = act(engine, observation[order], mask, zero, rows, noise[order])
    assert np.array_equal(together.value[order], shuffled.value)
    assert np.array_equal(together.log_prob[order], shuffled.log_prob)
    for i in range(0, 150, 13):
        part = slice(i, i + 1)
        alone = act(engine, observation[part], mask[part], zero[part], rows[part], noise[part])
        assert alone.value[0] == together.value[i]


def test_swapped_weights_answer_from_the_next_batch_on_and_states_stay() -> None:
    engine, networks = _engine(), [_network(seed) for seed in range(4)]
    engine.warm_up((1,))
    generator = np.random.default_rng(0)
    mask, noise = np.ones((1, 5), np.uint8), np.zeros((1, 5), np.float32)
    state, read = networks[0].initial_state(1), engine.zero_row
    serving = networks[0]
    for t, newer in enumerate([*networks[1:], *networks]):
        ready = engine.prepare(newer.state_dict())  # beside the loop: nothing changes yet
        for network in (serving, newer):
            observation = generator.standard_normal((1, 6)).astype(np.float32)
            answer = act(engine, observation, mask, np.array([read]), np.array([t % 2]), noise).value[0]
            _, value, new_state = network(torch.from_numpy(observation), torch.from_numpy(mask) > 0, state)
            assert answer == pytest.approx(value.item(), abs=1e-6)
            if network is serving:
                engine.swap(ready)
        state, read, serving = new_state, t % 2, newer
        assert len(engine._spares) == 1  # two networks take turns, whatever the number of swaps


class OneHead(RecurrentNetwork):
    """As people write them: logits and value are slices of one tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(6, 6)

    def forward(self, observation, mask, state):
        out = self.head(observation.float())
        return out[:, 1:], out[:, 0], state


@pytest.mark.parametrize("precision", [torch.float32, torch.bfloat16])
def test_slices_of_one_tensor_are_served(precision: torch.dtype) -> None:
    network = OneHead()
    engine = PolicyEngine(network, SPEC, max_sessions=8, device=torch.device("cpu"), precision=precision)
    observation = np.random.default_rng(0).standard_normal((5, 6)).astype(np.float32)
    mask, rows = np.ones((5, 5), np.uint8), np.arange(5)
    found = act(engine, observation, mask, np.full(5, engine.zero_row), rows, np.zeros((5, 5), np.float32))
    logits, value, _ = network(torch.from_numpy(observation), torch.from_numpy(mask) > 0, network.initial_state(5))
    assert found.action.tolist() == logits.argmax(1).tolist()
    assert found.value == pytest.approx(value.detach().numpy(), abs=1e-6)


def test_a_network_that_cannot_be_copied_is_swapped_in_place() -> None:
    class Own(OneHead):
        def __deepcopy__(self, memo):
            raise TypeError("there can be only one")

        def lowered(self, dtype):
            return self

    engine, newer = (
        PolicyEngine(Own(), SPEC, max_sessions=8, device=torch.device("cpu"), precision=torch.float32),
        Own(),
    )
    engine.warm_up((1,))
    engine.swap(engine.prepare(newer.state_dict()))
    observation, mask = np.ones((1, 6), np.float32), np.ones((1, 5), np.uint8)
    row, noise = np.array([engine.zero_row]), np.zeros((1, 5), np.float32)
    value = act(engine, observation, mask, row, np.array([0]), noise).value[0]
    assert value == pytest.approx(newer.head(torch.ones(1, 6))[0, 0].item(), abs=1e-6)


def test_choices_of_device_and_precision_are_said() -> None:
    assert choose_device("cpu").type == "cpu"
    if not torch.cuda.is_available():
        with pytest.raises(ConfigError, match=r"only .*cpu"):
            choose_device("cuda")
    cpu = torch.device("cpu")
    assert choose_precision("float32", cpu) is torch.float32
    assert choose_precision("bfloat16", cpu) is torch.bfloat16


@pytest.mark.parametrize("deterministic", [False, True])
def test_evaluating_a_board_asks_for_legal_actions_alone_and_follows_the_weights(deterministic: bool) -> None:
    cells = (-1, *range(11), -1)
    board = GameSpec(
        "board", 14, len(cells), "uint8", observation_shape=(1, 4, 3), observation_axes="CHW", action_planes=1,
        action_cells=cells,
    )  # fmt: skip
    config = NetworkConfig("board_resnet", {"channels": 8, "blocks": 1, "hidden": 8})
    engine = PolicyEngine(
        build_network(config, board), board, max_sessions=4, device=torch.device("cpu"), precision=torch.float32,
        deterministic=deterministic,
    )  # fmt: skip
    draw = np.random.default_rng(0)
    for seed, rows in ((0, 5), (1, 3), (2, 1)):
        network = build_network(config, board, seed=seed)
        generator = torch.Generator().manual_seed(seed)
        for parameter in network.parameters():
            parameter.data += 0.1 * torch.randn(parameter.shape, generator=generator)
        engine.swap(engine.prepare(network.state_dict()))
        observation = random_observations(board, rows, draw)
        mask = (draw.random((rows, board.num_actions)) < 0.4).astype(np.uint8)
        mask[:, seed] = 1
        priors, value = engine.evaluate(observation, pack_masks(mask), np.full(rows, engine.zero_row))
        legal = torch.from_numpy(mask) > 0
        logits, wanted, _ = network(torch.from_numpy(observation), legal, network.initial_state(rows))
        expected = logits.masked_fill(~legal, -torch.inf).softmax(-1)[legal]
        assert np.allclose(priors, expected.detach().numpy(), atol=1e-5)
        assert priors.std() > 1e-3
        assert np.allclose(value, wanted.detach().numpy(), atol=1e-5)
