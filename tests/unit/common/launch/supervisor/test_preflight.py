"""What a start changes in the configuration, and says."""

from __future__ import annotations

from simul.common.config.loader import load_config
from simul.common.launch.supervisor.preflight import without_opponents


def test_a_game_of_one_seat_has_no_opponents_and_it_is_said() -> None:
    said: list[str] = []
    config = without_opponents(load_config("openspiel", ["openspiel.name=catch"]), said.append)
    assert (config.opponents.self_play, config.opponents.random, config.evaluation.opponents) == (1.0, 0.0, ())
    assert said == [
        "the game has one seat and no opponents; left out: opponents.random 0.2; evaluation.opponents random"
    ]
    said.clear()
    assert without_opponents(config, said.append) == config
    assert said == []
