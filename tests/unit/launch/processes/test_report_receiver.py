"""The status socket accepts only reports of the processes of this start."""

from __future__ import annotations

import os

import pytest

from simul.common.protocol.codec import encode
from simul.common.protocol.messages import Report
from simul.common.role.lifecycle import RoleArguments
from simul.common.role.reports import Reporter
from simul.common.role.run_directory import RunDir
from simul.common.transport import PushSocket
from simul.launch.processes.report_receiver import ReportReceiver
from tests.support.waiting import wait_for


@pytest.fixture
def receiver(tmp_path):
    run_dir = RunDir(tmp_path)
    run_dir.create()
    made = ReportReceiver(run_dir, lambda report: report.run_id == 7)
    yield made
    made.close()


def test_a_report_of_a_role_is_taken_and_those_without_the_token_are_refused_and_reported_once(
    receiver, tmp_path
) -> None:
    run_dir = RunDir(tmp_path)
    forged = {"role": "learner", "index": 0, "run_id": 1, "pid": 1, "state": "ready"}
    with PushSocket(run_dir.endpoint("status")) as sender:
        for token in ("", "0" * 32, run_dir.token()[:-1]):
            assert sender.send(encode(Report(**forged, token=token)))
        for _ in range(3):
            assert sender.send([b"\xc1"])
    sentences: list[str] = []
    wait_for(lambda: sentences.extend(receiver.receive()[1]) or sum(receiver.refused.values()) == 6)
    assert receiver.refused == {"wrong_token": 3, "unreadable": 3}
    assert sorted(sentence.split(":")[0] for sentence in sentences) == [
        "a report could not be decoded", "a report without this run's token was refused",
    ]  # fmt: skip
    reporter = Reporter(RoleArguments(run_dir, 0, 7, 0), "learner")
    reporter.send({"updates": 1}, state="ready")
    reports: list[Report] = []
    wait_for(lambda: reports.extend(receiver.receive()[0]) or reports)
    assert [(report.run_id, report.metrics) for report in reports] == [(7, {"updates": 1})]
    reporter.close()


def test_reports_of_a_process_that_a_killed_start_has_left_are_refused_and_said_once(receiver, tmp_path) -> None:
    """It has the token of the run, and goes on reporting while it saves."""
    run_dir, (reports, sentences) = RunDir(tmp_path), ([], [])
    left, own = (Reporter(RoleArguments(run_dir, 0, run_id, 0), "learner") for run_id in (6, 7))
    left.send({"updates": 100}, state="draining")
    left.send({"updates": 101}, state="stopped", event="Saved.")
    own.send({"updates": 1}, state="ready")

    def received() -> bool:
        for all_of_them, new in zip((reports, sentences), receiver.receive()):
            all_of_them += new
        return bool(reports) and receiver.refused == {"other_start": 2}

    wait_for(received)
    assert [report.run_id for report in reports] == [7]
    assert sentences == [f"reports of process {os.getpid()} (learner) of another start are left out"]
    for reporter in (left, own):
        reporter.close()
