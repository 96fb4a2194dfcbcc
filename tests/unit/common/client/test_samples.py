"""Samples of searched games: split into messages, packed, and counted once whatever becomes of them."""

from __future__ import annotations

import numpy as np
import pytest

from simul.common.client import samples as client_samples
from simul.common.client.samples import PendingSamples, check_samples, pack_samples, split_samples
from simul.common.protocol.masks import pack_masks
from simul.common.protocol.messages import SAMPLES_TENSORS, Error, RowErrors, Sampled
from simul.common.protocol.samples import Sample
from simul.common.protocol.specs import GameSpec

SPEC = GameSpec("test", observation_size=3, num_actions=10)


def sample(actions: int = 2, **more) -> Sample:
    given = {
        "observation": np.arange(3, dtype=np.float32), "mask": pack_masks(np.ones(10, np.uint8)), "outcome": -0.5,
        "policy_version": 4, "actions": np.arange(actions, dtype=np.int32),
        "probabilities": np.full(actions, 1 / max(actions, 1), np.float32),
    }  # fmt: skip
    return Sample(**given | more)


def test_rows_are_packed_in_order_with_the_targets_behind_one_another() -> None:
    message, tensors = pack_samples(7, [sample(3), sample(0), sample(1, outcome=1.0)], SPEC)
    assert message.id == 7
    assert tensors.keys() == SAMPLES_TENSORS - {"ending"}
    assert tensors["target_count"].tolist() == [3, 0, 1]
    assert tensors["target_action"].tolist() == [0, 1, 2, 0]
    assert tensors["target_probability"].tolist() == pytest.approx([1 / 3, 1 / 3, 1 / 3, 1])
    assert tensors["outcome"].tolist() == [-0.5, -0.5, 1.0]
    assert [tensors[name].dtype.name for name in sorted(tensors)] == [
        "uint8", "float32", "float32", "int64", "int32", "int32", "float32",
    ]  # fmt: skip


def test_messages_hold_so_many_rows_and_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [sample() for _ in range(7)]
    assert [len(part) for part in split_samples(rows, 3)] == [3, 3, 1]
    assert list(split_samples([], 3)) == []
    monkeypatch.setattr(client_samples, "MESSAGE_BYTES", 2 * rows[0].nbytes)
    assert [len(part) for part in split_samples(rows, 100)] == [2, 2, 2, 1]
    monkeypatch.setattr(client_samples, "MESSAGE_BYTES", 1)  # a sample that is larger travels alone
    assert [len(part) for part in split_samples(rows, 100)] == [1] * 7


def test_every_sample_is_counted_once() -> None:
    pending = PendingSamples()
    for number, rows in ((1, 3), (2, 2), (3, 1)):
        pending.add(*pack_samples(number, [sample()] * rows, SPEC))
        pending.mark_sent(number, now=float(number))
    assert pending.overdue(older_than=2.0) == [1, 2]
    answer = Sampled(id=1, accepted=2, errors=(RowErrors("ERR_VALUE", "outcome 3", (1,)),))
    assert pending.apply_sampled(answer)
    assert not pending.apply_sampled(answer)  # the answer to a resend
    pending.defer(2, until=9.0)
    assert (pending.due(8.0), pending.due(9.0), pending.overdue(1e9)) == ([], [2], [3])
    pending.apply_error(Error(code="ERR_DENIED", message="no", id=2))
    assert (pending.submitted, pending.accepted, pending.waiting) == (6, 2, 1)
    assert pending.refused == {"ERR_VALUE": 1, "ERR_DENIED": 2}
    assert pending.errors == {"ERR_VALUE": "outcome 3", "ERR_DENIED": "no"}


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"observation": np.zeros(4, np.float32)}, r"the observation of a sample has shape \[4\]; .* expects \[3\]"),
        ({"mask": np.ones(10, np.uint8)}, r"the packed mask of a sample has shape \[10\]; .* expects \[2\]"),
        ({"mask": np.ones(2, np.float32)}, r"dtype float32; expected uint8 \(pack_masks\)"),
        ({"probabilities": np.ones(1, np.float32)}, r"the probabilities of a sample has shape \[1\]; .* \[2\]"),
    ],
)
def test_what_does_not_fit_the_game_is_refused_before_it_is_sent(wrong, sentence) -> None:
    with pytest.raises(ValueError, match=sentence):
        check_samples([sample(), sample(**wrong)], SPEC)


def test_an_ending_travels_where_the_game_tells_it() -> None:
    spec = GameSpec("test", observation_size=3, num_actions=10, ending_numbers=2)
    ending = np.array([0, 255], np.uint8)
    told = sample(ending=ending)
    assert told.nbytes == sample().nbytes + 2
    assert pack_samples(1, [told, told], spec)[1]["ending"].tolist() == [[0, 255]] * 2
    check_samples([told], spec)
    with pytest.raises(ValueError, match=r"the ending of a sample has shape \[0\]; the game test expects \[2\]"):
        check_samples([sample()], spec)
    with pytest.raises(ValueError, match=r"the ending of a sample has shape \[2\]; the game test expects \[0\]"):
        check_samples([told], SPEC)
    with pytest.raises(ValueError, match="the ending of a sample has dtype float64; expected uint8"):
        check_samples([sample(ending=ending / 255)], spec)
