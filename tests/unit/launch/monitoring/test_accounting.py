"""The accounts of a run are checked from summary.json alone."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from simul.common.config.schema import Config
from simul.launch.monitoring.accounting import ACCOUNTS, imbalances
from simul.launch.monitoring.summary import summarise, summary_text
from tests.support.recorded_run import LEARNER, SAMPLES, process, server, snapshot, workers

SERVER, WORKERS = server(2.0), workers(2.0)


def _summary(**reports: Any) -> dict[str, Any]:
    """As it stands in the file."""
    stopped = {"phase": "stopped", "processes": [], "server": SERVER, "workers": WORKERS, **reports}
    return msgspec.json.decode(msgspec.json.encode(summarise(Config(), snapshot(2.0, **stopped))))


def test_a_run_whose_accounts_balance() -> None:
    summary = _summary()
    assert imbalances(summary) == []
    assert tuple(summary["accounting"]) == ACCOUNTS
    assert {account["difference"] for account in summary["accounting"].values()} == {0}
    for key in ("decisions", "battles", "decisions_per_sec", "mean_batch", "latency_us", "policy_version",
                "policy_lag", "versions", "config_fingerprint"):  # fmt: skip
        assert summary[key] is not None
    assert summary["unrolls"] == {
        "completed": 15, "dropped_before_sending": {"learner_down": 3}, "sent": 12, "taken_back": 0,
        "sent_unreported": 0, "received": 12, "lost_on_the_way": 0, "learned": 9,
        "dropped_after_sending": {"stale": 2}, "waiting": 1,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("role", "group", "name", "wrong", "says"),
    [
        ("workers", "episodes", "started", 10, "the account of battles does not balance"),
        ("workers", "episodes", "alive", 3, "3 of battles are still alive although the run is over"),
        ("workers", "unanswered", "waiting", 0, "the account of rows does not balance"),
        ("server", "steps", "sent", 6, "the account of steps does not balance"),
        ("server", "steps", "open", 1, "1 of steps are still open although the run is over"),
        ("server", "unrolls", "completed", 14, "the account of unrolls_completed does not balance"),
        ("learner", "unrolls", "learned", 8, "the account of unrolls_received does not balance"),
        ("learner", "unrolls", "waiting", -1, "the account of unrolls_received has a negative figure"),
        ("workers", "samples", "submitted", 33, "the account of samples_submitted does not balance"),
        ("server", "samples", "admitted", 31, "the account of samples_admitted does not balance"),
        ("server", "samples", "waiting", 1, "1 of samples_admitted are still waiting although the run is over"),
        ("learner", "samples", "stored", 21, "the account of samples_received does not balance"),
        ("server", "samples", "sent", 27, "the learner received more samples than were sent"),
    ],
)
def test_what_does_not_add_up_is_found(role, group, name, wrong, says) -> None:
    roles = {"server": SERVER, "learner": LEARNER, "workers": WORKERS}
    roles[role] = {**roles[role], group: {**roles[role][group], name: wrong}}
    summary = _summary(**roles)
    assert any(says in sentence for sentence in imbalances(summary))
    assert says in summary_text(summary)


RECEIVED_TEN = {"unrolls": {**LEARNER["unrolls"], "received": 10, "learned": 7}, "samples": SAMPLES}
NOT_SILENT = {**SERVER, "unrolls": {"completed": 12, "sent": 12, "waiting": 0, "taken_back": 0, "dropped": {}}}


@pytest.mark.parametrize(
    "why",
    [
        {"processes": [process("simul-learner-0", restarts=1)]},
        {"processes": [process("simul-inference-0", restarts=1)]},
        {"unreported": {"learner": {"lives": 1, "seconds": 0.4}}},
        {"unreported": {"inference_server": {"lives": 1, "seconds": 0.4}}},
        {"server": SERVER},  # dropped as learner_down
        {"server": {**NOT_SILENT, "unrolls": {**NOT_SILENT["unrolls"], "taken_back": 1}}},
        {"learner": {**RECEIVED_TEN, "signalled": True}},
    ],
)
def test_unrolls_that_no_learner_reported_are_lost_on_the_way(why) -> None:
    summary = _summary(**{"server": NOT_SILENT, "learner": RECEIVED_TEN, **why})
    assert imbalances(summary) == []
    assert summary["unrolls"]["lost_on_the_way"] == 2
    assert (
        "12 sent, 7 learned, 1 waiting at the stop, 2 lost on the way, dropped: stale 2; never sent: "
        in summary_text(summary)
    )


def test_unrolls_that_are_lost_although_nothing_died_are_found() -> None:
    summary = _summary(
        server=NOT_SILENT,
        learner={**RECEIVED_TEN, "signalled": False},
        processes=[process("simul-learner-0", restarts=0), process("simul-worker-0", restarts=3)],
        unreported={"env_worker": {"lives": 3, "seconds": 1.0}},
    )
    found = ["2 unrolls were lost on the way, although nothing died and the learner was never silent"]
    assert imbalances(summary) == found
    assert found[0] in summary_text(summary)


def test_samples_that_are_lost_on_the_way_need_a_cause_and_may_have_one() -> None:
    learner = {**LEARNER, "samples": {**SAMPLES, "received": 26, "stored": 18}}
    found = ["2 samples were lost on the way, although nothing died and the learner was never silent"]
    assert imbalances(_summary(server=NOT_SILENT, learner=learner)) == found
    down = {**NOT_SILENT, "samples": {**SERVER["samples"], "dropped": {"learner_down": 2}}}
    assert imbalances(_summary(server=down, learner=learner)) == []
    assert (
        imbalances(_summary(server=NOT_SILENT, learner=learner, processes=[process("simul-learner-0", restarts=1)]))
        == []
    )


def test_more_received_than_sent_is_what_a_killed_server_did_not_report_and_needs_one() -> None:
    learner = {**LEARNER, "unrolls": {**LEARNER["unrolls"], "received": 14, "learned": 11}}
    assert imbalances(_summary(learner=learner)) == [
        "the learner received more unrolls than were sent, although every server made its last report"
    ]
    summary = _summary(learner=learner, unreported={"inference_server": {"lives": 1, "seconds": 0.4}})
    assert imbalances(summary) == []
    assert summary["unrolls"]["sent_unreported"] == 2
    assert "ended without a final report: inference server 1x; their last 0.4 s are in no figure" in summary_text(
        summary
    )


def test_a_missing_account_is_no_balance() -> None:
    summary = _summary()
    del summary["accounting"]["rows"]
    assert imbalances(summary) == ["there is no account of rows"]
