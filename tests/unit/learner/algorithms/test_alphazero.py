"""AlphaZero's loss and its gradients against a second implementation, row by row, in float64."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from simul.common.protocol.specs import GameSpec
from simul.learner.algorithms import Settings
from simul.learner.algorithms.alphazero import alphazero_loss, list_positions, make_positions
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
        make_positions(columns, SPEC.num_actions, CPU), logits, value, Settings(value_coefficient=1.5)
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
    loss = alphazero_loss(make_positions(columns, SPEC.num_actions, CPU), logits, value, Settings())
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
    wanted = alphazero_loss(whole, logits, value, Settings(value_coefficient=1.5))
    listed = list_positions(columns, SPEC.num_actions, CPU)
    assert torch.equal(listed.mask, whole.mask)
    found = alphazero_loss(listed.positions, logits.gather(1, listed.actions), value, Settings(value_coefficient=1.5))
    torch.testing.assert_close(found.total, wanted.total, rtol=1e-12, atol=0)
    for name, figure in wanted.figures.items():
        torch.testing.assert_close(found.figures[name], figure, rtol=1e-10, atol=1e-12, msg=name)
    by_list, by_all = (torch.autograd.grad(loss.total, logits)[0] for loss in (found, wanted))
    torch.testing.assert_close(by_list, by_all, rtol=1e-10, atol=1e-14)
