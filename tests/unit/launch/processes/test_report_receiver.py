"""The status socket accepts only reports that carry the run's token."""

from __future__ import annotations

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
    made = ReportReceiver(run_dir)
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
