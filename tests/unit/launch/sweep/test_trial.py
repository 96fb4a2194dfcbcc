"""A trial is begun, resumed or begun again by what lies in its run directory, and is scored by its evaluations."""

from __future__ import annotations

import json

import pytest

from simul.common.config.loader import load_config
from simul.common.config.seats import settle_opponents
from simul.common.errors import ConfigError
from simul.common.protocol.specs import GameSpec
from simul.launch.monitoring.curves.curves_csv import past_evaluations
from simul.launch.supervisor.evaluations import Evaluations, evaluation_command
from simul.launch.sweep import trial as module
from simul.launch.sweep.report import write_best
from simul.launch.sweep.study import Tried
from simul.launch.sweep.trial import Evaluation, Plan, TrialRun
from tests.support.checkpoints import write_small_checkpoint

SPEC = GameSpec("gymnasium/CartPole-v1", 4, 2)
ONE_SEAT = GameSpec("openspiel/catch", 50, 3)
CURVES = (
    "decisions,training_sec,time,evaluation/score,evaluation/policy_version,evaluation/decisions_learned\n"
    "900,1,1,,,\n1500,2,2,20.5,2,1010\n2000,3,3,,,\n3100,4,4,35.0,6,2950\n31"
)


class FakeCommand:
    """`simul up` as a process that has ended; `error`: what its check raises."""

    lines: list[list[str]] = []
    environments: list[dict[str, str]] = []
    asked = 0  # how often to stop
    error: Exception | None = None
    running = False

    def __init__(self, arguments, progress, *, environment):
        self.lines.append(list(arguments))
        self.environments.append(environment)

    def wait(self):
        assert not self.running

    def ask_to_stop(self):
        FakeCommand.asked += 1

    def check(self):
        if self.error is not None:
            raise self.error


@pytest.fixture
def plan(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "ChildCommand", FakeCommand)
    monkeypatch.setattr(FakeCommand, "lines", [])
    monkeypatch.setattr(FakeCommand, "environments", [])
    monkeypatch.setattr(FakeCommand, "asked", 0)
    monkeypatch.setattr(FakeCommand, "error", None)
    monkeypatch.setattr(FakeCommand, "running", False)
    return Plan("cartpole", "default", ("seed=3",), ("evaluation.every_decisions=1000",), 4000, tmp_path)


def kept(plan, decisions, *, checkpoint=True):
    """A run of trial 0 that was stopped after so many decisions, with its curves."""
    run = plan.run_dir(0)
    run.create()
    (run.root / "curves.csv").write_text(CURVES)
    (run.root / "status.json").write_text(json.dumps({"run_decisions": decisions, "training_sec": 4.0}))
    if checkpoint:
        write_small_checkpoint(run.checkpoints / "000000006", 6, spec=SPEC)
    return run


def test_a_new_one_is_simul_up_with_the_settings_of_all_then_its_own(plan):
    trial = TrialRun(plan, 0, ["learner.clip=0.3"])
    assert trial.free
    assert trial.start() == "begins"
    (line,) = FakeCommand.lines
    assert line[:2] == ["up", "cartpole"]
    assert line[line.index("--run-dir") + 1] == str(plan.folder / "trial-0000")
    assert [word for word in line if "=" in word] == [
        "seed=3", "evaluation.every_decisions=1000", "learner.clip=0.3", "stop_after_decisions=4000",
    ]  # fmt: skip


def test_a_trial_sends_no_notices(plan):
    TrialRun(plan, 0, []).start()
    assert FakeCommand.environments == [{"SIMUL_NOTIFY": ""}]


def test_one_that_is_asked_to_stop_is_over_once_it_has_ended(plan, monkeypatch):
    kept(plan, 3200)
    monkeypatch.setattr(FakeCommand, "running", True)
    trial = TrialRun(plan, 0, [])
    trial.start()
    trial.stop()
    trial.poll()
    assert (FakeCommand.asked, trial.stopping, trial.over) == (1, True, False)
    trial.stop()
    monkeypatch.setattr(FakeCommand, "running", False)
    trial.poll()
    assert (FakeCommand.asked, trial.over, trial.fault) == (2, True, "")


def test_one_that_ended_early_has_failed(plan):
    kept(plan, 3200)
    trial = TrialRun(plan, 0, [])
    trial.start()
    trial.poll()
    assert (trial.over, trial.fault) == (True, "it was stopped at 3,200 of 4,000 decisions")


