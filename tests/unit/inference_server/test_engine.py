"""Sampling, the state table and weights, without sockets."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from common import rng
from common.config import NetworkConfig
from common.errors import ConfigError, WeightsError
from common.nets.build import build_network
from common.nets.devices import choose_device, choose_precision
from common.nets.weights import fingerprint, weights_to_bytes
from common.specs import GameSpec
from inference_server.engine.engine import PolicyEngine
from inference_server.engine.sampling import sample
from inference_server.weights import verify

SPEC = GameSpec(name="test", observation_size=6, num_actions=5)


def _network(seed: int = 0):
    return build_network(NetworkConfig(options={"hidden": 16}), SPEC, seed=seed)


def _engine(**more) -> PolicyEngine:
    options = {"max_sessions": 8, "device": torch.device("cpu"), "precision": torch.float32} | more
    return PolicyEngine(_network(), SPEC, **options)


def _noise(n: int, seed: int = 0) -> np.ndarray:
    keys = np.full(n, rng.session_key(seed, "a", 0, 0, 0), np.uint64)
    return rng.gumbel(keys, np.arange(n, dtype=np.uint64), np.zeros(n, np.uint64), 5)


def test_a_masked_action_is_never_sampled_and_the_rest_follow_the_softmax() -> None:
    n = 200_000
    logits = torch.tensor([[2.0, 0.0, -1.0, 30.0, 1.0]]).expand(n, 5)
    mask = torch.tensor([[True, True, True, False, True]]).expand(n, 5)
    action, log_prob = sample(logits, mask, torch.from_numpy(_noise(n)))
    share = np.bincount(action.numpy(), minlength=5) / n
    wanted = torch.log_softmax(torch.tensor([2.0, 0.0, -1.0, -torch.inf, 1.0]), 0)
    assert share[3] == 0
    assert np.abs(share - wanted.exp().numpy()).max() < 0.005
    assert torch.allclose(log_prob, wanted[action], atol=1e-5)


def test_stepping_through_the_table_is_stepping_the_network() -> None:
    engine, network = _engine(), _network()
    state = network.initial_state(1)
    rows = np.random.default_rng(0).standard_normal((6, 1, 6)).astype(np.float32)
    mask = np.ones((1, 5), np.uint8)
    read = engine.zero_row
    for t, observation in enumerate(rows):
        out = engine.act(observation, mask, np.array([read]), np.array([t % 2]), np.zeros((1, 5), np.float32))
        logits, value, state = network(torch.from_numpy(observation), torch.from_numpy(mask) > 0, state)
        assert out.value[0] == pytest.approx(value.item(), abs=1e-6)
        assert out.action[0] == logits.argmax().item()
        assert np.allclose(engine.states(np.array([t % 2]))[0], state[0].detach().numpy(), atol=1e-6)
        read = t % 2


@pytest.mark.parametrize("precision", [torch.float32, torch.bfloat16])
def test_deterministic_rows_do_not_depend_on_position_or_mates(precision: torch.dtype) -> None:
    engine = _engine(deterministic=True, precision=precision, max_sessions=200)
    generator = np.random.default_rng(1)
    observation = generator.standard_normal((150, 6)).astype(np.float32)
    mask, noise = np.ones((150, 5), np.uint8), _noise(150)
    rows = np.arange(150)
    zero = np.full(150, engine.zero_row)
    together = engine.act(observation, mask, zero, rows, noise)
    order = generator.permutation(150)
    shuffled = engine.act(observation[order], mask, zero, rows, noise[order])
    assert np.array_equal(together.value[order], shuffled.value)
    assert np.array_equal(together.log_prob[order], shuffled.log_prob)
    for i in range(0, 150, 13):
        part = slice(i, i + 1)
        alone = engine.act(observation[part], mask[part], zero[part], rows[part], noise[part])
        assert alone.value[0] == together.value[i]


def test_loading_weights_changes_the_answers_in_place() -> None:
    engine, other = _engine(), _network(seed=1)
    observation, mask = np.ones((1, 6), np.float32), np.ones((1, 5), np.uint8)
    row, noise = np.array([engine.zero_row]), np.zeros((1, 5), np.float32)
    before = engine.act(observation, mask, row, np.array([0]), noise).value[0]
    data = weights_to_bytes(other)
    engine.load(verify(data, fingerprint(data), other))
    after = engine.act(observation, mask, row, np.array([0]), noise).value[0]
    expected = other(torch.from_numpy(observation), torch.ones(1, 5, dtype=torch.bool), other.initial_state(1))[1]
    assert before != after
    assert after == pytest.approx(expected.item(), abs=1e-6)


def test_weights_that_do_not_fit_are_refused() -> None:
    network = _network()
    good = weights_to_bytes(network)
    other = weights_to_bytes(build_network(NetworkConfig(options={"hidden": 8}), SPEC))
    with torch.no_grad():
        next(network.parameters()).fill_(torch.nan)
    bad = weights_to_bytes(network)
    for data, text in (
        (good[:-10], "safetensors"),
        (b"\x80\x04pickle", "safetensors"),
        (other, "expected"),
        (bad, "finite"),
    ):
        with pytest.raises(WeightsError, match=text):
            verify(data, fingerprint(data), _network())
    with pytest.raises(WeightsError, match="torn"):
        verify(good[:-10], fingerprint(good), _network())


def test_choices_of_device_and_precision_are_said() -> None:
    assert choose_device("cpu").type == "cpu"
    if not torch.cuda.is_available():
        with pytest.raises(ConfigError, match=r"only .*cpu"):
            choose_device("cuda")
    cpu = torch.device("cpu")
    assert choose_precision("float32", cpu) is torch.float32
    assert choose_precision("bfloat16", cpu) is torch.bfloat16
