"""The table of built-in games: complete, consistent, and all that validation, launcher and view know of a game."""

from __future__ import annotations

import re
from collections import Counter
from typing import ClassVar

import pytest
import yaml

from simul.common.config import automatic
from simul.common.config.game_description import POLICIES, Game, GameSection
from simul.common.config.games import GAMES, game_called
from simul.common.config.games.pokemon import PokemonConfig
from simul.common.config.loader import load_config
from simul.common.config.rule_checks import NETWORKS as FOR_ANY_GAME
from simul.common.config.schema import Config, OpponentsConfig
from simul.common.nets.build import NETWORKS
from simul.common.role.run_directory import RunDir
from simul.common.runtime.installation import CONFIGS, ROOT
from simul.common.runtime.machine_limits import MachineLimits

FINGERPRINTS = {
    ("cartpole", "default"): "010a5a9889235631",
    ("cartpole", "test"): "010a5a9889235631",
    ("cartpole", "quick"): "010a5a9889235631",
    ("memory", "default"): "8f5c96ae0f9043b6",
    ("pokemon", "default"): "d03933fa91434261",
    ("pokemon", "test"): "923792c704391c0f",
    ("pokemon", "quick"): "611df776c40ea26f",
}


@pytest.mark.parametrize(("name", "mode"), FINGERPRINTS)
def test_fingerprints_of_shipped_configurations(monkeypatch, name, mode):
    """They identify a configuration across versions: a new one here means that a value or a key has changed."""
    monkeypatch.setattr(automatic, "usable_machine", lambda: MachineLimits(2, 8000))
    assert load_config(name, mode=mode).fingerprint() == FINGERPRINTS[name, mode]


def test_later_keys_of_search_change_no_fingerprint_of_before(monkeypatch):
    """A section that is not as shipped counts, but not for the keys that it has since then."""
    monkeypatch.setattr(automatic, "usable_machine", lambda: MachineLimits(2, 8000))
    assert load_config("openspiel", ["search.simulations=7"]).fingerprint() == "9747ecbfaa820ff9"
    other = load_config("openspiel", ["search.simulations=7", "search.td_lambda=0.5"])
    assert other.fingerprint() != "9747ecbfaa820ff9"


class OtherConfig(GameSection, frozen=True):
    """A game that is added later."""

    description: ClassVar[Game] = Game(opponents=(*POLICIES, "random", "careful"))

    size: int = 7


class WiderOpponents(OpponentsConfig, frozen=True):
    """With the opponent that only the new game has."""

    careful: float = 0.0


class WiderConfig(Config, frozen=True):
    """`Config` with one game more."""

    other: OtherConfig = OtherConfig()
    opponents: WiderOpponents = WiderOpponents()


def test_a_new_game_changes_no_fingerprint(monkeypatch):
    before = Config(game="pokemon").fingerprint()
    monkeypatch.setitem(GAMES, "other", OtherConfig.description)
    assert WiderConfig(game="pokemon").fingerprint() == before
    ours = [
        WiderConfig(game="other"),
        WiderConfig(game="other", other=OtherConfig(size=8)),
        WiderConfig(game="other", opponents=WiderOpponents(self_play=0.5, careful=0.5)),
    ]
    assert len({config.fingerprint() for config in ours}) == len(ours)


def test_an_effective_configuration_of_a_run_before_a_game_was_added_still_loads(tmp_path):
    run_dir = RunDir(tmp_path)
    config = load_config("pokemon")
    run_dir.write_config(config)
    tree = yaml.safe_load((tmp_path / "config.yaml").read_text())
    assert list(tree)[:7] == [
        "game", "game_options", "run_dir", "seed", "stop_after_decisions", "pokemon", "gymnasium"
    ]  # fmt: skip
    del tree["gymnasium"], tree["opponents"]["damage"]
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(tree))
    assert run_dir.read_config() == config == load_config(tmp_path / "config.yaml")


def test_the_section_and_the_description_of_the_configured_game():
    config = Config(game="pokemon")
    assert config.game_section is config.pokemon
    assert game_called("pokemon") is PokemonConfig.description is GAMES["pokemon"]


@pytest.mark.parametrize("name", ["my.module:Env", "seed"])
def test_a_game_of_ones_own_has_the_seats_that_its_spec_says_and_any_opponent_that_fits_every_game(name):
    game = game_called(name)
    opponents = ("self_play", "past", "frozen", "random")
    assert (game.seats, game.opponents, game.episodes, game.pairings) == (0, opponents, "episodes", True)
    assert type(Config(game=name).game_section) is GameSection


def test_battles_are_mirrored_only_where_their_seeds_are_drawn_by_the_workers():
    assert PokemonConfig().draws_seeds()
    assert not PokemonConfig(transport="websocket").draws_seeds()


def test_every_opponent_has_a_share_and_every_short_name_one_meaning():
    kinds = dict.fromkeys(kind for game in GAMES.values() for kind in game.opponents)
    assert OpponentsConfig().shares().keys() == {*POLICIES, *kinds}
    short = [pair for game in GAMES.values() for pair in game.short_names.items()]
    assert [name for name, many in Counter(name for name, _ in set(short)).items() if many > 1 or name in kinds] == []
    assert [full for game in GAMES.values() for full in game.short_names.values() if full not in game.scripted] == []


@pytest.mark.parametrize("name", GAMES)
def test_every_game_has_a_configuration_and_its_networks_exist(name):
    game = GAMES[name]
    config = load_config(CONFIGS / f"{game.configuration}.yaml")
    assert config.game == name
    assert config.network.name in {*FOR_ANY_GAME, *game.networks} <= set(NETWORKS)
    assert game.variant in {"", *type(config.game_section).__struct_fields__}
    assert {kind for kind, share in config.opponents.shares().items() if share} <= set(game.opponents)


@pytest.mark.parametrize("name", GAMES)
def test_every_game_has_one_page_that_agrees_with_its_description(name):
    """The page's first table says: the section, configurations with their modes, seats, opponents, networks."""
    page = (ROOT / "docs" / f"{name}.md").read_text()
    rows = dict(re.findall(r"^\| ([a-z`]+) \| (.+) \|$", page, re.MULTILINE))
    shipped = {file.stem: yaml.safe_load(file.read_text()) for file in CONFIGS.glob("*.yaml")}
    named = [word for stem, tree in shipped.items() if tree["game"] == name for word in (stem, *tree.get("modes", {}))]
    game = GAMES[name]
    assert re.findall(r"`([^`]+)`", rows["section"]) == [name]
    assert rows["seats"] == (str(game.seats) if game.seats else "as the game has")
    assert re.findall(r"`([^`]+)`", rows["opponents"]) == list(game.opponents)
    networks = re.findall(r"`([^`]+)`", rows["networks"])
    assert {*game.networks, *(tree["network"]["name"] for tree in shipped.values() if tree["game"] == name)} <= {
        *networks
    }
    assert {*networks} <= {*FOR_ANY_GAME, *game.networks}
    assert sorted(re.findall(r"`([^`]+)`", rows["modes"])) == sorted(named)
    assert f": {name}.md" in (ROOT / "mkdocs.yml").read_text()
