"""Running statistics against numpy over the whole stream, over a save, and in what they do to an update."""

from __future__ import annotations

import copy
import re

import numpy as np
import pytest
import torch

from simul.common.config.schema import NetworkConfig
from simul.common.errors import CheckpointError, ConfigError, WeightsError
from simul.common.nets.build import build_network
from simul.common.nets.io import bytes_to_state, weights_to_bytes
from simul.common.nets.normalization import NormalizedNetwork
from simul.common.nets.traced import trace_network
from simul.common.protocol.specs import GameSpec, random_observations
from simul.learner.algorithms import Settings
from simul.learner.checkpoints.checkpoint_store import Checkpoint
from simul.learner.checkpoints.optimizer_state import check_reward_scale, optimizer_to_bytes, restore
from simul.learner.io.unrolls import ReceivedUnroll
from simul.learner.training import normalization
from simul.learner.training.normalization import RewardScale, RunningMoments
from tests.support.declared import DECLARED, UNITS
from tests.unit.learner.training.test_update import updater

NORMALIZED = NetworkConfig("mlp_lstm", {"hidden": 8}, normalize_observations=True)


@pytest.fixture
def network(draw) -> NormalizedNetwork:
    return build_network(NORMALIZED, draw.spec, seed=1)


@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_moments_are_those_of_the_whole_stream(offset):
    """Far from 0, sums of squares would have lost every digit."""
    stream = offset + np.random.default_rng(1).normal(size=(5000, 3)) * [1e-3, 1, 50]
    moments = RunningMoments((3,))
    for batch in np.split(stream, [0, 1, 2, 700, 4999]):
        moments.add(batch)
    assert (moments.count == 5000).all()
    np.testing.assert_allclose(moments.mean, stream.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(moments.variance, stream.var(axis=0), rtol=1e-6)


def test_the_network_sees_observations_at_mean_0_and_variance_1(draw, network):
    plain = build_network(NetworkConfig("mlp_lstm", {"hidden": 8}), draw.spec, seed=1)
    observation, mask = 1000 * torch.randn(64, 4) + 300, torch.ones(64, 2, dtype=torch.bool)
    state = network.initial_state(64)
    before = network(observation / 1000, mask, state)
    torch.testing.assert_close(before, plain(observation / 1000, mask, state))  # statistics of nothing: mean 0, 1
    network.observation_mean.copy_(observation.mean(0))
    network.observation_variance.copy_(observation.var(0, correction=0))
    seen = (observation - observation.mean(0)) / observation.std(0, correction=0)
    torch.testing.assert_close(network(observation, mask, state), plain(seen, mask, state), atol=1e-5, rtol=1e-4)
    far = network(observation + 1e9, mask, state)
    torch.testing.assert_close(far, plain(torch.full((64, 4), 10.0), mask, state))
    lengths = torch.full((64,), 1)
    logits, value = network.unroll(observation[None], mask[None], state, lengths)
    torch.testing.assert_close((logits[0], value[0]), network(observation, mask, state)[:2], atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("precision", [torch.float32, torch.bfloat16])
def test_it_is_traced_and_lowered_with_its_statistics(draw, network, precision):
    network.observation_mean.fill_(500.0)
    served = network.lowered(precision)
    assert served.observation_mean.dtype == torch.float32
    assert next(served.network.body.parameters()).dtype == precision
    with torch.inference_mode():
        traced = trace_network(served.eval().requires_grad_(False), draw.spec)
        assert traced.traced is not None
        row = torch.full((1, 4), 501.0), torch.ones(1, 2, dtype=torch.bool), network.initial_state(1)
        before = traced.forward(*row)[1]
        network.observation_mean.fill_(400.0)
        traced.load(network.state_dict())
        assert traced.forward(*row)[1] != before
        torch.testing.assert_close(traced.clone().forward(*row), traced.forward(*row))


def test_every_update_counts_what_it_learns_from_once(draw, network):
    learner = updater(network, epochs=3, normalize_rewards=True)
    unrolls = [draw.unroll(n) for n in (5, 3, 8, 1, 4)]
    for part in (unrolls[:3], unrolls[3:]):
        learner.update(part, 0, 1e-3, Settings())
    seen = np.concatenate([unroll.arrays["observation"][:-1] for unroll in unrolls])
    np.testing.assert_allclose(network.observation_mean, seen.mean(axis=0), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(network.observation_variance, seen.var(axis=0), rtol=1e-5)
    assert int(learner.statistics()["returns.count"]) == 21


def unroll(reward, session=1, first_step=0, over=False):
    reward = np.array(reward, np.float32)
    return ReceivedUnroll(len(reward), over, {"reward": reward}, session, first_step, over)


def test_returns_run_through_the_unrolls_of_a_session():
    scale = RewardScale(0.5)
    scale.count([unroll([1, 2]), unroll([8], session=2), unroll([4], first_step=2, over=True), unroll([1])])
    returns = [1, 2.5, 8, 5.25, 1]  # the last session's number is used again: it begins at 0
    assert scale.moments.mean == pytest.approx(np.mean(returns))
    assert scale.moments.variance == pytest.approx(np.var(returns))
    scale.count([unroll([3], session=2, first_step=9)])  # steps 1 to 8 were lost
    assert scale.moments.mean == pytest.approx(np.mean([*returns, 3]))
    expected = 2.0 / np.std([*returns, 3])
    scaled = scale.scaled(torch.tensor([2.0, 1e6, -1e6]))
    torch.testing.assert_close(scaled, torch.tensor([expected, 10.0, -10.0]).float())


def test_an_update_learns_from_scaled_rewards(draw, network):
    unrolls, scale, alike = [draw.unroll(8) for _ in range(4)], RewardScale(0.9), copy.deepcopy(network)
    updater(network, normalize_rewards=True).update(unrolls, 0, 1e-3, Settings())
    scale.count(unrolls)
    for each in unrolls:
        each.arrays["reward"][:] = scale.scaled(torch.from_numpy(each.arrays["reward"]))
    updater(alike).update(unrolls, 0, 1e-3, Settings())
    torch.testing.assert_close(network.state_dict(), alike.state_dict())


def test_sessions_without_an_end_are_forgotten(monkeypatch):
    monkeypatch.setattr(normalization, "MOST_SESSIONS", 10)
    scale = RewardScale(0.5)
    scale.count([unroll([1.0], session=number) for number in range(15)])
    assert list(scale._open) == list(range(5, 15))


def test_a_resumed_learner_goes_on_from_the_saved_statistics(draw, network, facts):
    unrolls = [draw.unroll(8) for _ in range(6)]
    first = updater(network, normalize_rewards=True)
    first.update(unrolls[:4], 0, 1e-3, Settings())
    weights = weights_to_bytes(network)
    saved = Checkpoint(
        facts.meta(1, 32, 1, {}, False), weights, optimizer_to_bytes(network, first.optimizer, first.statistics())
    )
    again = build_network(NORMALIZED, draw.spec, seed=9)
    second = updater(again, normalize_rewards=True)
    second.load_statistics(restore(saved, again, second.optimizer))
    torch.testing.assert_close(again.state_dict(), bytes_to_state(weights), rtol=0, atol=0)
    for learner in (first, second):
        learner.update(unrolls[4:], 1, 1e-3, Settings())
    torch.testing.assert_close(second.statistics(), first.statistics(), rtol=0, atol=0)
    torch.testing.assert_close(again.observation_mean, network.observation_mean, rtol=0, atol=0)


def test_statistics_that_come_with_weights_alone_are_kept(draw, network, facts):
    network.observation_mean.fill_(500.0)
    network.observation_variance.fill_(9.0)
    learner = updater(network)
    learner.load_statistics({})
    learner.update([draw.unroll(8)], 0, 1e-3, Settings())
    torch.testing.assert_close(network.observation_mean, torch.full((4,), 500.0), rtol=1e-3, atol=0)
    assert learner.statistics()["observations.count"].tolist() == [normalization.ASSUMED + 8] * 4


def test_a_checkpoint_without_statistics_is_resumed(draw, network, facts):
    saved = Checkpoint(
        facts.meta(1, 32, 1, {}, False),
        weights_to_bytes(network),
        optimizer_to_bytes(network, updater(network).optimizer),
    )
    learner = updater(network, normalize_rewards=True)
    learner.load_statistics(restore(saved, network, learner.optimizer))
    assert int(learner.statistics()["returns.count"]) == 0


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"mean": None}, r"mean: expected torch.float64 [4], got none"),
        ({"mean": torch.zeros(3).double()}, r"mean: expected torch.float64 [4], got torch.float64 [3]"),
        ({"variance": torch.zeros(4)}, r"variance: expected torch.float64 [4], got torch.float32 [4]"),
        ({"variance": -torch.ones(4).double()}, r"variance: expected no number below 0, got -1"),
        ({"count": torch.zeros(2).long()}, r"count: expected torch.int64 [4], got torch.int64 [2]"),
    ],
)
def test_statistics_that_do_not_fit_are_refused(network, change, sentence):
    saved = updater(network).statistics() | {f"observations.{name}": value for name, value in change.items()}
    with pytest.raises(WeightsError, match="statistics of observations: " + re.escape(sentence)):
        updater(network).load_statistics({name: value for name, value in saved.items() if value is not None})


