"""Evaluation while training, with a child that prints what a test sets: when it runs, which checkpoint is kept."""

from __future__ import annotations

import json
import os
import shutil
import sys

import msgspec
import psutil
import pytest

from simul.common.checkpoints import folders
from simul.common.checkpoints.folders import link_folder, replace_best
from simul.common.config.schema import Config, EvaluationConfig
from simul.common.protocol.specs import GameSpec
from simul.common.role.run_directory import RunDir
from simul.launch.monitoring.curves.curves_csv import CsvWriter
from simul.launch.monitoring.curves.figures import CurveReport, evaluation_figures
from simul.launch.processes.log_rotation import rotate_logs
from simul.launch.supervisor import evaluations as module
from simul.launch.supervisor.checkpoint_files import find_fault
from simul.launch.supervisor.evaluations import Evaluations, evaluation_command
from tests.support.checkpoints import write_small_checkpoint
from tests.support.processes import alive
from tests.support.waiting import wait_for

EVERY = 1000
AGAINST = EvaluationConfig(every_decisions=EVERY, opponents=("random", "max_base_power"))
AGAINST_THREE = ("random", "max_base_power", "damage")
POKEMON = Config(game="pokemon", evaluation=AGAINST)
PLAYS = "import sys; print(sys.argv[1])"
WAITS = "import sys; sys.stdin.read()"  # as an evaluation under way


class Run:
    """A run directory with checkpoints, and its evaluations, whose results a test sets by version."""

    def __init__(self, root, config=None):
        self.config = config or Config(evaluation=EvaluationConfig(every_decisions=EVERY, games=20))
        self.run_dir = RunDir(root)
        self.run_dir.create()
        self.said = []
        self.returns = {}
        self.program = PLAYS
        self.started = []
        self.begin(0.0)

    def begin(self, decisions):
        """As a start of the run does."""
        self.evaluations = Evaluations(self.config, self.run_dir, decisions, self.said.append, self._command)

    def save(self, version):
        """Whole by its hash; nothing here loads the weights."""
        spec = GameSpec("gymnasium/CartPole-v1", 4, 2)
        write_small_checkpoint(self.run_dir.checkpoints / f"{version:09d}", version, spec=spec)

    def _command(self, checkpoint):
        version = int(checkpoint.name.removeprefix(module.PINNED))
        self.started.append(version)
        mean = self.returns.get(version, 0.0)
        printed = {"pairs": [], "episodes": 20, "mean_return": mean, "lowest_return": 1.0, "highest_return": 500.0}
        if isinstance(mean, dict):
            printed = mean
        return [sys.executable, "-c", self.program, json.dumps(printed)]

    def result(self, decisions):
        """Poll until an evaluation has finished."""
        assert self.evaluations.poll(decisions) is None
        before, found = len(self.said), []
        wait_for(lambda: found.append(self.evaluations.poll(decisions)) or found[-1] or len(self.said) > before)
        return found[-1]

    def best(self):
        return self.run_dir.checkpoints / "best"


@pytest.fixture
def run(tmp_path):
    made = Run(tmp_path / "run")
    yield made
    made.evaluations.close()


def test_every_so_many_decisions_the_newest_checkpoint_is_evaluated_and_the_best_one_kept(run):
    run.save(5)
    assert run.evaluations.poll(EVERY - 1) is None
    assert run.started == []
    run.returns = {5: 100.0, 9: 300.0, 12: 200.0}
    for version, decisions in ((5, EVERY), (9, 2 * EVERY + 7), (12, 3 * EVERY)):
        if version > 5:
            run.save(version)
        result = run.result(decisions)
        assert (result["policy_version"], result["return_mean"], result["games"]) == (version, run.returns[version], 20)
        assert run.evaluations.poll(decisions + 1) is None
    assert run.started == [5, 9, 12], "2,007 and 3,000 are two multiples of 1,000"
    assert result["best_score"] == 300.0
    assert json.loads((run.best() / "evaluation.json").read_bytes())["score"] == 300.0
    assert json.loads((run.best() / "meta.json").read_bytes())["version"] == 9
    assert find_fault(run.best()) == ""
    left = sorted(path.name for path in run.run_dir.checkpoints.iterdir() if not path.name.isdigit())
    assert left == ["best", "best-000000009"], "nothing else is left"
    assert run.said[0].endswith("mean return of 20 greedy games 100, the best so far")
    assert run.said[2].endswith("200, the best is 300")


