"""A pause of the supervisor itself, or of the whole machine, with a clock of the test's own."""

from __future__ import annotations

import os
from types import SimpleNamespace

from simul.common.config.run_directory import RunDir
from simul.common.config.schema import Config
from simul.common.launch.monitoring.heartbeat_alerts import STANDSTILL_SEC, TOLD_AFTER_SEC
from simul.common.launch.monitoring.view import make_display
from simul.common.launch.supervisor import supervisor as module
from simul.common.launch.supervisor.processes import Meter
from simul.common.launch.supervisor.supervisor import LONGEST_TURN_SEC, Supervisor
from simul.common.protocol.messages import Report

CHILD = SimpleNamespace(name="simul-learner-0", pid=os.getpid(), run_id=1, exit_code=lambda: None)
PAUSE_SEC = 2 * STANDSTILL_SEC + TOLD_AFTER_SEC


def test_a_supervisor_that_was_frozen_itself_accuses_no_role(tmp_path, monkeypatch):
    at = [0.0]
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: at[0]))
    monkeypatch.setattr("simul.common.launch.monitoring.snapshot.time", SimpleNamespace(
        monotonic=lambda: at[0], time=lambda: 0.0, strftime=lambda _: ""
    ))  # fmt: skip
    supervisor = Supervisor(Config(), RunDir(tmp_path), make_display(True))
    supervisor._fleet.places["learner", 0] = SimpleNamespace(child=CHILD, meter=Meter(), restarts=0, last_words="")
    supervisor._state.receive(Report(role="learner", index=0, run_id=1, pid=1, state="ready", metrics={}), 0.0)

    def told_after(seconds: float) -> list[str]:
        at[0] += seconds
        supervisor._stay_awake()
        supervisor._watch.take("training", at[0])
        return supervisor._watch.alerts()

    told_after(0.0)
    assert told_after(PAUSE_SEC) == []
    turns = [told_after(LONGEST_TURN_SEC) for _ in range(int(STANDSTILL_SEC) + 1)]
    said = [sentence for turn in turns for sentence in turn]
    assert [sentence.split(":")[0] for sentence in said] == [
        "simul-learner-0 says nothing for 10 s",
        "nothing was learned for 60 s (0 steps wait for an update)",
    ], "what lasts while it is awake is told as ever"