@pytest.mark.parametrize("before", [False, True])
def test_a_resume_on_another_scale_of_rewards_is_refused(network, facts, before):
    statistics = updater(network, normalize_rewards=before).statistics()
    saved = Checkpoint(facts.meta(7, 32, 1, {}, False), b"", b"")
    check_reward_scale(saved, statistics, before)
    with pytest.raises(
        CheckpointError, match=f"version 7 was trained with learner.normalize_rewards: {str(before).lower()}"
    ):
        check_reward_scale(saved, statistics, not before)
    copied = Checkpoint(facts.meta(7, 0, 0, {}, False), b"", b"")
    check_reward_scale(copied, statistics, not before)


def test_images_must_not_be_normalized():
    spec = GameSpec("game", 4, 2, "uint8", observation_shape=(2, 2), observation_axes="HW")
    with pytest.raises(ConfigError, match="game observes images"):
        build_network(NetworkConfig("conv_lstm", normalize_observations=True), spec)


def test_ids_and_masks_of_entities_are_not_normalized():
    network = build_network(NetworkConfig("attention", normalize_observations=True), DECLARED)
    plain = build_network(NetworkConfig("attention"), DECLARED)
    network.observation_mean.fill_(0.5)
    network.observation_variance.fill_(4.0)
    observation = torch.from_numpy(random_observations(DECLARED, 6, np.random.default_rng(0)))
    scaled = (observation - 0.5) / (4.0 + 1e-8) ** 0.5
    for part in DECLARED.layout:
        if part.kind == "id" or part.name.endswith(".present"):
            scaled[:, part.start : part.start + part.size] = observation[:, part.start : part.start + part.size]
    mask = torch.ones(6, DECLARED.num_actions, dtype=torch.bool)
    found, expected = network(observation, mask, torch.zeros(6, 0)), plain(scaled, mask, torch.zeros(6, 0))
    torch.testing.assert_close(found, expected)


