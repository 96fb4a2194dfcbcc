"""Every built-in game: what `simul.common.config.games` says of it is what its code in env_worker does."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from simul.common.config.games import GAMES
from simul.common.config.loader import load_config
from simul.common.config.schema import Config
from simul.common.config.trust import EVERYTHING
from simul.env_worker.games.loading import build_source, game_spec
from simul.launch.supervisor.checkpoint_files import game_section_of


def config_of(name: str, *overrides: str) -> Config:
    return load_config(GAMES[name].configuration, ["workers.count=1", "workers.envs=1", *overrides])


@pytest.mark.parametrize("name", GAMES)
def test_the_spec_has_the_seats_and_the_name_of_the_description(name):
    config = config_of(name)
    spec = game_spec(config)
    assert config.game_section.seats() in (0, spec.seats)
    assert spec.name.partition("/")[0] == name
    variant = GAMES[name].variant
    section = {name: {variant: getattr(config.game_section, variant)}} if variant else {}
    assert game_section_of(spec.name) == {"game": name, **section}


@pytest.mark.parametrize(("name", "kind"), [(name, kind) for name, game in GAMES.items() for kind in game.opponents])
def test_the_source_accepts_every_opponent_of_the_description(name, kind):
    further = {"gtp": ["blokus.gtp=sh"], "frozen": ["opponents.checkpoint=zoo:pokemon"]}
    config = config_of(name, f"opponents={kind}:1", *further.get(kind, []))
    source = build_source(config, index=0, episodes=None, greedy=False, record=True, trust=EVERYTHING)
    assert source.envs == 1
    source.close()


@pytest.mark.parametrize("name", GAMES)
def test_modules_of_the_description_exist(name):
    game = GAMES[name]
    named = [module for module in (game.player, game.checks) if module]
    assert [module for module in named if find_spec(module) is None] == []
