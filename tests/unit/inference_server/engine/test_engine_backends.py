"""The CPU's numpy arithmetic around the network, and the other devices' torch arithmetic, are the same."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from simul.common.config.schema import NetworkConfig
from simul.common.nets.build import build_network
from simul.common.nets.traced import traced_forward
from simul.common.protocol.specs import GameSpec
from simul.inference_server.engine.engine import DeviceBackend, HostBackend, Staging
from simul.inference_server.engine.sampling import sample, sample_on_host

SPEC = GameSpec(name="test/backends", observation_size=7, num_actions=6)
TABLE_ROWS = 40


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 70), st.integers(1, 30), st.sampled_from((0.1, 1.0, 30.0)))
def test_both_samplers_choose_alike(seed: int, rows: int, actions: int, spread: float) -> None:
    rng = np.random.default_rng(seed)
    logits = (rng.standard_normal((rows, actions)) * spread).astype(np.float32)
    legal = rng.random((rows, actions)) < 0.5
    legal[np.arange(rows), rng.integers(0, actions, rows)] = True
    noise = rng.gumbel(size=(rows, actions)).astype(np.float32)
    noise[rng.random(rows) < 0.2] = 0.0
    temperature = rng.choice(np.array([1.0, 0.5, 3.0], np.float32), rows)
    action, log_prob = sample_on_host(logits, legal, noise, temperature)
    expected, expected_log_prob = sample(*map(torch.from_numpy, (logits, legal, noise, temperature)))
    assert action.tolist() == expected.tolist()
    assert legal[np.arange(rows), action].all()
    np.testing.assert_allclose(log_prob, expected_log_prob.numpy(), rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize("poison", [np.nan, np.inf])
def test_what_is_not_finite_shows_in_the_log_prob_of_its_row_only(poison: float) -> None:
    logits = np.zeros((3, 4), np.float32)
    logits[1, 2] = poison
    _, log_prob = sample_on_host(logits, np.ones((3, 4), np.bool_), np.zeros_like(logits), np.ones(3, np.float32))
    assert np.isfinite(log_prob).tolist() == [True, False, True]


def test_both_backends_read_and_write_the_same_states() -> None:
    network = build_network(NetworkConfig(options={"hidden": 16}), SPEC, seed=3).eval().requires_grad_(False)
    run, rng = traced_forward(network, SPEC), np.random.default_rng(0)
    states = torch.from_numpy(rng.standard_normal((TABLE_ROWS, network.state_size)).astype(np.float32))
    backends = HostBackend(run, states.clone()), DeviceBackend(run, states.clone(), SPEC.num_actions)
    staging = Staging(64, SPEC)
    for part in (slice(0, 5), slice(3, 20), slice(0, 64), slice(0, 5)):
        n = part.stop - part.start
        staging.observation[part] = rng.standard_normal((n, SPEC.observation_size))
        staging.mask[part] = rng.random((n, SPEC.num_actions)) < 0.7
        staging.mask[part, 0] = 1
        staging.noise[part] = rng.gumbel(size=(n, SPEC.num_actions))
        staging.temperature[part] = rng.choice([0.5, 1.0], n)
        staging.read_rows[part] = rng.integers(0, TABLE_ROWS, n)
        unique = rng.permutation(TABLE_ROWS - 1)
        staging.write_rows[part] = np.concatenate((unique, np.full(64, TABLE_ROWS - 1)))[:n]  # the rest is padding
        host, device = (backend.sample(staging, backend.forward(staging, part)) for backend in backends)
        assert host.action.tolist() == device.action.tolist()
        np.testing.assert_allclose(host.log_prob, device.log_prob, rtol=1e-5, atol=2e-6)
        assert np.array_equal(host.value, device.value)
        assert torch.equal(backends[0].table[:-1], backends[1].table[:-1])