def test_a_result_that_is_longer_than_a_pipe_holds_is_read(run):
    run.program = f"import json, sys; print(json.dumps({{**json.loads(sys.argv[1]), 'more': 'x' * {1 << 18}}}))"
    run.save(5)
    assert run.result(EVERY)["games"] == 20


def test_strength_that_falls_in_three_evaluations_in_a_row_is_said(run):
    scores = (80.0, 90.0, 80.0, 70.0, 60.0, 50.0, 55.0)
    for version, score in enumerate(scores, start=1):
        run.save(version)
        run.returns[version] = score
        run.result(version * EVERY)
    assert [said for said in run.said if "fallen" in said] == [
        "strength has fallen in 3 evaluations in a row: 90, 80, 70, 60; checkpoints/best is the strongest",
        "strength has fallen in 4 evaluations in a row: 90, 80, 70, 60, 50; checkpoints/best is the strongest",
    ]


def test_a_fall_is_held_against_the_interval_of_the_mean_over_the_opponents(tmp_path):
    against_three = EvaluationConfig(every_decisions=EVERY, opponents=AGAINST_THREE)
    run = Run(tmp_path / "run", Config(game="pokemon", evaluation=against_three))
    for version, rate in enumerate((0.80, 0.78, 0.77, 0.74, 0.73), start=1):
        run.save(version)  # half of an interval is 0.08 wide, so that of the mean of three 0.046, of a difference 0.065
        run.returns[version] = {"pairs": [against(name, rate, rate - 0.08, rate + 0.08) for name in AGAINST_THREE]}
        run.result(version * EVERY)
    assert [said for said in run.said if "fallen" in said] == [
        "strength has fallen in 4 evaluations in a row: 0.8, 0.78, 0.77, 0.74, 0.73; checkpoints/best is the strongest"
    ]
    run.evaluations.close()


def test_a_fall_goes_on_over_a_resume_unless_the_scores_are_of_another_measure(run):
    curves = CsvWriter(run.run_dir.root)
    falls = []
    for version, score in enumerate((80.0, 90.0, 80.0, 70.0, 60.0, 50.0, 45.0, 40.0), start=1):
        if version == 6:  # from here on no two scores are comparable with those of before
            run.config = msgspec.structs.replace(run.config, evaluation=EvaluationConfig(every_decisions=EVERY))
        run.begin((version - 1) * EVERY)
        run.save(version)
        run.returns[version] = score
        figures = {figure.name: figure.value for figure in evaluation_figures(run.result(version * EVERY))}
        curves.write(CurveReport(version * EVERY, float(version), 0.0, figures), 0.0)
        falls.append("fallen" in run.said[-1])
    assert falls == [False] * 4 + [True] + [False] * 3
    assert "in 3 evaluations in a row: 90, 80, 70, 60;" in " ".join(run.said)


def test_weights_that_have_learned_nothing_are_not_evaluated(run):
    run.save(0)
    run.returns = {3: 10.0}
    assert run.evaluations.poll(EVERY) is None
    assert run.started == []
    run.save(3)
    assert run.result(EVERY)["policy_version"] == 3


def test_the_best_of_an_earlier_start_counts_unless_another_measure_chose_it(run):
    run.save(5)
    run.returns = {5: 300.0, 6: 200.0, 7: 100.0}
    run.result(EVERY)
    run.begin(EVERY + 10)
    run.save(6)
    assert run.result(2 * EVERY)["best_score"] == 300.0
    run.config = msgspec.structs.replace(run.config, evaluation=EvaluationConfig(every_decisions=EVERY, games=10))
    run.begin(2 * EVERY + 10)
    run.save(7)
    assert run.result(3 * EVERY)["best_score"] == 100.0
    assert json.loads((run.best() / "meta.json").read_bytes())["version"] == 7


