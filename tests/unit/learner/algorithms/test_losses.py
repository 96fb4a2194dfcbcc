"""The losses against slow second implementations in plain Python, one unroll and one step at a time."""

import dataclasses
import math

import pytest
import torch

from simul.learner.algorithms import ALGORITHMS, Settings, Trajectories
from simul.learner.algorithms.base import evaluate_actions
from simul.learner.algorithms.vtrace import vtrace_targets

T, B, A = 6, 7, 5
LENGTHS = [6, 4, 1, 6, 3, 5, 2]
TERMINATED = [True, True, False, False, True, False, True]
GAMMA = 0.9
SETTINGS = Settings(
    gae_lambda=0.8, clip=0.15, rho_clip=1.1, c_clip=0.9, value_coefficient=0.7, entropy_coefficient=0.03
)


def example(seed: int = 0) -> tuple[Trajectories, torch.Tensor, torch.Tensor]:
    """Trajectories, logits [T, B, A] and value [T + 1, B]; garbage where padded."""
    draw = torch.Generator().manual_seed(seed)
    mask = torch.rand(T, B, A, generator=draw) < 0.6
    action = torch.randint(0, A, (T, B), generator=draw)
    mask.scatter_(2, action[..., None], True)
    lengths, step = torch.tensor(LENGTHS), torch.arange(T)[:, None]
    ends = torch.tensor(TERMINATED) & (step == lengths - 1)
    valid = step < lengths
    mask[~valid] = torch.rand(int((~valid).sum()), A, generator=draw) < 0.3
    trajectories = Trajectories(
        mask=mask,
        action=action,
        reward=torch.randn(T, B, generator=draw),
        behaviour_log_prob=-2.5 * torch.rand(T, B, generator=draw) - 0.05,
        discount=torch.where(ends, 0.0, GAMMA),
        valid=valid,
    )
    logits = torch.randn(T, B, A, generator=draw, requires_grad=True)
    value = torch.randn(T + 1, B, generator=draw, requires_grad=True)
    return trajectories, logits, value


def slow_policy(trajectories, logits, t, b):
    """(log-prob of the action, entropy) from exponentials of legal logits."""
    logits = logits.detach()
    legal = [a for a in range(A) if trajectories.mask[t, b, a]]
    weights = {a: math.exp(float(logits[t, b, a])) for a in legal}
    total = sum(weights.values())
    entropy = -sum(w / total * math.log(w / total) for w in weights.values())
    return math.log(weights[int(trajectories.action[t, b])] / total), entropy


def slow_targets(trajectories, logits, value, settings):
    """v_s by the sum of eq. 1 of Espeholt et al. 2018 written out, not by its recursion; q_s - V from it."""
    targets, advantages, value = {}, {}, value.detach()
    for b, length in enumerate(LENGTHS):

        def v(t, b=b, length=length):
            return 0.0 if t == length and TERMINATED[b] else float(value[t, b])

        ratios = [
            math.exp(slow_policy(trajectories, logits, t, b)[0] - float(trajectories.behaviour_log_prob[t, b]))
            for t in range(length)
        ]
        v_s = []
        for s in range(length):
            total = v(s)
            for t in range(s, length):
                product = math.prod(settings.gae_lambda * min(settings.c_clip, ratios[i]) for i in range(s, t))
                delta = min(settings.rho_clip, ratios[t]) * (float(trajectories.reward[t, b]) + GAMMA * v(t + 1) - v(t))
                total += GAMMA ** (t - s) * product * delta
            v_s.append(total)
        v_s.append(v(length))
        for s in range(length):
            behind = settings.gae_lambda * v_s[s + 1] + (1 - settings.gae_lambda) * v(s + 1)
            targets[s, b] = v_s[s]
            advantages[s, b] = float(trajectories.reward[s, b]) + GAMMA * behind - v(s)
    return targets, advantages


