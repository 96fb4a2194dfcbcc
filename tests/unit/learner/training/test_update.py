import copy
import dataclasses

import msgspec
import numpy as np
import pytest
import torch

from simul.common.config.schema import Config, LearnerConfig, NetworkConfig, ServerConfig
from simul.common.config.trust import EVERYTHING
from simul.common.nets.build import build_network
from simul.learner.algorithms import ALGORITHMS, Settings
from simul.learner.build import attention_note, burn_in_note, precision_note, training_precision
from simul.learner.training.minibatches import make_minibatch
from simul.learner.training.update import Updater
from tests.support.declared import DECLARED


def updater(network, algorithm="ppo", **changes):
    options = {"discount": 0.9, "minibatches": 2, "epochs": 1, "max_gradient_norm": 0.5, **changes}
    return Updater(network, ALGORITHMS[algorithm], **options)


def test_an_update_changes_every_parameter_and_reports(draw, network):
    before = copy.deepcopy(network.state_dict())
    result = updater(network).update([draw.unroll() for _ in range(6)], 0, 1e-2, Settings())
    for name, value in network.state_dict().items():
        assert not torch.equal(value, before[name]), name
    assert result.skipped == 0
    assert np.isfinite(list(result.figures.values())).all()


def test_the_ratio_error_is_zero_when_server_and_learner_agree(draw, network):
    """Log-probs recorded by stepping the same weights: |ratio - 1| at lag 0 is rounding only."""
    unrolls = [draw.unroll(version=3) for _ in range(4)]
    for unroll in unrolls:
        state = torch.from_numpy(unroll.arrays["state"])[None]
        for t in range(unroll.length):
            observation = torch.from_numpy(unroll.arrays["observation"][t])[None]
            logits, _, state = network(observation, torch.ones(1, 2, dtype=torch.bool), state)
            action = int(unroll.arrays["action"][t])
            unroll.arrays["log_prob"][t] = float(logits.detach().log_softmax(1)[0, action])
    result = updater(network, minibatches=1).update(unrolls, 3, 1e-3, Settings())
    assert result.ratio_error.size == 20
    assert result.ratio_error.max() < 1e-5
    assert updater(network).update(unrolls, 4, 1e-3, Settings()).ratio_error.size == 0, "lag 0 only"
    for unroll in unrolls:
        unroll.arrays["policy_version"][0] = 2  # older weights made the state of its later steps
    assert updater(network).update(unrolls, 3, 1e-3, Settings()).ratio_error.size == 0


def test_it_learns_which_action_pays(draw, network):
    """Action 1 earns 1, action 0 nothing, whatever is seen."""
    learner = updater(network)
    for _ in range(60):
        unrolls = [draw.unroll(8, terminated=True) for _ in range(16)]
        for unroll in unrolls:
            unroll.arrays["reward"][:] = unroll.arrays["action"]
        learner.update(unrolls, 0, 3e-3, Settings(entropy_coefficient=0.0))
    batch = make_minibatch([draw.unroll(8) for _ in range(8)], 0.9, torch.device("cpu"))
    logits, _ = network.unroll(batch.observation, batch.mask, batch.state, batch.lengths)
    assert float((logits[:8].softmax(2)[..., 1] > 0.5).float().mean()) > 0.95


def test_passes_end_at_the_target_kl_once_all_was_learned_from(draw, network):
    unrolls = [draw.unroll() for _ in range(6)]
    for target_kl, steps in ((0.0, 16), (1e6, 16), (1e-9, 2)):
        result = updater(network, epochs=8, target_kl=target_kl).update(unrolls, 0, 1e-3, Settings())
        assert (result.steps, result.learned.all()) == (steps, True)


def test_a_gradient_that_is_not_finite_leaves_the_weights_alone(draw, network):
    before = copy.deepcopy(network.state_dict())
    unroll = draw.unroll()
    unroll.arrays["reward"][0] = 1e38
    learner = updater(network)
    result = learner.update([unroll], 0, 1e-2, Settings())
    assert (result.skipped, learner.skipped_in_a_row, result.learned.tolist()) == (1, 1, [False])
    assert "the gradients' norm overflows, the largest is that of value_head." in result.cause
    assert "largest absolute reward in these unrolls 1e+38. Advice: scale the rewards" in result.cause
    torch.testing.assert_close(network.state_dict(), before, rtol=0, atol=0)


def test_what_shares_no_minibatch_with_a_wild_reward_is_learned_from(draw, network):
    learner, unrolls = updater(network, minibatches=4), [draw.unroll() for _ in range(4)]
    unrolls[1].arrays["reward"][2] = -1e38
    result = learner.update(unrolls, 0, 1e-2, Settings())
    assert (result.skipped, result.learned.tolist()) == (1, [True, False, True, True])
    learner.update(unrolls[1:2], 1, 1e-2, Settings())
    learner.update(unrolls[1:2], 1, 1e-2, Settings())
    assert learner.skipped_in_a_row >= 2
    assert learner.update(unrolls[:1], 1, 1e-2, Settings()).cause == ""
    assert learner.skipped_in_a_row == 0
    twice = updater(network, minibatches=2, epochs=8).update(unrolls, 1, 1e-2, Settings())
    assert twice.learned.sum() > 2, "in another epoch it was beside others"


def test_the_gradient_that_is_not_finite_nearest_to_the_loss_is_named(draw, network):
    network.value_head.weight.register_hook(lambda gradient: gradient * torch.inf)
    network.value_head.bias.register_hook(lambda gradient: gradient * torch.nan)
    cause = updater(network).update([draw.unroll()], 0, 1e-2, Settings()).cause
    assert cause.startswith(
        "2 of 8 gradients are not finite, nearest to the loss that of value_head.bias; the loss is "
    )


