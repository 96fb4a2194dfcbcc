"""Every format, by uniformly random legal actions: nothing that a mask allows is refused, both encoders agree.

See tests/support/twins.py for what fails a battle.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from simul.env_worker.games.pokemon.formats.spec import is_doubles
from simul.env_worker.games.pokemon.host.node_host import NodeHost
from simul.env_worker.games.pokemon.install.node import find_node
from simul.env_worker.games.pokemon.tables.layout import PLAIN, TEAM_SIZE, Extras
from tests.support.pokemon.wild_teams import wild_team
from tests.support.twins import Twins

RANDOM = [f"gen{gen}randombattle" for gen in range(1, 10)]
WITH_TEAMS = ["gen9ou", "gen9bssregi"]
CHAMPIONS = "gen9championsvgc2026regmb"
DOUBLES = [("gen9randomdoublesbattle", ""), ("gen9vgc2025regi", "gen9bssregi.txt"), (CHAMPIONS, f"{CHAMPIONS}.txt")]


HostFor = Callable[[str, Extras], NodeHost]


@pytest.fixture(scope="module")
def host_for() -> Iterator[HostFor]:
    """The host of the test before where that had the same layout, else a new one: all rows of a host have one size."""
    running: list[tuple[object, NodeHost]] = []

    def close() -> None:
        while running:
            running.pop()[1].close()

    def start(battle_format: str, extras: Extras) -> NodeHost:
        layout = is_doubles(battle_format), extras
        if not running or running[0][0] != layout:
            close()
            running.append((layout, NodeHost(find_node().path)))
            running[0][1].start()
        return running[0][1]

    yield start
    close()


def played(host_for: HostFor, battle_format: str, battles: int, seed: int, extras: Extras = PLAIN) -> Twins:
    twins = Twins(host_for(battle_format, extras), battle_format, seed, extras)
    twins.play(battles)
    return twins


@pytest.mark.parametrize(
    "battle_format",
    [*RANDOM, "gen9bssregi", pytest.param("gen9ou", marks=pytest.mark.slow)],  # .ci/long runs it
)
def test_some_battles(host_for: HostFor, battle_format: str) -> None:
    twins = played(host_for, battle_format, 6, seed=1, extras=Extras(sets=battle_format in RANDOM))
    assert twins.compared > 250
    if battle_format == "gen9bssregi":  # Shadow Tag and Magnet Pull are in these teams
        assert twins.refused > 0


@pytest.mark.parametrize(
    "battle_format",  # the whole team in two others
    [
        pytest.param("gen9randombattle", marks=pytest.mark.slow),
        pytest.param("gen9ou", marks=pytest.mark.slow),
        "gen9bssregi",
    ],
)
def test_the_damage_of_the_whole_team(host_for: HostFor, battle_format: str) -> None:
    assert played(host_for, battle_format, 4, seed=2, extras=Extras(TEAM_SIZE)).compared > 100


@pytest.mark.parametrize("extras", [Extras(0), Extras(0, sets=True)])
def test_without_damage(host_for: HostFor, extras: Extras) -> None:
    assert played(host_for, "gen9randombattle", 2, seed=2, extras=extras).compared > 50


def played_doubles(host_for: HostFor, battle_format: str, team_file: str, battles: int, seed: int) -> Twins:
    doubles = Twins(host_for(battle_format, PLAIN), battle_format, seed)
    doubles.play(battles, team_file)
    assert doubles.parse_errors == set()
    return doubles


@pytest.mark.parametrize(("battle_format", "team_file"), DOUBLES)
def test_some_battles_of_doubles(host_for: HostFor, battle_format: str, team_file: str) -> None:
    doubles = played_doubles(host_for, battle_format, team_file, 10, seed=1)
    assert doubles.compared > 250
    if team_file == "gen9bssregi.txt":  # Shadow Tag and Magnet Pull are in these teams
        assert doubles.refused > 0


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("gen", range(3, 10))
def test_custom_games_of_doubles(host_for: HostFor, gen: int) -> None:
    """Every gimmick; abilities and moves where no rule allows them."""
    doubles = Twins(host_for("doubles", PLAIN), f"gen{gen}doublescustomgame", seed=2)
    doubles.play(40, team=lambda number, seat: wild_team(gen, (number, seat)))
    assert doubles.compared > 3000


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(("battle_format", "team_file"), DOUBLES)
def test_two_hundred_battles_of_doubles(host_for: HostFor, battle_format: str, team_file: str) -> None:
    assert played_doubles(host_for, battle_format, team_file, 200, seed=2).compared > 5000


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("battle_format", [*RANDOM, *WITH_TEAMS])
def test_encoders_agree_over_thousands_of_decisions(host_for: HostFor, battle_format: str) -> None:
    decisions = 0
    for seed in range(100, 1000):
        extras = Extras(sets=seed % 2 == 0 and battle_format in RANDOM)
        decisions += played(host_for, battle_format, 40, seed, extras).compared
        if decisions >= 12_000:
            return
