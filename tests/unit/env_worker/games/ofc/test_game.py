"""The section of the configuration reaches the table, the spec and the players."""

from __future__ import annotations

import subprocess
import sys

import pytest

from simul.common.config.games.ofc import OfcConfig
from simul.common.config.loader import load_config
from simul.common.errors import ConfigError
from simul.common.protocol.messages import DECISION, TERMINATED
from simul.common.runtime.installation import ROOT
from simul.env_worker.games.loading import build_source, game_spec
from simul.env_worker.games.ofc.game import rules
from simul.env_worker.games.ofc.rules import Rules
from tests.support.turn_games import any_legal, play


def test_every_setting_reaches_the_rules():
    section = OfcConfig(
        players=2, hands=4, fantasyland=False, stay="full_house_too", progressive=True, jokers=2, button="last",
        stay_value=3.5, foul_cost=2.5, final_foul_cost=1.5,
    )  # fmt: skip
    assert rules(section) == Rules(
        players=2, hands=4, fantasyland=False, stay="full_house_too", progressive=True, jokers=2, button="last",
        stay_value=3.5, foul_cost=2.5, final_foul_cost=1.5,
    )  # fmt: skip
    assert rules(OfcConfig()) == Rules()
    assert rules(OfcConfig(foul_cost=2.5)).final_foul_cost == 2.5


def test_who_plays_rollouts_is_a_setting_that_changes_no_fingerprint_of_before():
    default, strong = (load_config("ofc", [f"ofc.rollouts_by={name}"]) for name in ("rule_based", "fantasy_rules"))
    assert default.fingerprint() == load_config("ofc").fingerprint() != strong.fingerprint()
    with pytest.raises(ConfigError, match="rollouts_by"):
        load_config("ofc", ["ofc.rollouts_by=random"])


def test_the_shipped_configuration_plays_every_opponent_and_reports_the_figures():
    settings = ["opponents=random:0.3,rule:0.2,fantasy:0.2,mc:0.3", "ofc.rollouts=1", "workers.envs=6"]
    config = load_config("ofc", settings)
    assert game_spec(config).num_actions == 259
    assert config.game_section.seats() == game_spec(config).seats == 3
    source = build_source(config, index=0, episodes=60, greedy=False, record=True)
    source.start()
    rows = play(source, any_legal(1))
    metrics = source.metrics()
    source.close()
    assert {row.kind for row in rows} == {DECISION, TERMINATED}
    assert metrics["episodes"]["finished"] == 60
    assert set(metrics["results"]) == {"random", "rule_based", "fantasy_rules", "monte_carlo"}
    found = metrics["recent"]["all"]
    assert 0 < found["figure.foul_rate"] <= 1
    assert found["figure.score_per_hand"] < 0


NOTHING_LEFT_TO_COMPILE = """
import gc
from numba.core.registry import CPUDispatcher
from simul.common.config.loader import load_config
from simul.env_worker.games.loading import build_source
from tests.support.turn_games import any_legal, play

mix = "opponents=rule:0.3,fantasy:0.2,mc:0.5"
config = load_config("ofc", [mix, "ofc.rollouts=1", "ofc.rollouts_by=@BY@", "workers.envs=4"])
source = build_source(config, index=0, episodes=20, greedy=False, record=True)
loops = [each for each in gc.get_objects() if isinstance(each, CPUDispatcher)]
before = [list(loop.signatures) for loop in loops]
source.start()
play(source, any_legal(1))
assert source.metrics()["episodes"]["finished"] == 20, source.metrics()["episodes"]
later = [loop.__name__ for loop, signatures in zip(loops, before) if signatures != list(loop.signatures)]
assert not later, later
"""


@pytest.mark.parametrize("player", ["rule_based", "fantasy_rules"])
def test_a_source_that_is_built_has_nothing_left_to_compile(player):
    """The server drops a client that is silent for ten seconds, as a worker that compiles is."""
    script = NOTHING_LEFT_TO_COMPILE.replace("@BY@", player)
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
