"""The promises of the comparison, and the network that its other ways evaluate with."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from benchmarks.search.network import NetworkEvaluator
from benchmarks.search.results import Repeat, Window, against_hybrid, promises, ratio
from simul.common.config.loader import load_config
from simul.common.nets.base import example_observation
from simul.common.nets.build import build_network
from simul.common.protocol.masks import pack_masks
from simul.env_worker.games.loading import game_spec

SMALL = ("network.options={channels: 4, blocks: 1, hidden: 8}", "server.precision=float32")


def _window(rate: float, batch: float = 1.0) -> Window:
    return Window(2.0, rate / 10, 2 * rate, 2 * rate, 2 * rate / batch, 2.0, 1.0, ())


def _repeat(server: float, alone: tuple[float, float], hybrid: float, bare_us: float) -> Repeat:
    windows = {"alone1": _window(alone[0]), "alone2": _window(alone[1]), "hybrid": _window(hybrid)}
    return Repeat({**windows, "server": _window(server, batch=32.0)}, bare_us, bare_us / 2)


def test_promises_are_medians_of_ratios_within_a_repeat() -> None:
    repeats = [
        _repeat(800.0, (400.0, 500.0), 1600.0, 1000.0),
        _repeat(900.0, (300.0, 200.0), 900.0, 1000.0),
        _repeat(700.0, (700.0, 100.0), 1400.0, 1000.0),
    ]
    bare, alone = promises(repeats, cpu=True)
    assert (bare.found, bare.kept) == (pytest.approx(0.8), True)
    assert bare.by_cpu == pytest.approx(0.8)  # 500 us of 1 s of the server's for 1,600 leaves
    assert (alone.found, alone.kept) == (pytest.approx(1.6), True)
    assert ratio(repeats, ["hybrid"]) == pytest.approx(0.5)
    assert promises(repeats, cpu=False) == []
    assert "our server / hybrid: 0.50 of its leaf evaluations a second" in against_hybrid(repeats)
    missed = promises([_repeat(700.0, (500.0, 500.0), 1.0, 1000.0)], cpu=True)
    assert [promise.kept for promise in missed] == [False, False]


def test_a_network_of_its_own_answers_as_the_network() -> None:
    config = load_config("blokus", SMALL)
    spec = game_spec(config)
    draw = torch.Generator().manual_seed(1)
    observation = example_observation(spec, torch.rand(3, spec.observation_size, generator=draw))
    mask = torch.rand(3, spec.num_actions, generator=draw) < 0.01
    evaluator = NetworkEvaluator(config.network, spec)
    number = evaluator.submit(observation.numpy(), pack_masks(mask.numpy()), spec.num_actions)
    (answer,) = evaluator.poll()
    assert (answer.id, evaluator.poll()) == (number, [])
    network = build_network(config.network, spec)
    with torch.no_grad():
        logits, value, _ = network(observation, mask, network.initial_state(3))
    wanted = torch.where(mask, logits, -torch.inf).softmax(1)
    np.testing.assert_allclose(answer.priors, wanted.numpy(), atol=1e-5)
    np.testing.assert_allclose(answer.value, value.numpy(), atol=1e-5)
