"""AlphaZero's loss and its gradients against a second implementation, row by row, in float64."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from simul.common.protocol.specs import GameSpec
from simul.learner.algorithms import Settings
from simul.learner.algorithms.alphazero import Prediction, alphazero_loss, list_positions, make_positions
from tests.support.samples import SampleDraw

SPEC = GameSpec("test", observation_size=3, num_actions=11)
ROWS = 9
CPU = torch.device("cpu")


def drawn(seed: int = 0):
    return SampleDraw(SPEC, seed).columns(ROWS)


def reference(columns, logits: np.ndarray, value: np.ndarray, coefficient: float):
    """(loss, its gradient by logits, by value, figures) with plain loops: softmax minus target, value minus outcome."""
    by_logits, by_value = np.zeros_like(logits), np.zeros_like(value)
    targeted = int((columns["target_count"] > 0).sum())
    policy = divergence = entropy = 0.0
    at = 0
    for row, count in enumerate(columns["target_count"].tolist()):
        legal = np.unpackbits(columns["mask"][row], count=SPEC.num_actions, bitorder="little").astype(bool)
        weights = {a: math.exp(logits[row, a]) for a in np.flatnonzero(legal).tolist()}
        chance = {a: weight / sum(weights.values()) for a, weight in weights.items()}
        entropy -= sum(p * math.log(p) for p in chance.values()) / ROWS
        target = dict(
            zip(
                columns["target_action"][at : at + count].tolist(),
                columns["target_probability"][at : at + count].tolist(),
            )
        )
        at += count
        for action, probability in target.items():
            policy -= probability * math.log(chance[action]) / targeted
            divergence += probability * math.log(probability / chance[action]) / targeted
        if target:
            for action in chance:
                share = sum(target.values()) * chance[action] - target.get(action, 0.0)
                by_logits[row, action] = share / targeted
        by_value[row] = coefficient * (value[row] - columns["outcome"][row]) / ROWS
    error = value - columns["outcome"]
    squared = float(np.mean(error**2)) / 2
    explained = 1 - error.var() / columns["outcome"].var()
    named = {
        "policy_loss": policy, "value_loss": squared, "kl": divergence, "entropy": entropy,
        "explained_variance": explained,
    }  # fmt: skip
    return policy + coefficient * squared, by_logits, by_value, named


@pytest.mark.parametrize("seed", range(3))
def test_loss_gradients_and_figures_are_those_of_the_reference(seed: int) -> None:
    columns = drawn(seed)
    random = np.random.default_rng(seed)
    logits = torch.tensor(random.normal(size=(ROWS, SPEC.num_actions)), dtype=torch.float64, requires_grad=True)
    value = torch.tensor(random.uniform(-1, 1, ROWS), dtype=torch.float64, requires_grad=True)
    columns["target_probability"] = columns["target_probability"].astype(np.float64)
    columns["outcome"] = columns["outcome"].astype(np.float64)
    loss = alphazero_loss(
        make_positions(columns, SPEC.num_actions, CPU), Prediction(logits, value), Settings(value_coefficient=1.5)
    )
    loss.total.backward()
    wanted, by_logits, by_value, named = reference(columns, logits.detach().numpy(), value.detach().numpy(), 1.5)
    assert loss.total.item() == pytest.approx(wanted, rel=1e-12)
    np.testing.assert_allclose(logits.grad, by_logits, rtol=1e-10, atol=1e-14)
    np.testing.assert_allclose(value.grad, by_value, rtol=1e-10, atol=1e-14)
    for name, figure in named.items():
        assert loss.figures[name].item() == pytest.approx(figure, rel=1e-10), name
    assert not any(figure.requires_grad for figure in loss.figures.values())


def test_a_batch_without_any_target_teaches_the_value_alone() -> None:
    columns = drawn()
    columns |= {"target_count": np.zeros(ROWS, np.int32)}
    columns |= {name: columns[name][:0] for name in ("target_action", "target_probability")}
    logits, value = torch.zeros(ROWS, SPEC.num_actions, requires_grad=True), torch.zeros(ROWS, requires_grad=True)
    loss = alphazero_loss(make_positions(columns, SPEC.num_actions, CPU), Prediction(logits, value), Settings())
    loss.total.backward()
    assert loss.figures["policy_loss"] == 0
    assert not logits.grad.any()
    assert value.grad.all()


@pytest.mark.parametrize("seed", range(3))
def test_the_loss_of_the_legal_actions_alone_is_that_of_all(seed: int) -> None:
    columns = drawn(seed)
    random = np.random.default_rng(seed)
    logits = torch.tensor(random.normal(size=(ROWS, SPEC.num_actions)), dtype=torch.float64, requires_grad=True)
    value = torch.tensor(random.uniform(-1, 1, ROWS), dtype=torch.float64)
    whole = make_positions(columns, SPEC.num_actions, CPU)
    wanted = alphazero_loss(whole, Prediction(logits, value), Settings(value_coefficient=1.5))
    listed = list_positions(columns, SPEC.num_actions, CPU)
    assert torch.equal(listed.mask, whole.mask)
    predicted = Prediction(logits.gather(1, listed.actions), value)
    found = alphazero_loss(listed.positions, predicted, Settings(value_coefficient=1.5))
    torch.testing.assert_close(found.total, wanted.total, rtol=1e-12, atol=0)
    for name, figure in wanted.figures.items():
        torch.testing.assert_close(found.figures[name], figure, rtol=1e-10, atol=1e-12, msg=name)
    by_list, by_all = (torch.autograd.grad(loss.total, logits)[0] for loss in (found, wanted))
    torch.testing.assert_close(by_list, by_all, rtol=1e-10, atol=1e-14)


def test_what_the_end_tells_is_learned_part_by_part() -> None:
    """Planes and numbers weigh alike, however many there are; each is the mean binary cross-entropy."""
    spec = GameSpec(
        "board", 3, 11, observation_shape=(1, 1, 3), observation_axes="CHW", ending_planes=2, ending_numbers=1
    )
    columns = SampleDraw(spec).columns(ROWS)
    draw = torch.Generator().manual_seed(1)
    planes, numbers = (torch.randn(ROWS, size, generator=draw, requires_grad=True) for size in spec.ending_sizes)
    positions = make_positions(columns, spec.num_actions, CPU)
    logits, value = torch.zeros(ROWS, spec.num_actions), torch.zeros(ROWS)
    plain = alphazero_loss(positions, Prediction(logits, value), Settings(ending_coefficient=0.5))
    loss = alphazero_loss(positions, Prediction(logits, value, (planes, numbers)), Settings(ending_coefficient=0.5))

    def entropy(given: torch.Tensor, target: np.ndarray) -> float:
        chance = 1 / (1 + np.exp(-given.detach().double().numpy()))
        return float(-(target * np.log(chance) + (1 - target) * np.log(1 - chance)).mean())

    ending = columns["ending"] / 255.0
    wanted = entropy(planes, ending[:, :6]) + entropy(numbers, ending[:, 6:])
    assert loss.figures["ending_loss"].item() == pytest.approx(wanted, rel=1e-5)
    assert (loss.total - plain.total).item() == pytest.approx(0.5 * wanted, rel=1e-5)
    assert "ending_loss" not in plain.figures
    loss.total.backward()
    assert planes.grad is not None
    assert planes.grad.numpy() == pytest.approx(
        0.5 * (planes.detach().sigmoid().numpy() - ending[:, :6]) / (6 * ROWS), rel=1e-3, abs=1e-6
    )
