"""Every format, by random legal actions: the simulator refuses nothing that a mask allows, every line is read.

It may refuse what a request itself has called uncertain: a switch of a Pokemon that may be trapped.
"""

from __future__ import annotations

import pytest

from simul.common.config.games.pokemon import PokemonConfig
from simul.common.protocol.decisions import Decision
from simul.env_worker.games.pokemon.formats.spec import pokemon_spec
from tests.support.battles import Table, make_source
from tests.support.pokemon.recorded import TEAMS

RANDOM = [f"gen{gen}randombattle" for gen in range(1, 10)]
CHAMPIONS = "gen9championsvgc2026regmb"
TEAM_FILES = {"gen9ou": "gen9ou", "gen9bssregi": "gen9bssregi", "gen9vgc2025regi": "gen9bssregi", CHAMPIONS: CHAMPIONS}
FORMATS = [*RANDOM, "gen9randomdoublesbattle", *TEAM_FILES]
# .ci/long runs them. Doubles with drawn teams in make test: test_source.py.
BETWEEN = {
    *(f"gen{gen}randombattle" for gen in range(2, 9)),
    "gen9randomdoublesbattle",
    "gen9ou",
    "gen9bssregi",
    CHAMPIONS,
}
TRAPPING = {"gen9bssregi", "gen9vgc2025regi"}  # Shadow Tag and Magnet Pull are in these teams


def check(battle_format: str, battles: int, **settings: object) -> None:
    team_file = TEAM_FILES.get(battle_format)
    teams = str(TEAMS / f"{team_file}.txt") if team_file else ""
    config = PokemonConfig(format=battle_format, teams=teams, **settings)
    announced = [part.start for part in pokemon_spec(config).layout if part.name.endswith("maybe_trapped")]
    source = make_source(config, episodes=battles)
    last: dict[tuple[int, int], Decision] = {}
    refused = 0
    source.start()
    try:
        table = Table(source)
        while not source.idle():
            for decision in table.turn():
                before = last.get((decision.env, decision.seat))
                if decision.attempt:
                    assert before is not None
                    assert before.observation[announced].any()
                    refused += 1
                last[decision.env, decision.seat] = decision
        metrics = source.metrics()
    finally:
        source.close()
    assert metrics["episodes"]["finished"] == battles
    assert (metrics["invalid_choices"], metrics["bad_actions"], metrics["parse_errors"]) == (0, 0, {})
    assert metrics["redos"] == refused
    assert refused > 0 or battle_format not in TRAPPING


@pytest.mark.parametrize(
    "battle_format",
    [
        pytest.param(name, marks=pytest.mark.slow if name in BETWEEN else ())
        for name in FORMATS
        if name != "gen9randombattle"
    ],
)
def test_some_battles(battle_format: str) -> None:
    """gen9randombattle: below, and six battles in test_source.py. Masks of every generation: test_audit.py."""
    check(battle_format, 6 if battle_format in TRAPPING else 3, set_knowledge=battle_format in RANDOM)


@pytest.mark.slow  # .ci/long runs it
@pytest.mark.parametrize("settings", [{"damage_attackers": 6}, {"damage_attackers": 0, "set_knowledge": True}])
def test_other_layouts(settings: dict[str, object]) -> None:
    check("gen9randombattle", 2, **settings)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("battle_format", FORMATS)
def test_hundreds_of_battles(battle_format: str) -> None:
    check(battle_format, 300)