def test_without_large_rewards_the_learning_rate_is_suspected(draw, network):
    with torch.no_grad():
        network.value_head.bias.fill_(1e30)
    assert "Advice: lower learner.learning_rate" in updater(network).update([draw.unroll()], 0, 1e-2, Settings()).cause


def test_zero_state_learns_as_if_every_step_were_a_session_of_its_own(draw, network):
    unrolls = [draw.unroll(5), draw.unroll(3, terminated=True)]
    learner = updater(network, zero_state=True)
    batch = make_minibatch(unrolls, 0.9, torch.device("cpu"))
    logits, value, _ = learner._unroll(batch)
    for b, length in enumerate([6, 3]):
        for t in range(length):
            alone = network(batch.observation[t, b][None], batch.mask[t, b][None], network.initial_state(1))
            torch.testing.assert_close(logits[t, b], alone[0][0])
            torch.testing.assert_close(value[t, b], alone[1][0])


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("precision", [torch.float32, torch.bfloat16])
def test_every_algorithm_runs_in_every_precision(draw, algorithm, precision):
    network = build_network(NetworkConfig("mlp_lstm", {"hidden": 8}), draw.spec)
    learner = updater(network, algorithm, epochs=2, precision=precision)
    result = learner.update([draw.unroll() for _ in range(3)], 0, 1e-3, Settings())
    assert np.isfinite(list(result.figures.values())).all()


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_rows_of_burn_in_advance_the_state_and_teach_nothing_themselves(draw, network, algorithm):
    unrolls = [draw.unroll(8, first_step=8), draw.unroll(8), draw.unroll(3, first_step=16, terminated=True)]
    burned = [2, 0, 1]  # an episode's first unroll has none, a short one at most half of it

    def gradient(change=None):
        changed = [dataclasses.replace(unroll, arrays=dict(copy.deepcopy(unroll.arrays))) for unroll in unrolls]
        for unroll, rows in zip(changed, burned if change else ()):
            change(unroll.arrays, rows)
        network.zero_grad()
        batch = make_minibatch(changed, 0.9, torch.device("cpu"), burn_in=2)
        assert batch.trajectories.valid.sum(0).tolist() == [6, 8, 2]
        updater(network, algorithm)._loss(batch, Settings()).total.backward()
        return torch.cat([parameter.grad.flatten() for parameter in network.parameters()])

    def change_what_is_learned(arrays, rows):
        arrays["reward"][:rows] = 50.0
        arrays["log_prob"][:rows] = -4.0
        arrays["action"][:rows] = 1 - arrays["action"][:rows]

    def change_what_is_seen(arrays, rows):
        arrays["observation"][:rows] += 1.0

    plain = gradient()
    torch.testing.assert_close(gradient(change_what_is_learned), plain, rtol=0, atol=0)
    assert (gradient(change_what_is_seen) - plain).abs().max() > 1e-5, "the state runs through them"


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_no_gradient_begins_at_rows_of_burn_in_or_padding_also_of_the_entropy(draw, algorithm):
    batch = make_minibatch([draw.unroll(8, first_step=8), draw.unroll(3)], 0.9, torch.device("cpu"), burn_in=2)
    valid = batch.trajectories.valid
    logits = torch.randn(batch.trajectories.mask.shape, requires_grad=True)
    value = torch.randn(batch.observation.shape[:2], requires_grad=True)
    settings = Settings(entropy_coefficient=0.5)
    ALGORITHMS[algorithm](batch.trajectories, logits, value, settings).total.backward()
    assert logits.grad[valid].any(1).all()
    assert not logits.grad[~valid].any()
    assert not value.grad[:-1][~valid].any()


def test_burn_in_without_a_memory_is_said(draw, network):
    plain = build_network(NetworkConfig("mlp"), draw.spec)
    asked = Config(learner=LearnerConfig(burn_in=4))
    assert burn_in_note(asked, network) == burn_in_note(Config(), plain) == ""
    assert burn_in_note(asked, plain) == "learner.burn_in is not used: the network has no memory."
    zeroed = msgspec.structs.replace(asked, server=ServerConfig(zero_state=True))
    assert "server.zero_state gives each decision" in burn_in_note(zeroed, network)


def test_attention_without_entities_is_said(draw):
    config = Config(network=NetworkConfig("attention"))
    said = [attention_note(config, spec, build_network(config.network, spec)) for spec in (draw.spec, DECLARED)]
    assert said[0].startswith(f"The network attention has nothing to attend to: {draw.spec.name} declares no entities.")
    assert said[1] == ""


def test_burn_in_of_nothing_is_learning_from_everything(draw):
    unrolls = [draw.unroll(8, first_step=8), draw.unroll(3)]
    assert make_minibatch(unrolls, 0.9, torch.device("cpu")).trajectories.valid.sum(0).tolist() == [8, 3]


def test_a_network_that_is_served_in_float32_is_trained_in_it(draw):
    names = ("mlp_lstm", "examples.custom_network:GruNetwork")
    networks = [build_network(NetworkConfig(name), draw.spec, trust=EVERYTHING) for name in names]
    found = [training_precision("bfloat16", torch.device("cpu"), network) for network in networks]
    assert found == [torch.bfloat16, torch.float32]
    config = Config(network=NetworkConfig(names[1]), learner=LearnerConfig(precision="bfloat16"))
    notes = [precision_note(config, torch.device("cpu"), network) for network in networks]
    assert notes == ["", f"learner.precision bfloat16 is not used: the network {names[1]} is served in float32."]
