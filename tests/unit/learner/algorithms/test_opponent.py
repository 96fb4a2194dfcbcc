"""The loss of predicting what the opponent does: its mean, its gradient, and what it leaves alone."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from simul.common.config.games.pokemon import PokemonConfig
from simul.common.config.schema import Config, LearnerConfig, NetworkConfig
from simul.common.nets.build import build_network
from simul.common.protocol.specs import GameSpec
from simul.env_worker.games.pokemon.formats.spec import pokemon_spec
from simul.learner.algorithms import ALGORITHMS, Loss, Settings
from simul.learner.algorithms.opponent import labelled_rows, with_opponent_loss
from simul.learner.build import opponent_note
from simul.learner.io.unrolls import ReceivedUnroll
from simul.learner.reports import PREDICTION_FIGURES, TrainingStatistics
from simul.learner.training.minibatches import Minibatch, make_minibatch
from simul.learner.training.update import Updater

NOTHING = Loss(torch.zeros(()), {}, torch.zeros(()))
OPTIONS = {"entity": 8, "hidden": 16}


class SeveralRanks:
    """Another rank counts `labels` of its own."""

    count = 2

    def __init__(self, labels: float) -> None:
        self.labels = labels

    def add(self, tensor: torch.Tensor) -> torch.Tensor:
        return tensor + self.labels


def test_it_is_the_mean_over_labels_and_counts_the_most_probable_class():
    logits = torch.randn(5, 2, 7, generator=torch.Generator().manual_seed(0), requires_grad=True)
    label = torch.tensor([[0, -1], [3, 4], [-1, 6], [2, 2], [-1, 1]])
    known = [(n, k) for n in range(5) for k in range(2) if label[n, k] >= 0]
    costs = [-float(logits.detach()[n, k].log_softmax(0)[label[n, k]]) for n, k in known]
    right = sum(int(logits[n, k].argmax()) == int(label[n, k]) for n, k in known)
    loss = with_opponent_loss(NOTHING, label, logits, 0.5)
    assert float(loss.total.detach()) == pytest.approx(0.5 * sum(costs) / len(known), rel=1e-5)
    assert float(loss.figures["opponent_loss"]) == pytest.approx(sum(costs) / len(known), rel=1e-5)
    assert float(loss.figures["opponent_accuracy"]) == pytest.approx(right / len(known))
    loss.total.backward()
    assert not logits.grad[0, 1].any()
    assert logits.grad[0, 0].abs().sum() > 0
    part = with_opponent_loss(NOTHING, label, logits, 0.5, SeveralRanks(len(known)))
    assert float(part.total.detach()) == pytest.approx(float(loss.total.detach()) / 2), "parts of the ranks add up"


def test_without_a_label_it_is_nothing():
    logits = torch.zeros(0, 1, 7, requires_grad=True)
    loss = with_opponent_loss(NOTHING, torch.zeros(0, 1, dtype=torch.int64), logits, 1.0)
    assert float(loss.total.detach()) == 0.0
    assert all(figure.isnan() for figure in loss.figures.values()), "no figure of 0"
    loss.total.backward()
    part = with_opponent_loss(NOTHING, torch.zeros(0, 1, dtype=torch.int64), logits, 1.0, SeveralRanks(3))
    assert all(figure == 0 for figure in part.figures.values()), "another rank has labels: parts add up"


def _unroll(spec: GameSpec, length: int, seed: int, state_size: int) -> ReceivedUnroll:
    rng = np.random.default_rng(seed)
    observation = rng.random((length + 1, spec.observation_size)).astype(spec.dtype())
    for part in spec.layout:
        if part.kind == "id":
            at = slice(part.start, part.start + part.size)
            observation[:, at] = rng.integers(0, part.vocabulary, (length + 1, part.size))
    return ReceivedUnroll(length, True, {
        "observation": observation,
        "mask": np.ones((length + 1, spec.num_actions), np.uint8),
        "action": rng.integers(0, spec.num_actions, length).astype(np.int32),
        "log_prob": np.full(length, -3.0, np.float32),
        "reward": rng.standard_normal(length).astype(np.float32),
        "policy_version": np.zeros(length, np.int64),
        "state": np.zeros(state_size, np.float32),
        "label": rng.integers(-1, spec.opponent_classes, (length, spec.opponent_labels)).astype(np.int16),
    })  # fmt: skip


SPECS = [pokemon_spec(PokemonConfig(format=name)) for name in ("gen9randombattle", "gen9randomdoublesbattle")]


def _built(spec: GameSpec, **more):
    network = build_network(NetworkConfig("pokemon", OPTIONS), spec, seed=2)
    plain = {"discount": 0.9, "minibatches": 1, "epochs": 1, "max_gradient_norm": 1.0}
    unrolls = [_unroll(spec, 3 + i, i, network.state_size) for i in range(4)]
    return Updater(network, ALGORITHMS["ppo"], **plain, **more), unrolls


def _relabelled(batch: Minibatch, label: torch.Tensor) -> Minibatch:
    return dataclasses.replace(batch, trajectories=dataclasses.replace(batch.trajectories, label=label))


@pytest.mark.parametrize("zero_state", [False, True])
@pytest.mark.parametrize("spec", SPECS, ids=["singles", "doubles"])
def test_its_gradient_reaches_head_trunk_and_encoders_and_labels_reach_nothing_else(spec, zero_state):
    updater, unrolls = _built(spec, zero_state=zero_state)
    batch = make_minibatch(unrolls, 0.9, torch.device("cpu"))
    label, network = batch.trajectories.label, updater.network
    settings = Settings(opponent_coefficient=1.0)
    losses = {
        name: updater._loss(_relabelled(batch, each), chosen)
        for name, each, chosen in (
            ("with", label, settings),
            ("other", (label + 1) % spec.opponent_classes, settings),
            ("none", torch.full_like(label, -1), settings),
            ("off", label, Settings()),
        )
    }
    assert "opponent_loss" not in losses["off"].figures
    assert losses["none"].total == losses["off"].total
    assert losses["with"].figures["opponent_loss"] != losses["other"].figures["opponent_loss"]
    for name in ("policy_loss", "value_loss", "entropy", "kl"):
        assert len({float(loss.figures[name]) for loss in losses.values()}) == 1, "the policy does not see the label"
    grads = {}
    for name in ("with", "off"):
        network.zero_grad(set_to_none=True)
        losses[name].total.backward()
        grads[name] = {n: p.grad for n, p in network.named_parameters()}
    head = [name for name in grads["with"] if name.startswith("opponent_head.")]
    assert all(grads["off"][name] is None and grads["with"][name].abs().sum() > 0 for name in head)
    shared = ["trunk.weight", "lstm.weight", "pokemon_encoder.table", "move_encoder.table"]
    assert not any(torch.equal(grads["off"][name], grads["with"][name]) for name in shared)
    apart = ["value_head.weight", "query.weight"]
    assert all(torch.equal(grads["off"][name], grads["with"][name]) for name in apart)


def test_rows_without_a_label_and_padding_do_nothing():
    updater, unrolls = _built(SPECS[0])
    batch = make_minibatch(unrolls, 0.9, torch.device("cpu"))
    rows = labelled_rows(batch.trajectories)
    assert rows is not None
    assert rows.sum() == (batch.trajectories.label >= 0).sum()
    assert not rows[~batch.trajectories.valid].any()
    garbage = torch.where(batch.trajectories.valid[..., None], batch.trajectories.label, 3)
    settings = Settings(opponent_coefficient=1.0)
    found = [updater._loss(each, settings).figures for each in (batch, _relabelled(batch, garbage))]
    assert found[0]["opponent_loss"] == found[1]["opponent_loss"]


def test_it_is_learned():
    updater, unrolls = _built(SPECS[0])
    first, *_, last = [
        updater.update(unrolls, 0, 1e-2, Settings(opponent_coefficient=1.0)).figures["opponent_loss"] for _ in range(30)
    ]
    assert last < first / 2


def test_figures_are_of_what_has_a_label_and_without_one_there_are_none():
    updater, unrolls = _built(SPECS[0])
    statistics, asked = TrainingStatistics(0.0), Settings(opponent_coefficient=1.0)
    for unroll in unrolls[1:]:
        unroll.arrays["label"][:] = -1
    updater._minibatches = len(unrolls)  # one of them has labels
    found = updater.update(unrolls, 0, 1e-9, asked).figures
    alone = updater._loss(make_minibatch(unrolls[:1], 0.9, torch.device("cpu")), asked).figures
    assert found["opponent_loss"] == pytest.approx(float(alone["opponent_loss"]), rel=1e-4)
    unlabelled = updater.update(unrolls[1:], 0, 1e-9, asked)
    assert np.isnan(unlabelled.figures["opponent_loss"])
    statistics.count_update(unlabelled)
    assert not {*PREDICTION_FIGURES} & statistics.figures.keys()


def test_who_cannot_predict_says_so():
    learner = LearnerConfig(opponent_coefficient=0.1)
    asked, spec = Config(game="pokemon", learner=learner), SPECS[0]
    network, other = (build_network(NetworkConfig(name), spec) for name in ("pokemon", "mlp_lstm"))
    assert opponent_note(asked, spec, network) == opponent_note(Config(game="pokemon"), spec, other) == ""
    servers = Config(game="pokemon", pokemon=PokemonConfig(transport="websocket"), learner=learner)
    assert "pokemon.transport: websocket" in opponent_note(servers, spec, network)
    assert "the network has no part that does" in opponent_note(asked, spec, other)
    cartpole = GameSpec("cartpole", 4, 2)
    assert "cartpole has no labels" in opponent_note(
        asked, cartpole, build_network(NetworkConfig("mlp_lstm"), cartpole)
    )
