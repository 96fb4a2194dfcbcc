"""What a learner begins with, by the checkpoint that its run has; no server meets it."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from simul.common.config.schema import Config, OpponentsConfig
from simul.common.protocol.specs import GameSpec
from simul.common.role.lifecycle import RoleArguments, StopFlag
from simul.common.role.run_directory import RunDir
from simul.learner.build import open_learner
from tests.support.checkpoints import SMALL, write_checkpoint

SPEC = GameSpec("test/numbers", 12, 5, seats=2)
PAST = OpponentsConfig(self_play=0.8, past=0.2)  # whose decisions are a tenth of all, and not learned


@pytest.fixture
def run_dir(tmp_path):
    made = RunDir(tmp_path)
    made.create()
    made.write_config(Config(network=SMALL, opponents=PAST, stop_after_decisions=3000))
    made.write_spec(SPEC)
    return made


def started(run_dir):
    """Progress of a learner that is stopped at once, and what it has said."""
    said, stop = [], StopFlag()
    stop.set()
    reporter = SimpleNamespace(send=lambda metrics, state=None, event="": said.append(event), due=lambda now: False)
    with open_learner(RoleArguments(run_dir, 0, 1, 0), "", reporter, stop) as learner:
        assert learner.run()
        return learner.progress, said


@pytest.mark.parametrize("copied", [False, True])
def test_a_run_that_begins_with_other_weights_has_the_horizon_of_one_that_begins_with_its_own(run_dir, copied):
    if copied:  # as `simul up --from` does
        write_checkpoint(run_dir.checkpoints / "000000007", SPEC, 7)
    progress, said = started(run_dir)
    assert any("Begins with the weights of version 7" in sentence for sentence in said) == copied
    assert progress.horizon == 2700


@pytest.mark.parametrize(("decisions", "says"), [(90_000, False), (98_500, True), (119_419, True)])
def test_a_run_that_is_resumed_at_its_end_says_that_its_schedules_are_over(run_dir, decisions, says):
    write_checkpoint(run_dir.checkpoints / "000000007", SPEC, 7, horizon=100_000, decisions=decisions)
    progress, said = started(run_dir)
    assert progress.horizon == 100_000
    assert sum("--new-horizon" in sentence for sentence in said) == says
