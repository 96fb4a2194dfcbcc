"""Settings as lines of `--set`."""

from __future__ import annotations

from simul.common.config.setting_lines import setting_lines


def test_settings_are_named_as_on_the_command_line():
    settings = {"workers": {"count": 2}, "seed": 3, "game_options": {"id": "a:B"}, "learner": {"clip": 1e-4}}
    assert setting_lines(settings) == ["workers.count=2", "seed=3", "game_options.id=a:B", "learner.clip=0.0001"]
    assert setting_lines({"opponents": {"self_play": True, "past": None}}) == [
        "opponents.self_play=true",
        "opponents.past=null",
    ]