def test_one_that_was_stopped_is_resumed_for_what_it_lacks(plan):
    kept(plan, 3200)
    trial = TrialRun(plan, 0, [])
    assert trial.start() == "is resumed at 3,200 decisions"
    assert FakeCommand.lines[0][-1] == "stop_after_decisions=800"
    assert trial.decisions == 3200


def test_one_without_a_checkpoint_begins_again(plan):
    run = kept(plan, 3000, checkpoint=False)
    assert TrialRun(plan, 0, []).start() == "begins again: it had no checkpoint yet"
    assert FakeCommand.lines[0][-1] == "stop_after_decisions=4000"
    assert not run.root.exists()


def test_evaluations_are_read_by_the_decisions_of_their_checkpoints(plan):
    kept(plan, 3990)
    trial = TrialRun(plan, 0, [])
    trial.start()
    assert FakeCommand.lines == []  # it has trained enough
    assert trial.evaluations() == [Evaluation(1, 20.5, 2), Evaluation(3, 35.0, 6)]


def test_curves_are_read_again_only_where_they_have_changed(plan, monkeypatch):
    curves = kept(plan, 3990).root / "curves.csv"
    reads = []
    monkeypatch.setattr(module, "past_evaluations", lambda root: reads.append(root) or past_evaluations(root))
    trial = TrialRun(plan, 0, [])
    trial.start()
    assert trial.evaluations() == trial.evaluations()
    assert len(reads) == 1
    with curves.open("a") as file:
        file.write("00,5,5,,,\n4000,5,5,41.5,9,3980\n")
    assert trial.evaluations()[-1] == Evaluation(4, 41.5, 9)
    assert len(reads) == 2


def test_settings_that_no_longer_load_have_no_evaluations(plan):
    kept(plan, 3200)
    trial = TrialRun(plan, 0, ["learner.clp=1"])
    trial.start()
    trial.poll()
    assert (trial.over, trial.evaluations()) == (True, [])


def test_a_game_of_one_seat_has_no_opponents_in_the_last_evaluation_and_in_the_best(plan, monkeypatch):
    plan = plan._replace(config="openspiel", overrides=("openspiel.name=catch",))
    settled, notes = settle_opponents(plan.load(), ONE_SEAT, {})
    assert notes
    run = kept(plan, 3990)
    run.write_config(settled)
    write_small_checkpoint(run.checkpoints / "000000009", 9, spec=SPEC)
    evaluated = []
    monkeypatch.setattr(
        Evaluations, "_start", lambda self, _: evaluated.append(evaluation_command(self._config, run.root))
    )
    trial = TrialRun(plan, 0, [])
    trial.start()
    trial.poll()
    assert "--opponent" not in evaluated[0]
    best = write_best(plan.folder, plan, Tried(0, "finished", {}, 1.0), 1)
    written: dict[str, str] = {}
    settle_opponents(load_config(best, written=written), ONE_SEAT, written)  # as `simul up` does


def test_the_score_is_that_of_the_best_checkpoint(plan):
    run = kept(plan, 3990)
    best = run.checkpoints / "best"
    best.mkdir()
    (best / "evaluation.json").write_text(json.dumps({"score": 35.0, "measure": "mean return", "result": {}}))
    trial = TrialRun(plan, 0, [])
    trial.start()
    trial.poll()  # its newest checkpoint is the one that was evaluated last
    assert (trial.over, trial.score, trial.fault) == (True, 35.0, "")


def test_what_fails_says_why(plan, monkeypatch):
    kept(plan, 3990)
    trial = TrialRun(plan, 0, [])
    trial.start()
    trial.poll()
    assert (trial.over, trial.score, trial.fault) == (True, None, "it was never evaluated")
    monkeypatch.setattr(
        FakeCommand, "error", ConfigError("15:25:54 auto: workers.count 1\nsimul: the device is missing")
    )
    trial = TrialRun(plan, 1, [])
    trial.start()
    trial.poll()
    assert (trial.over, trial.fault) == (True, "the device is missing")
    trial = TrialRun(plan, 2, ["learner.clp=1"])
    assert trial.start() == "has settings that do not fit together"
    assert "did you mean learner.clip?" in trial.fault