def slow_total(name, trajectories, logits, value):
    """The whole loss, in floats."""
    settings, value = SETTINGS, value.detach()
    targets, advantages = slow_targets(trajectories, logits, value, settings)
    rows = list(targets)
    if name == "reinforce":
        for b, length in enumerate(LENGTHS):
            behind = 0.0 if TERMINATED[b] else float(value[length, b])
            for t in reversed(range(length)):
                behind = float(trajectories.reward[t, b]) + GAMMA * behind
                targets[t, b] = behind
    mean = sum(advantages.values()) / len(rows)
    deviation = math.sqrt(sum((a - mean) ** 2 for a in advantages.values()) / len(rows))
    total = 0.0
    for t, b in rows:
        log_prob, entropy = slow_policy(trajectories, logits, t, b)
        ratio = math.exp(log_prob - float(trajectories.behaviour_log_prob[t, b]))
        if name == "ppo":
            advantage = (advantages[t, b] - mean) / (deviation + 1e-6)
            clipped = min(max(ratio, 1 - settings.clip), 1 + settings.clip)
            policy = -min(ratio * advantage, clipped * advantage)
        elif name == "vtrace":
            policy = -min(settings.rho_clip, ratio) * advantages[t, b] * log_prob
        else:
            policy = -(targets[t, b] - float(value[t, b])) * log_prob
        squared = 0.5 * (float(value[t, b]) - targets[t, b]) ** 2
        total += policy + settings.value_coefficient * squared - settings.entropy_coefficient * entropy
    return total / len(rows)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", ALGORITHMS)
def test_losses(name, seed):
    trajectories, logits, value = example(seed)
    loss = ALGORITHMS[name](trajectories, logits, value, SETTINGS)
    assert float(loss.total.detach()) == pytest.approx(slow_total(name, trajectories, logits, value), abs=1e-5)
    assert all(math.isfinite(float(figure)) for figure in loss.figures.values())


@pytest.mark.parametrize("name", ALGORITHMS)
def test_padding_does_not_matter(name):
    trajectories, logits, value = example()
    results = []
    for garbage in (0.0, 1e4):
        padded, valid = ~trajectories.valid, trajectories.valid
        spoiled = dataclasses.replace(
            trajectories,
            reward=trajectories.reward.masked_fill(padded, garbage),
            behaviour_log_prob=trajectories.behaviour_log_prob.masked_fill(padded, -garbage),
            discount=trajectories.discount.masked_fill(padded, garbage),
            mask=trajectories.mask & valid[..., None],
        )
        seen = torch.cat((valid, valid[-1:] & False))
        seen[LENGTHS, range(B)] = ~torch.tensor(TERMINATED)  # the bootstrap rows
        spoiled_value = torch.where(seen, value, garbage)
        spoiled_logits = torch.where(valid[..., None], logits, garbage)
        loss = ALGORITHMS[name](spoiled, spoiled_logits, spoiled_value, SETTINGS)
        grads = torch.autograd.grad(loss.total, (logits, value))
        results.append((loss.total, loss.figures, *grads))
    torch.testing.assert_close(results[1], results[0])


def test_no_gradient_reaches_illegal_actions_and_ppo_stops_beyond_the_clip():
    trajectories, logits, value = example()
    far = dataclasses.replace(trajectories, behaviour_log_prob=torch.full((T, B), -30.0))  # ratios all far above 1
    settings = dataclasses.replace(SETTINGS, entropy_coefficient=0.0)
    loss = ALGORITHMS["ppo"](far, logits, value, settings)
    (grad,) = torch.autograd.grad(loss.total, logits)
    assert not grad[~trajectories.mask].any()
    targets = vtrace_targets(far, evaluate_actions(far, logits).log_ratio, value, settings)
    above = targets.advantage > targets.advantage[trajectories.valid].mean()
    assert not grad[above & trajectories.valid].any()
    assert float(loss.figures["clip_fraction"]) == 1.0
