"""Trials are compared at the same number of decisions, also where evaluations were skipped."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from simul.common.errors import ConfigError
from simul.launch.sweep.space import Dimension
from simul.launch.sweep.study import SweepStudy

pytestmark = pytest.mark.skipif(not find_spec("optuna"), reason="the extra [sweep] is not installed")


def study_of(folder, pruner="median"):
    return SweepStudy(folder, [Dimension("learner.clip", 0.1, 0.9)], seed=1, pruner=pruner)


def play(study, *evaluations):
    """Begin a trial with these (step, score); its number, and the first step at which it falls behind."""
    number = study.ask()[0]
    return number, next((step for step, score in evaluations if study.report(number, step, score)), None)


def test_a_skipped_evaluation_has_no_later_score(tmp_path):
    study = study_of(tmp_path)
    for _ in range(4):
        number, behind = play(study, (1, 10.0), (3, 100.0))
        assert behind is None
        study.finish(number, 100.0)
    assert study.trials()[0].steps == ((1, 10.0), (2, 10.0), (3, 100.0))
    assert play(study, (1, 10.0), (2, 20.0))[1] is None
    assert play(study, (1, 10.0), (2, 9.0))[1] is None  # the best so far counts
    assert play(study, (1, 5.0), (2, 9.0))[1] == 2


def test_the_median_judges_only_where_a_trial_was_evaluated(tmp_path):
    study = study_of(tmp_path)
    for _ in range(4):
        study.finish(play(study, (1, 10.0), (2, 50.0), (3, 50.0))[0], 50.0)
    assert play(study, (1, 10.0), (3, 60.0))[1] is None


def test_a_rung_of_halving_takes_no_later_score(tmp_path):
    study = study_of(tmp_path, "halving")
    study.finish(play(study, (1, 1.0), (5, 1.0))[0], 1.0)  # from the first finished one on there are rungs: 1, 4
    assert play(study, (1, 10.0), (4, 20.0))[1] is None
    assert play(study, (1, 11.0), (3, 15.0), (5, 30.0))[1] == 5  # at 4 it had 15


def test_a_resumed_trial_carries_its_last_score_on(tmp_path):
    number, _ = play(study_of(tmp_path), (1, 10.0), (2, 20.0))
    study = study_of(tmp_path)
    ((resumed, _),) = study.resume()
    assert resumed == number
    assert not study.is_new(number, 2)
    assert study.is_new(number, 3)
    study.report(number, 2, 7.0)  # not new
    study.report(number, 4, 40.0)
    assert study.trials()[0].steps == ((1, 10.0), (2, 20.0), (3, 20.0), (4, 40.0))


@pytest.mark.parametrize(
    ("dimension", "last"),
    [
        (Dimension("learner.clip", 0.1, 0.9, step=0.3), 0.7),
        (Dimension("learner.clip", 0.1, 0.7, step=0.3), 0.7),
        (Dimension("learner.epochs", 1, 8, whole=True, step=2), 7),
        (Dimension("network.options.n", 0, 10**18 - 1, whole=True, step=10**18 - 1), 10**18 - 1),
    ],
)
def test_a_step_that_does_not_reach_the_end_is_no_warning(dimension, last, tmp_path):
    study = SweepStudy(tmp_path, [dimension], seed=1, pruner="none")
    study.ask()
    (frozen,) = study._study.get_trials()
    assert frozen.distributions[dimension.key].high == last


@pytest.mark.parametrize(
    "own", [Dimension("network.name", choices=("mlp", "mlp_gru")), Dimension("network.name", 0, 1)]
)
def test_a_study_that_names_what_the_space_does_not_have_is_refused(own, tmp_path):
    study = SweepStudy(tmp_path, [Dimension("network.name", choices=("evil:Network",))], seed=1, pruner="none")
    study.finish(study.ask()[0], 1.0)
    with pytest.raises(ConfigError, match=r"study\.db holds network\.name=evil:Network, which the space does not have"):
        SweepStudy(tmp_path, [own], seed=1, pruner="none")