def test_the_best_one_stays_while_the_same_version_becomes_it_again(run, monkeypatch):
    run.save(5)
    run.returns = {5: 200.0}
    run.result(EVERY)
    run.returns = {5: 300.0}
    run.begin(EVERY + 10)  # a resume before the next checkpoint
    before = []
    real = folders.replace_file
    monkeypatch.setattr(
        folders,
        "replace_file",
        lambda *args, **more: (before.append(find_fault(run.best())), real(*args, **more)),
    )
    assert run.result(2 * EVERY)["best_score"] == 300.0
    assert before == [""], "readers still find the old one"
    assert json.loads((run.best() / "evaluation.json").read_bytes())["score"] == 300.0
    left = sorted(path.name for path in run.run_dir.checkpoints.iterdir() if not path.name.isdigit())
    assert left == ["best", "best-again-000000005"]


def test_a_best_one_that_a_store_brings_after_the_supervisor_has_begun_counts(run):
    run.save(5)
    run.returns = {5: 300.0, 6: 200.0}
    run.result(EVERY)
    stored, result = run.run_dir.root / "stored-000000005", (run.best() / "evaluation.json").read_bytes()
    link_folder(run.best(), stored)
    run.evaluations.close()
    shutil.rmtree(run.run_dir.checkpoints)
    run.run_dir.create()
    run.begin(EVERY + 10)
    stored.rename(run.run_dir.checkpoints / "fetched-000000005")
    replace_best(run.run_dir.checkpoints / "fetched-000000005", result)
    run.save(6)
    assert run.result(2 * EVERY)["best_score"] == 300.0
    assert json.loads((run.best() / "meta.json").read_bytes())["version"] == 5


def test_never_two_at_once_and_no_checkpoint_twice(run):
    run.program = WAITS
    run.save(5)
    for decisions in range(EVERY, 6 * EVERY, EVERY // 2):
        run.save(5 + decisions)
        assert run.evaluations.poll(decisions) is None
    assert run.started == [5 + EVERY]
    run.evaluations.close()
    run.program = PLAYS
    run.begin(0.0)
    newest = 5 + 11 * EVERY // 2
    assert run.result(EVERY)["policy_version"] == newest
    assert run.evaluations.poll(2 * EVERY) is None
    assert run.started == [5 + EVERY, newest], "there is no newer checkpoint"


def test_the_learner_may_remove_the_checkpoint_that_is_evaluated(run):
    run.save(5)
    run.returns = {5: 100.0}
    assert run.evaluations.poll(EVERY) is None
    shutil.rmtree(run.run_dir.checkpoints / "000000005")
    assert wait_for(lambda: run.evaluations.poll(EVERY))["score"] == 100.0
    assert find_fault(run.best()) == ""


NO_EXTREMES = {"lowest_return": None, "highest_return": None}


def against(opponent, rate, low, high):
    return {"second": opponent, "battles": 10_000, "win_rate": rate, "wilson_95": [low, high]}


@pytest.mark.parametrize(
    ("printed", "says"),
    [
        (
            {"pairs": [], "episodes": 20, "mean_return": 487.25, "t_95": [470.123, 499.456], **NO_EXTREMES},
            "487 (95% interval 470 to 499), the best so far",
        ),
        (
            {"pairs": [against("random", 0.96, 0.95598, 0.96367)]},
            "0.9600 (95% interval 0.9560 to 0.9637), the best so far",
        ),
        (
            {"pairs": [against("random", 0.96, 0.95598, 0.96367), against("heuristic", 0.5, 0.4, 0.6)]},
            "0.7300 (random 0.9600, 95% interval 0.9560 to 0.9637; heuristic 0.50, 95% interval 0.40 to 0.60), "
            "the best so far",
        ),
        ({"pairs": [against("random", 1.0, 0.963, 1.0)]}, "1.000 (95% interval 0.963 to 1.000), the best so far"),
    ],
)
def test_the_event_has_an_interval_with_digits_enough_for_each_opponent(run, printed, says):
    run.save(5)
    run.returns = {5: printed}
    assert run.result(EVERY) is not None
    assert run.said[0].endswith(f"games {says}")


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("import sys; sys.exit('There is no room.')", "exit code 1, There is no room.; see logs/simul-evaluation.log"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "signal 9; see logs/"),
        ("print('no JSON')", "JSONDecodeError"),
        ('print(\'{"pairs": [], "episodes": 0, "mean_return": null}\')', "no episode was played to its end"),
    ],
)
def test_a_failed_or_killed_evaluation_is_said_and_the_next_one_comes(run, program, words):
    run.save(5)
    run.program = program
    assert run.result(EVERY) is None
    assert len(run.said) == 1
    assert words in run.said[0]
    assert run.said[0].endswith("Training goes on.")
    assert not run.best().exists()
    run.program = PLAYS
    run.save(6)
    assert run.result(2 * EVERY)["policy_version"] == 6


