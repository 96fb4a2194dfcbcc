import msgspec
import numpy as np
import pytest
import torch

from simul.common.protocol.messages import Unroll
from simul.common.protocol.specs import GameSpec
from simul.learner.io.rejected import RejectedError
from simul.learner.io.unrolls import UnrollChecker
from simul.learner.training.minibatches import empty_unroll, make_minibatch


@pytest.mark.parametrize(
    ("cause", "name", "change"),
    [
        ("bad_shape", "observation", lambda x: x[:-1]),
        ("bad_shape", "state", lambda x: x.astype(np.float64)),
        ("bad_shape", "reward", lambda x: x[:, None]),
        ("bad_value", "reward", lambda x: x * np.nan),
        ("bad_value", "log_prob", lambda x: x - np.inf),
        ("bad_value", "state", lambda x: x * np.inf),
        ("bad_value", "observation", lambda x: x * np.nan),
        ("bad_value", "action", lambda x: x + 2),
        ("bad_value", "action", lambda x: x - 5),
        ("bad_value", "mask", lambda x: x * 0),
    ],
)
def test_a_bad_unroll_is_rejected_with_its_cause(draw, cause, name, change):
    message, tensors = draw.message()
    tensors[name] = change(tensors[name])
    with pytest.raises(RejectedError) as caught:
        draw.checker.check(message, tensors)
    assert caught.value.cause == cause


def test_another_spec_and_a_wrong_length_are_rejected(draw):
    message, tensors = draw.message()
    fields = {name: getattr(message, name) for name in ("length", "first_step", "terminated", "truncated")}
    with pytest.raises(RejectedError, match="fingerprint") as caught:
        draw.checker.check(Unroll(**fields, spec_fingerprint="0" * 16), tensors)
    assert caught.value.cause == "wrong_spec"
    with pytest.raises(RejectedError, match="length 9"):
        draw.checker.check(*draw.message(length=9))


def test_a_minibatch_holds_what_was_recorded_and_zeros_behind_it(draw):
    unrolls = [draw.unroll(3, terminated=True), draw.unroll(5), draw.unroll(1)]
    batch = make_minibatch(unrolls, 0.9, torch.device("cpu"))
    assert batch.lengths.tolist() == [3, 6, 2], "the bootstrap row is seen unless the episode terminated"
    recorded = batch.trajectories
    assert recorded.valid.sum(0).tolist() == [3, 5, 1], "the bootstrap row is never learned from"
    for b, unroll in enumerate(unrolls):
        n = unroll.length
        np.testing.assert_array_equal(batch.observation[: n + 1, b], unroll.arrays["observation"])
        np.testing.assert_array_equal(recorded.action[:n, b], unroll.arrays["action"])
        np.testing.assert_array_equal(recorded.behaviour_log_prob[:n, b], unroll.arrays["log_prob"])
        np.testing.assert_array_equal(batch.state[b], unroll.arrays["state"])
        assert not batch.observation[n + 1 :, b].any()
        assert not recorded.reward[n:, b].any()
    assert recorded.discount[2, 0] == 0.0
    assert recorded.discount[4, 1] == pytest.approx(0.9)


LABELLED = GameSpec("cartpole", 4, 2, opponent_labels=2, opponent_classes=9)


def _labelled(draw, length: int, label: list[list[int]]):
    message, tensors = draw.message(length)
    message = msgspec.structs.replace(message, spec_fingerprint=LABELLED.fingerprint())
    return message, {**tensors, "label": np.array(label, np.int16).reshape(-1, 2)}


def test_labels_are_checked_and_padded_with_none(draw):
    checker = UnrollChecker(LABELLED, 16, unroll_length=8)
    unrolls = [checker.check(*_labelled(draw, len(each), each)) for each in ([[1, 8]], [[0, -1], [-1, -1], [3, 4]])]
    batch = make_minibatch([*unrolls, empty_unroll(LABELLED, 16)], 0.9, torch.device("cpu"))
    none = [-1, -1]
    assert batch.trajectories.label.tolist() == [[[1, 8], [0, -1], none], [none, none, none], [none, [3, 4], none]]
    assert make_minibatch([draw.unroll(3)], 0.9, torch.device("cpu")).trajectories.label is None
    for label, cause in (([[1, 9]], "bad_value"), ([[-2, 1]], "bad_value"), ([[1, 2], [1, 2]], "bad_shape")):
        with pytest.raises(RejectedError) as caught:
            checker.check(*_labelled(draw, 1, label))
        assert caught.value.cause == cause
    message, tensors = _labelled(draw, 1, [[1, 2]])
    del tensors["label"]
    with pytest.raises(RejectedError, match="label"):
        checker.check(message, tensors)
