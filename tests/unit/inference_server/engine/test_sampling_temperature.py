"""Temperature: the draws, and the log-probs that say which distribution they are of."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from simul.common.runtime import rng
from simul.inference_server.engine.sampling import legal_priors, sample

LOGITS = torch.tensor([[2.0, 0.0, -1.0, 30.0, 1.0]])
MASK = torch.tensor([[True, True, True, False, True]])


@pytest.mark.parametrize("temperature", [0.25, 1.0, 4.0])
def test_draws_and_log_probs_are_of_the_distribution_at_that_temperature(temperature: float) -> None:
    n = 100_000
    noise = rng.gumbel(np.full(n, 7, np.uint64), np.arange(n, dtype=np.uint64), np.zeros(n, np.uint64), 5)
    action, log_prob = sample(
        LOGITS.expand(n, 5), MASK.expand(n, 5), torch.from_numpy(noise), torch.full((n,), temperature)
    )
    wanted = torch.log_softmax((LOGITS / temperature).masked_fill(~MASK, -torch.inf)[0], 0)
    share = np.bincount(action.numpy(), minlength=5) / n
    assert np.abs(share - wanted.exp().numpy()).max() < 0.01
    assert torch.allclose(log_prob, wanted[action], atol=1e-5)


def test_temperature_1_is_no_temperature_to_the_last_bit() -> None:
    generator = torch.Generator().manual_seed(1)
    logits, noise = (torch.randn(64, 5, generator=generator) for _ in range(2))
    mask = torch.rand(64, 5, generator=generator) < 0.7
    mask[:, 0] = True
    for a, b in zip(sample(logits, mask, noise), sample(logits, mask, noise, torch.ones(64))):
        assert torch.equal(a, b)


def test_priors_are_of_the_legal_actions_only() -> None:
    logits, mask = torch.cat((LOGITS, 2 * LOGITS)), torch.cat((MASK, MASK))
    mask[1, 0] = False
    priors = legal_priors(logits, mask, mask.flatten().nonzero().squeeze(1))
    rows = [torch.softmax(row[legal], dim=0) for row, legal in zip(logits, mask)]
    assert torch.allclose(priors, torch.cat(rows))
    assert not mask.all()