def test_a_run_that_stops_ends_the_evaluation_and_what_it_started(run, tmp_path):
    run.program = (
        "import subprocess, sys, pathlib; "
        "other = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(1000)'], start_new_session=True); "
        f"pathlib.Path({str(tmp_path / 'pid')!r}).write_text(str(other.pid)); sys.stdin.read()"
    )
    run.save(5)
    run.evaluations.poll(EVERY)
    wait_for(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text())
    run.evaluations.close()
    wait_for(lambda: not alive(int((tmp_path / "pid").read_text())))
    assert not list(run.run_dir.checkpoints.glob(f"{module.PINNED}*"))


def test_an_evaluation_has_low_priority(run):
    run.save(5)
    run.program = WAITS
    run.evaluations.poll(EVERY)
    own = os.nice(0)
    assert psutil.Process(run.evaluations._child._process.pid).nice() == min(own + 10, 19)


def test_the_score_of_pokemon_is_the_mean_win_rate_over_its_opponents(tmp_path):
    run = Run(tmp_path / "run", POKEMON)
    run.save(5)
    pair = {"first": "run@5", "battles": 100, "wilson_95": [0.1, 0.9]}
    pairs = [{**pair, "second": "random", "win_rate": 0.9}, {**pair, "second": "max_base_power", "win_rate": 0.5}]
    run.returns = {5: {"pairs": pairs}}
    result = run.result(EVERY)
    assert result["score"] == pytest.approx(0.7)
    assert result["games"] == 200
    assert result["win_rate"] == {"random": 0.9, "max_base_power": 0.5}
    assert result["win_rate_low"]["random"] == 0.1
    run.evaluations.close()


def test_without_an_interval_nothing_is_evaluated(tmp_path):
    run = Run(tmp_path / "run", Config())
    run.save(5)
    assert run.evaluations.poll(1e9) is None
    assert run.started == []


def test_the_command_plays_each_opponent_and_shares_nothing_with_the_run(tmp_path):
    line = evaluation_command(POKEMON, tmp_path / "x")
    assert line[line.index("--opponent") + 1] == "random"
    assert line.count("--opponent") == 2
    assert {"--no-round-robin", "server.device=cpu"} <= set(line)
    line = evaluation_command(Config(evaluation=EvaluationConfig(games=3)), tmp_path / "x")
    assert "--opponent" not in line
    assert "workers.envs=3" in line


def test_the_log_begins_empty_and_can_be_rotated(tmp_path):
    log = tmp_path / "simul-evaluation.log"
    log.write_text("of the last evaluation\n")
    with module._opened(log) as file:
        file.write(b"first\n")
        file.flush()
        assert log.read_bytes() == b"first\n"
        rotate_logs(tmp_path, 1)
        file.write(b"second\n")
    assert log.read_bytes() == b"second\n"
