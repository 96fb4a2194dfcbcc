"""`label` of STEP on a real server: what is refused, what reaches the learner, on every way."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from simul.common.client.client import InferenceClient
from simul.common.protocol.decisions import Failure, start_flags
from simul.common.protocol.messages import NO_LABEL, SAME_LABEL
from simul.common.protocol.specs import GameSpec
from tests.support.stand import Stand
from tests.support.waiting import wait_for

LABELLED = GameSpec("test/labelled", 12, 5, opponent_labels=2, opponent_classes=9)
NONE = (NO_LABEL, NO_LABEL)


@pytest.fixture(params=[False, True], ids=["by message", "in memory"])
def stand(request: pytest.FixtureRequest) -> Iterator[Stand]:
    with Stand(LABELLED, shared_memory=request.param, unroll_length=8) as running:
        yield running


def refused(client: InferenceClient, *decisions) -> list[Failure]:
    """Failures of a message, once every row has its answer."""
    failures: list[Failure] = []
    answers = []
    client.submit(decisions)

    def all_answered() -> bool:
        replies = client.poll()
        failures.extend(replies.failures)
        answers.extend(replies.actions)
        return len(failures) + len(answers) == len(decisions)

    wait_for(all_answered)
    return failures


def test_labels_reach_the_learner_and_bad_ones_cost_their_row_only(stand):
    client, start = stand.client("worker"), start_flags(record=True, greedy=False)
    free = start_flags(record=False, greedy=False)
    assert not refused(client, *(stand.decision(env, 0, flags=free if env == 3 else start) for env in range(4)))
    label = {0: (3, 8), 1: (9, 0), 2: (-3, 0), 3: (1, 1)}
    failures = refused(client, *(stand.decision(env, 1, label=label[env]) for env in range(4)))
    assert {failure.env: failure.code for failure in failures} == {1: "ERR_VALUE", 2: "ERR_VALUE", 3: "ERR_DENIED"}
    assert "[9, 0]; expected 0 to 8, -1 (none) or -2" in next(f.message for f in failures if f.env == 1)
    again = [stand.decision(1, 1, label=(SAME_LABEL, 7)), stand.decision(2, 1), stand.decision(3, 1, label=NONE)]
    assert not refused(client, *again)
    last = [stand.decision(env, 2, label=(env, NO_LABEL)) for env in range(3)]
    assert not refused(client, *last, stand.decision(3, 2))
    ends = stand.ends(3, 0, 1, 2, 3)
    for end in ends[:3]:
        end.label = (5, end.env)
    assert not refused(client, *ends)
    assert not refused(client, *ends), "an end that is sent again"
    wait_for(lambda: len(stand.learner.unrolls) == 3)
    found = sorted(tensors["label"].tolist() for _, tensors in stand.learner.unrolls)
    assert found == sorted([
        [[3, 8], [0, -1], [5, 0]], [[1, 7], [1, -1], [5, 1]], [[-1, -1], [2, -1], [5, 2]],
    ])  # fmt: skip


def test_a_client_without_the_token_may_not_label(stand):
    client = stand.client("stranger", training=False)
    free = start_flags(record=False, greedy=False)
    assert not refused(client, stand.decision(0, 0, flags=free))
    (failure,) = refused(client, stand.decision(0, 1, label=(1, 1)))
    assert failure.code == "ERR_DENIED"
    assert "training token" in failure.message
    assert not refused(client, stand.decision(0, 1))


def test_the_client_refuses_labels_of_the_wrong_shape():
    with Stand() as stand:
        client = stand.client("worker")
        with pytest.raises(ValueError, match="declares 0"):
            client.submit([stand.decision(0, 0, label=(1,))])


def test_a_spec_whose_labels_cannot_be_is_refused():
    for labels, classes in ((1, 0), (0, 3), (-1, 3), (1, 40000)):
        with pytest.raises(ValueError, match="opponent_labels"):
            GameSpec("test", 1, 2, opponent_labels=labels, opponent_classes=classes)
