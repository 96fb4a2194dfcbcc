"""Whose team a battle's seats get, and what is said of a Teambuilder of the user's that does not do."""

import random
import sys

import pytest

from simul.common.config.games.pokemon import PokemonConfig
from simul.common.config.trust import EVERYTHING, NOTHING
from simul.common.errors import ConfigError, FailingEnvError
from simul.env_worker.games.pokemon.formats.team_draws import OwnTeambuilder, TeamDraws, names_class

BUILDERS = """
class Raises:
    def yield_team(self):
        raise ValueError("out of teams")

class NeedsMore:
    def __init__(self, path): ...

class NoBuilder: ...

class NoText:
    def yield_team(self):
        return None

class Counts:
    made = 0
    def yield_team(self):
        Counts.made += 1
        return f"team {min(Counts.made, 3)}"
"""
HERS, THEIRS, BOTH = (True, False), (False, True), (True, True)


class Numbered:
    """A TeamSource that hands out numbered teams."""

    def __init__(self, name: str) -> None:
        self.name, self.drawn = name, 0

    def draw(self, rng: random.Random) -> str:
        self.drawn += 1
        return f"{self.name}{self.drawn}"

    def close(self) -> None: ...


class Packing:
    """A host that finds every team legal but the third, and keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def check_format(self, battle_format, teams):
        self.asked += teams
        illegal = [[0, ["Ditto is banned."]]] if "3" in teams[0] else []
        packed = [f"|ditto|||transform|||||{teams[0]}|"]
        return {
            "id": battle_format,
            "problem": "",
            "doubles": False,
            "formats": [],
            "teams": packed,
            "illegal": illegal,
        }

    def start(self) -> None: ...

    def close(self) -> None: ...


@pytest.fixture
def builders(tmp_path, monkeypatch):
    (tmp_path / "builders.py").write_text(BUILDERS)
    monkeypatch.chdir(tmp_path)
    yield
    sys.modules.pop("builders", None)


def opened(name: str, host: Packing | None = None) -> OwnTeambuilder:
    return OwnTeambuilder(
        "pokemon.opponent_teams", f"builders:{name}", PokemonConfig(format="gen9ou"), host or Packing(), EVERYTHING
    )


def test_the_seats_of_others_draw_from_their_own_list():
    draws, rng = TeamDraws(Numbered("own"), Numbered("other")), random.Random(1)
    assert draws.draw(rng, HERS) == ("own1", "other1")
    assert draws.draw(rng, THEIRS) == ("other2", "own2")
    assert draws.draw(rng, BOTH) == ("own3", "own4")
    assert TeamDraws(Numbered("own")).draw(rng, THEIRS) == ("own1", "own2")


def test_a_mirrored_pair_has_the_same_two_teams():
    draws, rng = TeamDraws(Numbered("own"), Numbered("other")), random.Random(1)
    assert draws.draw(rng, HERS, (0, 0)) == ("own1", "other1")
    assert draws.draw(rng, THEIRS, (0, 0)) == ("other1", "own1"), "each contestant keeps its team"
    assert draws.draw(rng, HERS, (0, 1)) == ("own2", "other2")
    draws = TeamDraws(Numbered("own"))
    assert draws.draw(rng, HERS, (0, 0)) == draws.draw(rng, THEIRS, (0, 0)) == ("own1", "own2")


def test_each_team_of_a_teambuilder_is_validated_once_and_an_illegal_one_is_named(builders, monkeypatch):
    host, validator = Packing(), Packing()
    teams = opened("Counts", host)
    monkeypatch.setattr(teams, "_validator", validator)
    rng = random.Random(1)
    first, second = teams.draw(rng), teams.draw(rng)
    assert (host.asked, validator.asked) == (["team 1"], ["team 2"])
    assert "team 1" in first
    assert "team 2" in second
    with pytest.raises(
        FailingEnvError, match=r"pokemon.opponent_teams: not legal in gen9ou:\n  builders:Counts: Ditto is banned\."
    ):
        teams.draw(rng)
    teams._builder.__class__.made = 0
    assert (teams.draw(rng), validator.asked) == (first, ["team 2", "team 3"])


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("Raises", r"builders:Raises raised in yield_team: builders\.py:4: ValueError: out of teams\."),
        ("NeedsMore", "builders:NeedsMore cannot be built: .*'path'.* called without arguments"),
        ("NoBuilder", "builders:NoBuilder has no method yield_team"),
        ("NoText", "yield_team of builders:NoText returned a NoneType; expected a team as text"),
        ("Missing", "has no Teambuilder 'Missing'"),
    ],
)
def test_what_a_teambuilder_does_wrong_is_said(name, words, builders):
    with pytest.raises(ConfigError, match=words):
        opened(name)


def test_a_path_with_a_colon_that_exists_is_a_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert names_class("my_teams:Rain")
    assert not names_class("teams/gen9ou.txt")
    assert not names_class("")
    (tmp_path / "my_teams:Rain").touch()
    assert not names_class("my_teams:Rain")


def test_a_class_is_not_imported_without_trust(builders):
    with pytest.raises(ConfigError, match="--trust"):
        OwnTeambuilder("pokemon.teams", "builders:Counts", PokemonConfig(), Packing(), NOTHING)
    assert "builders" not in sys.modules
