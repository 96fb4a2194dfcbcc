"""What `simul export` writes answers as a server of the same policy does, session by session."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

import simul
from simul.common.client.client import InferenceClient
from simul.common.client.evaluation import NO_SESSION, Evaluation
from simul.common.nets.onnx_file import INPUTS, write_onnx
from simul.common.protocol.decisions import Decision, start_flags
from tests.support.late import late
from tests.support.stand import exchange
from tests.support.waiting import wait_for

onnxruntime = late("onnxruntime")
pytestmark = pytest.mark.skipif(not importlib.util.find_spec("onnxruntime"), reason="without the extra [export]")

SESSIONS, STEPS = 3, 6
MOST_DIFFERENCE = {"rtol": 1e-5, "atol": 1e-5}


@pytest.mark.slow  # .ci/long runs it
def test_a_session_of_the_file_is_one_of_the_server(tmp_path):
    policy = simul.load_policy("zoo:cartpole")
    write_onnx(policy, tmp_path / "policy.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "policy.onnx")
    draw, mask = np.random.default_rng(1), np.ones((SESSIONS, 2), bool)
    state = np.zeros((SESSIONS, policy.network.state_size), np.float32)
    endpoint, own = f"ipc://{tmp_path}/serve.ipc", [(env, 0, 0) for env in range(SESSIONS)]
    with simul.serve("zoo:cartpole", endpoint=endpoint, progress=False, server={"precision": "float32"}):
        client = InferenceClient(endpoint, name="bot", spec=policy.spec)
        try:
            client.connect()
            for step in range(STEPS):
                seen = draw.standard_normal((SESSIONS, 4)).astype(np.float32)
                logits, value, state = session.run(None, dict(zip(INPUTS, (seen, mask, state))))
                odds = np.exp(logits - logits.max(axis=1, keepdims=True))
                served = _evaluated(client, seen, mask, own if step else [NO_SESSION] * SESSIONS)
                np.testing.assert_allclose(odds / odds.sum(axis=1, keepdims=True), served.priors, **MOST_DIFFERENCE)
                np.testing.assert_allclose(value, served.value, **MOST_DIFFERENCE)
                flags = start_flags(record=False, greedy=True) if step == 0 else 0
                rows = [
                    Decision(env=env, seat=0, episode=0, step=step, flags=flags, observation=seen[env], mask=mask[env])
                    for env in range(SESSIONS)
                ]
                actions = sorted(exchange(client, rows).actions, key=lambda action: action.env)
                assert [action.action for action in actions] == logits.argmax(axis=1).tolist()
                np.testing.assert_allclose(value, [action.value for action in actions], **MOST_DIFFERENCE)
        finally:
            client.close()
    assert np.abs(state).max() > 0.01  # it has a memory, so that later steps compare what it holds


def _evaluated(client: InferenceClient, seen, mask, sessions) -> Evaluation:
    number, found = client.evaluate(seen, mask, sessions=sessions), []
    wait_for(lambda: found.extend(client.poll().evaluations) or found)
    assert [each.id for each in found] == [number]
    return found[0]
