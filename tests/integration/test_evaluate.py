"""EVALUATE through real sockets: the network's own numbers, from states that are read and never written."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from simul.common.client.client import InferenceClient
from simul.common.client.evaluation import NO_SESSION, Evaluation
from simul.common.errors import ERR_LIMIT, ERR_MASK, ERR_NO_SESSION, ERR_POLICY, ERR_VALUE
from simul.common.nets.build import build_network
from simul.common.nets.io import bytes_to_state
from simul.common.protocol.messages import ABORTED, Error, Evaluate
from tests.support.raw_client import RawClient
from tests.support.stand import Stand, exchange
from tests.support.waiting import wait_for

pytestmark = pytest.mark.usefixtures("patience")


def _answer(client: InferenceClient, number: int) -> Evaluation:
    found: list[Evaluation] = []
    wait_for(lambda: found.extend(client.poll().evaluations) or found)
    assert [evaluation.id for evaluation in found] == [number]
    return found[0]


def _network(stand: Stand):
    network = build_network(stand.config.network, stand.spec)
    network.load_state_dict(bytes_to_state(stand.weights()))
    return network.eval()


@torch.inference_mode()
def test_priors_and_values_are_the_networks_with_zero_state_and_with_a_sessions() -> None:
    with Stand() as stand:
        client, network = stand.client("a"), _network(stand)
        steps = [stand.decision(0, step) for step in range(4)]
        for step in steps[:3]:
            exchange(client, [step])
        state = network.initial_state(1)
        for step in steps[:3]:
            *_, state = network(torch.from_numpy(step.observation)[None], torch.from_numpy(step.mask)[None] > 0, state)
        last = steps[3]
        rows, masks = np.stack([last.observation] * 2), np.stack([last.mask] * 2)
        got = _answer(client, client.evaluate(rows, masks, sessions=[(0, 0, 0), NO_SESSION]))
        wanted_states = torch.cat((state, network.initial_state(1)))
        logits, value, _ = network(torch.from_numpy(rows), torch.from_numpy(masks) > 0, wanted_states)
        wanted = torch.softmax(logits.masked_fill(torch.from_numpy(masks) == 0, -torch.inf), dim=1)
        assert np.allclose(got.priors, wanted.numpy(), atol=1e-6)
        assert np.allclose(got.value, value.numpy(), atol=1e-6)
        assert (got.priors[masks == 0] == 0).all()
        assert not np.allclose(got.value[0], got.value[1])
        assert got.policy_version.tolist() == [0, 0]
        assert stand.server.metrics()["evaluations"] == 2


def test_a_strangers_session_is_not_read_and_bad_rows_do_not_hold_up_the_others() -> None:
    with Stand() as stand:
        owner, stranger = stand.client("owner"), stand.client("stranger", training=False)
        exchange(owner, [stand.decision(4, 0)])
        rows, masks = np.zeros((5, 12), np.float32), np.ones((5, 5))
        rows[1, 3], masks[2] = np.inf, 0
        sessions = [(4, 0, 0), NO_SESSION, NO_SESSION, NO_SESSION, (4, 0, 1)]
        got = _answer(stranger, stranger.evaluate(rows, masks, sessions=sessions))
        assert {row: code for row, (code, _) in got.errors.items()} == {
            0: ERR_NO_SESSION, 1: ERR_VALUE, 2: ERR_MASK, 4: ERR_NO_SESSION,
        }  # fmt: skip
        assert np.isnan(got.value).tolist() == [True, True, True, False, True]
        assert np.isclose(got.priors[3].sum(), 1)
        got = _answer(owner, owner.evaluate(rows[:1], masks[:1], sessions=[(4, 0, 0)]))
        assert not got.errors
        unknown = _answer(owner, owner.evaluate(rows[:1], masks[:1], policy="nobody"))
        assert unknown.errors[0][0] == ERR_POLICY
        exchange(owner, [stand.decision(4, 1, kind=ABORTED, observation=None, mask=None)])
        ended = _answer(owner, owner.evaluate(rows[:1], masks[:1], sessions=[(4, 0, 0)]))
        assert ended.errors[0][0] == ERR_NO_SESSION


def test_a_session_is_evaluated_by_the_policy_it_is_bound_to() -> None:
    with Stand() as stand:
        client = stand.client("a")
        stand.learner.publish("past/1", 1, stand.weights(seed=5), resident=("learner", "past/1"))
        wait_for(lambda: client.poll() and "past/1" in client.policies)
        exchange(client, [stand.decision(0, 0, policy="past/1")])
        row, mask = np.ones((1, 12), np.float32), np.ones((1, 5))
        asked = client.evaluate(row, mask, policy="past/1", sessions=[(0, 0, 0)])
        assert _answer(client, asked).policy_version.tolist() == [1]
        other = _answer(client, client.evaluate(row, mask, sessions=[(0, 0, 0)]))
        assert other.errors[0] == (ERR_POLICY, "this session is bound to 'past/1'; got 'learner'")


def test_wrong_shapes_are_said_and_too_many_rows_are_refused() -> None:
    with Stand(max_rows_of_client=8) as stand:
        client = stand.client("a")
        with pytest.raises(ValueError, match=r"expected observations \[N, 12\]"):
            client.evaluate(np.zeros((2, 3)), np.ones((2, 5)))
        with pytest.raises(ValueError, match="for each of 2 rows, got 1"):
            client.evaluate(np.zeros((2, 12)), np.ones((2, 5)), sessions=[(0, 0, 0)])
        with RawClient(stand.run_dir.endpoint("data"), stand.spec) as raw:
            raw.hello()
            for mask, code in ((np.ones((2, 5), np.uint8), "ERR_SHAPE"), (np.ones((2, 1), np.uint8), None)):
                answer = raw.ask(Evaluate(id=1), {"observation": np.zeros((2, 12), np.float32), "mask": mask})
                assert getattr(answer, "code", None) == code
            many = {"observation": np.zeros((9, 12), np.float32), "mask": np.ones((9, 1), np.uint8)}
            refused = raw.ask(Evaluate(id=2), many)
            assert isinstance(refused, Error)
            assert (refused.code, refused.id) == (ERR_LIMIT, 2)
