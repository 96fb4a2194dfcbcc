"""A sweep without runs: trials are played by a stand-in, the study is Optuna's own."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from importlib.util import find_spec
from types import SimpleNamespace

import pytest
import yaml

from simul.common.config.loader import load_config
from simul.common.errors import ConfigError, SimulError
from simul.common.runtime.extras import install_extra
from simul.common.runtime.file_lock import hold_lock
from simul.launch.sweep import sweep as module
from simul.launch.sweep.space import Dimension
from simul.launch.sweep.study import SweepStudy
from simul.launch.sweep.sweep import SweepOptions, sweep
from simul.launch.sweep.trial import Evaluation

pytestmark = pytest.mark.skipif(not find_spec("optuna"), reason="the extra [sweep] is not installed")


class FakeTrial:
    """Evaluated five times; its score grows with `learner.clip`. `faults`: number -> why that trial fails."""

    faults: dict[int, str] = {}
    started: list[int] = []
    asked: list[int] = []  # to stop
    stop_at: int | None = None  # the sweep is killed while this one runs
    signal_at: list[tuple[int, int]] = []  # (number, polls): Ctrl-C then
    running = 0
    most_running = 0
    free = True

    def __init__(self, plan, number, settings):
        self.number, self.settings = number, settings
        self.over, self.stopping, self.fault, self.decisions, self.score = False, False, "", 0, None
        self.said = [f"version {number} could not be evaluated"]
        self._polls, self._saves = 0, 3
        self._clip = float(next(each for each in settings if "clip" in each).partition("=")[2])

    def start(self):
        self.started.append(self.number)
        FakeTrial.running += 1
        FakeTrial.most_running = max(self.running, self.most_running)
        return "begins"

    def poll(self):
        if self.over:
            return
        self._polls += 1
        if (self.number, self._polls) in self.signal_at:
            signal.raise_signal(signal.SIGINT)
        self._advance()
        FakeTrial.running -= self.over

    def _advance(self):
        if self.stopping:
            self._saves -= 1
            self.over = self._saves <= 0
            return
        if self.number == self.stop_at:
            raise KeyboardInterrupt
        self.decisions += 100
        if self.fault_due:
            self.over, self.fault = True, self.faults[self.number]
        elif self.decisions == 500:
            self.over, self.score = True, self._clip * 5

    @property
    def fault_due(self):
        return self.number in self.faults

    def evaluations(self):
        return [Evaluation(step, self._clip * step, step) for step in range(1, self.decisions // 100 + 1)]

    def stop(self):
        self.asked.append(self.number)
        self.stopping = True


@pytest.fixture
def drawn():
    """The picture is drawn; for other tests that takes half a second a sweep."""


@pytest.fixture(autouse=True)
def undrawn(request, monkeypatch):
    if "drawn" not in request.fixturenames:
        picture = "simul.launch.sweep.picture"
        monkeypatch.setitem(sys.modules, picture, SimpleNamespace(draw_picture=lambda folder, *_: folder / "sweep.png"))


@pytest.fixture
def options(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "TrialRun", FakeTrial)
    monkeypatch.setattr(module, "POLL_SEC", 0.0)
    monkeypatch.setattr(FakeTrial, "faults", {})
    monkeypatch.setattr(FakeTrial, "started", [])
    monkeypatch.setattr(FakeTrial, "asked", [])
    monkeypatch.setattr(FakeTrial, "running", 0)
    monkeypatch.setattr(FakeTrial, "most_running", 0)
    monkeypatch.setattr(module, "usable_cores", lambda: 2.0)
    (tmp_path / "space.yaml").write_text("learner.clip: {low: 0.1, high: 0.9}\nlearner.epochs: {choices: [1, 2]}\n")
    return SweepOptions("cartpole", tmp_path / "space.yaml", 8, tmp_path / "study", decisions=500)


@pytest.mark.usefixtures("drawn")
def test_the_best_is_a_configuration_and_what_falls_behind_is_pruned(options, capsys):
    assert sweep(options) == 0
    printed = capsys.readouterr().out
    assert FakeTrial.started == list(range(8))
    assert "is pruned: it falls behind" in printed
    assert FakeTrial.most_running == 1  # one that is pruned saves first, and nothing waits for it
    best = load_config(options.folder / "best.yaml")
    assert best.stop_after_decisions == 500
    assert best.run_dir == "runs/study-best"
    assert best.evaluation.every_decisions == 0  # what makes a run a trial is not in it
    assert f"learner.clip={best.learner.clip}" in printed.partition("best: trial")[2]
    assert (options.folder / "sweep.png").read_bytes().startswith(b"\x89PNG")
    assert "what mattered:" in printed
    assert "trial 0: version 0 could not be evaluated\n" in printed  # by the last evaluation
    assert "is above half" not in printed


def test_a_killed_sweep_goes_on_and_a_finished_one_takes_more_trials(options, monkeypatch, capsys):
    monkeypatch.setattr(FakeTrial, "stop_at", 2)
    with pytest.raises(KeyboardInterrupt):
        sweep(options._replace(trials=4))
    settings = {}
    monkeypatch.setattr(FakeTrial, "stop_at", None)
    keep = FakeTrial.__init__
    monkeypatch.setattr(
        FakeTrial,
        "__init__",
        lambda self, plan, number, own: (settings.setdefault(number, own), keep(self, plan, number, own))[1],
    )
    FakeTrial.started.clear()
    assert sweep(options._replace(trials=4)) == 0
    assert FakeTrial.started == [2, 3]  # the one that ran comes first, then what is left
    assert len(settings[2]) == 2
    FakeTrial.started.clear()
    assert sweep(options._replace(trials=5)) == 0
    assert FakeTrial.started == [4]


def test_other_settings_in_the_same_folder_are_a_sentence(options, tmp_path):
    sweep(options._replace(trials=1))
    with pytest.raises(ConfigError, match=r"began with learner\.discount=0\.99, and it is 0\.9 now"):
        sweep(options._replace(trials=2, overrides=("learner.discount=0.9",)))
    with pytest.raises(ConfigError, match="began with pruner=median, and it is none now"):
        sweep(options._replace(trials=2, pruner="none"))
    (tmp_path / "other.yaml").write_text("learner.clip: {low: 0.1, high: 0.8}\n")
    with pytest.raises(ConfigError, match="began with another space"):
        sweep(options._replace(trials=2, space=tmp_path / "other.yaml"))


def test_a_folder_has_one_sweep_at_a_time(options):
    options.folder.mkdir()
    with (
        hold_lock(options.folder / module.LOCK, ""),
        pytest.raises(ConfigError, match=r"A sweep goes on in .*choose another --study"),
    ):
        sweep(options)


def test_no_trial_finished_is_a_sentence(options, monkeypatch):
    monkeypatch.setattr(FakeTrial, "faults", dict.fromkeys(range(8), "the device is missing"))
    with pytest.raises(SimulError, match=r"^No trial finished; 0 were pruned\. Trial 1: the device is missing"):
        sweep(options._replace(trials=2))
    with pytest.raises(SimulError, match=r"3 trials in a row failed, and the sweep ends\. Trial 4: the device"):
        sweep(options)


def test_the_best_is_written_where_trials_fail_at_the_end(options, monkeypatch, capsys):
    monkeypatch.setattr(FakeTrial, "faults", dict.fromkeys((1, 2, 3), "the device is missing"))
    assert sweep(options._replace(trials=4)) == 0  # no other was to begin
    assert load_config(options.folder / "best.yaml")
    (options.folder / "best.yaml").unlink()
    monkeypatch.setattr(FakeTrial, "faults", dict.fromkeys(range(4, 9), "the device is missing"))
    with pytest.raises(SimulError, match=r"^3 trials in a row failed, and the sweep ends\. Trial 6: the device"):
        sweep(options._replace(trials=9))
    assert load_config(options.folder / "best.yaml")
    assert "best: trial 0" in capsys.readouterr().out


def test_ctrl_c_asks_all_trials_then_waits_and_a_second_one_asks_again(options, monkeypatch, capsys):
    before = [(number, signal.getsignal(number)) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
    monkeypatch.setattr("simul.launch.processes.signals.ECHO_SEC", 0.0)
    monkeypatch.setattr(FakeTrial, "signal_at", [(0, 2), (1, 3)])
    try:
        assert sweep(options._replace(parallel=2)) == module.INTERRUPTED
    finally:
        for number, handler in before:
            signal.signal(number, handler)
    assert FakeTrial.asked[:2] == [0, 1]
    assert FakeTrial.asked.count(0) >= 2
    assert FakeTrial.asked.count(1) >= 2
    assert capsys.readouterr().out.count("stopping: ") == 1


def test_a_sweep_whose_reader_is_gone_goes_on(options, monkeypatch):
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as output:
        monkeypatch.setattr(sys, "stdout", output)
        assert sweep(options._replace(trials=1)) == 0
        monkeypatch.undo()
    assert (options.folder / "best.yaml").exists()


@pytest.mark.usefixtures("drawn")
def test_a_folder_that_cannot_be_written_is_a_sentence(options, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match=r"file/study cannot be written: Not a directory\. Choose another --study"):
        sweep(options._replace(folder=tmp_path / "file" / "study"))
    (options.folder / "sweep.png").mkdir(parents=True)
    with pytest.raises(SimulError, match=r"study cannot be written: Is a directory\. Make room"):
        sweep(options._replace(trials=1))


def test_a_plan_in_which_nothing_can_be_pruned_says_so(options, capsys):
    sweep(options._replace(trials=1, overrides=("evaluation.every_decisions=251",)))
    assert "evaluation.every_decisions 251 is above half of a trial's 500 decisions" in capsys.readouterr().out


def test_trials_must_end_and_have_a_core(options, monkeypatch):
    with pytest.raises(ConfigError, match="say --stop-after-decisions 60000"):
        sweep(options._replace(decisions=None))
    with pytest.raises(ConfigError, match="--parallel 1000: a trial needs a core at least"):
        sweep(options._replace(parallel=1000))
    assert not options.folder.exists()


def test_without_optuna_the_pip_command_is_named(options, monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=re.escape(f"Run: {install_extra('sweep')}")):
        sweep(options)


def test_what_trials_have_in_common_is_evaluated_while_they_train(options):
    sweep(options._replace(trials=1))
    together = json.loads((options.folder / "sweep.json").read_text())
    assert together["evaluation"]["every_decisions"] == 50
    assert together["learner"]["checkpoint_every_sec"] == 10.0
    assert yaml.safe_load((options.folder / "best.yaml").read_text())["learner"]["checkpoint_every_sec"] == 60.0


def test_a_study_that_was_damaged_or_taken_away_is_a_sentence(options):
    sweep(options._replace(trials=1))
    together, database = options.folder / "sweep.json", options.folder / "study.db"
    kept = together.read_bytes(), database.read_bytes()
    for damaged in (b"[]", b"[" * 100_000, b"{"):
        together.write_bytes(damaged)
        with pytest.raises(ConfigError, match=r"sweep\.json is damaged"):
            sweep(options)
    together.write_bytes(kept[0])
    database.write_bytes(b"not a database" * 100)
    with pytest.raises(ConfigError, match=r"study\.db cannot be used: file is not a database"):
        sweep(options)
    database.unlink()
    (options.folder / "trial-0000").mkdir(exist_ok=True)
    with pytest.raises(ConfigError, match=r"holds runs of a study whose study\.db is gone"):
        sweep(options)
    with pytest.raises(ConfigError, match=r"has a \?, which the address of a database cannot hold"):
        sweep(options._replace(folder=options.folder.parent / "lr?1"))


def test_a_score_of_zero_may_be_the_best(tmp_path):
    study = SweepStudy(tmp_path, [Dimension("learner.clip", 0.1, 0.9)], seed=1, pruner="none")
    for score in (-5.0, 0.0, -3.0):
        study.finish(study.ask()[0], score)
    assert study.best().score == 0.0