def test_blocks_of_a_group_share_the_statistics_of_those_present(draw):
    """Whatever the order of the entities: the same field has the same mean and variance in every block."""
    network = build_network(NetworkConfig("mlp", {"hidden": 8}, normalize_observations=True), DECLARED, seed=1)
    rows = random_observations(DECLARED, 300, np.random.default_rng(2))
    unit = [DECLARED.block(f"unit.{i}") for i in range(UNITS)]
    place = np.array([[part.start, part.start + 1] for block in unit for part in block if part.name.endswith("place")])
    present = rows[:, [part.start for block in unit for part in block if part.name.endswith("present")]] > 0
    statistics = normalization.ObservationStatistics(network)
    for batch in (rows[:100], rows[100:100], rows[100:]):
        arrays = {"observation": np.concatenate((batch, batch[:1]))}
        statistics.count([ReceivedUnroll(len(batch), False, arrays)] if len(batch) else [])
    seen = rows[:, place][present]
    for block in place:
        np.testing.assert_allclose(network.observation_mean[block], seen.mean(axis=0), rtol=1e-5)
        np.testing.assert_allclose(network.observation_variance[block], seen.var(axis=0), rtol=1e-5)
        assert torch.equal(network.observation_mean[block], network.observation_mean[place[0]])
    mask, state = torch.ones(300, 5, dtype=torch.bool), network.initial_state(300)
    observed = torch.from_numpy(rows)
    turned = observed.clone()
    turned[:, unit[0][0].start : unit[0][0].start + 4 * UNITS] = (
        observed[:, unit[0][0].start : unit[0][0].start + 4 * UNITS].unflatten(1, (UNITS, 4)).flip(1).flatten(1)
    )
    torch.testing.assert_close(network(observed, mask, state), network(turned, mask, state))


def test_an_entity_counts_as_much_whenever_it_is_there(draw):
    """Entities that come late, and batches with few of them."""
    network = build_network(NetworkConfig("mlp", {"hidden": 8}, normalize_observations=True), DECLARED, seed=1)
    place = [DECLARED.slice(f"unit.{i}.place").start for i in range(UNITS)]
    present = [DECLARED.slice(f"unit.{i}.present").start for i in range(UNITS)]
    statistics = normalization.ObservationStatistics(network)
    seen = []
    for there, value in ((0, 0.0), (0, 0.0), (UNITS, 100.0), (1, 10.0)):
        rows = random_observations(DECLARED, 51, np.random.default_rng(2))
        rows[:, present] = 0
        rows[: 50 if there == UNITS else 1, present[:there]] = 1
        rows[:, place] = value + np.arange(51)[:, None]
        statistics.count([ReceivedUnroll(50, False, {"observation": rows})])
        seen += rows[:50, place][rows[:50, present] > 0].tolist()
        if not seen:
            assert network.observation_mean[place].tolist() == [0.0] * UNITS
            assert network.observation_variance[place].tolist() == [1.0] * UNITS
    assert network.observation_mean[0] != 0.0
    for column in place:
        assert float(network.observation_mean[column]) == pytest.approx(np.mean(seen), rel=1e-5)
        assert float(network.observation_variance[column]) == pytest.approx(np.var(seen), rel=1e-5)
