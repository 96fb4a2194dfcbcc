"""The section of the configuration reaches the table, the spec and the players."""

from __future__ import annotations

import subprocess
import sys

from simul.common.config.games.ofc import OfcConfig
from simul.common.config.loader import load_config
from simul.common.protocol.messages import DECISION, TERMINATED
from simul.common.runtime.installation import ROOT
from simul.env_worker.games.loading import build_source, game_spec
from simul.env_worker.games.ofc.game import rules
from simul.env_worker.games.ofc.rules import Rules
from tests.support.turn_games import any_legal, play


def test_every_setting_reaches_the_rules():
    section = OfcConfig(
        players=2, hands=4, fantasyland=False, stay="full_house_too", progressive=True, jokers=2, button="last",
        stay_value=3.5, foul_cost=2.5,
    )  # fmt: skip
    assert rules(section) == Rules(
        players=2, hands=4, fantasyland=False, stay="full_house_too", progressive=True, jokers=2, button="last",
        stay_value=3.5, foul_cost=2.5,
    )  # fmt: skip
    assert rules(OfcConfig()) == Rules()


def test_the_shipped_configuration_plays_every_opponent_and_reports_the_figures():
    config = load_config("ofc", ["opponents=random:0.4,rule:0.3,mc:0.3", "ofc.rollouts=1", "workers.envs=6"])
    assert game_spec(config).num_actions == 259
    assert config.game_section.seats() == game_spec(config).seats == 3
    source = build_source(config, index=0, episodes=60, greedy=False, record=True)
    source.start()
    rows = play(source, any_legal(1))
    metrics = source.metrics()
    source.close()
    assert {row.kind for row in rows} == {DECISION, TERMINATED}
    assert metrics["episodes"]["finished"] == 60
    assert set(metrics["results"]) == {"random", "rule_based", "monte_carlo"}
    found = metrics["recent"]["all"]
    assert 0 < found["figure.foul_rate"] <= 1
    assert found["figure.score_per_hand"] < 0


NOTHING_LEFT_TO_COMPILE = """
import gc
from numba.core.registry import CPUDispatcher
from simul.common.config.loader import load_config
from simul.env_worker.games.loading import build_source
from tests.support.turn_games import any_legal, play

config = load_config("ofc", ["opponents=rule:0.5,mc:0.5", "ofc.rollouts=1", "workers.envs=4"])
source = build_source(config, index=0, episodes=20, greedy=False, record=True)
loops = [each for each in gc.get_objects() if isinstance(each, CPUDispatcher)]
before = [list(loop.signatures) for loop in loops]
source.start()
play(source, any_legal(1))
assert source.metrics()["episodes"]["finished"] == 20, source.metrics()["episodes"]
later = [loop.__name__ for loop, signatures in zip(loops, before) if signatures != list(loop.signatures)]
assert not later, later
"""


def test_a_source_that_is_built_has_nothing_left_to_compile():
    """The server drops a client that is silent for ten seconds, as a worker that compiles is."""
    done = subprocess.run([sys.executable, "-c", NOTHING_LEFT_TO_COMPILE], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
