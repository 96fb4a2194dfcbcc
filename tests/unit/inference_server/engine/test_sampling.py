"""The draws, against their definition in `simul.common.runtime.rng`, and the log-probs of their distribution."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from simul.common.protocol.masks import list_legal, pack_masks
from simul.common.protocol.messages import GREEDY, START
from simul.common.runtime import rng
from simul.inference_server.engine.sampling import draw_gumbel, legal_priors, list_packed, sample
from simul.inference_server.sessions.clients import ClientTable
from simul.inference_server.sessions.table import SessionTable

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


ACTIONS = 26
UNTOUCHED = 77.0


def _table() -> SessionTable:
    """400 sessions at different steps and attempts; every seventh is greedy."""
    table = SessionTable(400, seed=5)
    client = ClientTable("secret").register_client("a", 1, "", b"a", 0.0)[0]
    for env in range(400):
        session = table.open_session(client, env, 0, env % 3, START | (GREEDY if env % 7 == 0 else 0), "learner", 0.0)
        table.begin_step(session, env % 11, env % 5 // 3)
    return table


def test_every_legal_action_draws_what_its_counters_say() -> None:
    table, random = _table(), np.random.default_rng(0)
    slots = random.permutation(400)[:300]
    legal = random.random((310, ACTIONS)) < 0.4
    noise = np.full((310, ACTIONS), UNTOUCHED, np.float32)
    draw_gumbel(slots, table.noise_key, table.due, table.attempt, table.greedy, legal, noise)
    steps, attempts = (table.due[slots, 3] - 1).astype(np.uint64), table.attempt[slots].astype(np.uint64)
    expected = rng.gumbel(table.noise_key[slots], steps, attempts, ACTIONS)
    greedy = table.greedy[slots]
    assert 20 < greedy.sum() < 80
    assert (noise[:300][greedy] == 0.0).all()
    drawn = legal[:300] & ~greedy[:, None]
    np.testing.assert_allclose(noise[:300][drawn], expected[drawn], rtol=2e-6, atol=1e-6)
    assert (noise[300:] == UNTOUCHED).all()


def test_other_types_are_refused_instead_of_compiled_while_somebody_waits() -> None:
    table = _table()
    with pytest.raises(TypeError):
        draw_gumbel(
            np.arange(3), table.noise_key, table.due, table.attempt, table.greedy,
            np.ones((3, ACTIONS), np.uint8), np.zeros((3, ACTIONS), np.float64),
        )  # fmt: skip


@pytest.mark.parametrize("actions", [1, 8, 13, 1030])
def test_packed_masks_are_listed_and_unpacked(actions) -> None:
    masks = (np.random.default_rng(actions).random((4, actions)) < 0.3).astype(np.uint8)
    masks[0] = 0
    wanted, counts = list_legal(masks)
    unpacked, ids = np.full((6, actions), 7, np.uint8), np.zeros((6, wanted.shape[1]), np.int64)
    list_packed(pack_masks(masks), unpacked, ids)
    assert (unpacked[:4] == masks).all()
    assert (unpacked[4:] == 7).all()
    assert [row[:count].tolist() for row, count in zip(ids, counts)] == [np.flatnonzero(row).tolist() for row in masks]
