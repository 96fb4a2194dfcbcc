"""The compiled draws against their definition in `simul.common.runtime.rng`."""

from __future__ import annotations

import numpy as np
import pytest

from simul.common.protocol.messages import GREEDY, START
from simul.common.runtime import rng
from simul.inference_server.engine.sampling import draw_gumbel
from simul.inference_server.sessions.clients import ClientTable
from simul.inference_server.sessions.table import SessionTable

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
