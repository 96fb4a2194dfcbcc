"""The reader of replay pages over battles of every generation: each line is known, its state is the simulator's own."""

from __future__ import annotations

import json

import pytest

from tests.support.pokemon.wild_teams import wild_team
from tests.support.replays import run_script


def battle(battle_format: str, seed: int, *, wild: bool) -> dict:
    gen = int(battle_format[3])
    teams = [wild_team(gen, f"{seed} {side}") for side in "ab"] if wild else None
    return {"format": battle_format, "seed": seed, "teams": teams, "names": ["Ann", "Bob"]}


def check(battles: list[dict]) -> list[str]:
    found = run_script("read_battles.mjs", json.dumps({"battles": battles}))
    assert found["unread"] == []
    assert found["differences"] == []
    assert len(found["results"]) == len(battles)
    assert found["steps"] > 50 * len(battles)
    return found["kinds"]


@pytest.mark.parametrize(
    "generations", [(1, 2, 4, 7, 9), pytest.param(tuple(range(1, 10)), marks=pytest.mark.slow)], ids=["five", "all"]
)
def test_battles_in_singles_and_doubles(generations):
    """.ci/long has those of all generations."""
    battles = [battle(f"gen{gen}randombattle", gen, wild=False) for gen in generations]
    battles += [battle(f"gen{gen}doublescustomgame", gen, wild=True) for gen in generations if gen > 2]
    kinds = check(battles)
    assert {"-damage", "-heal", "-start", "-end", "-weather", "-fieldstart", "-mega", "replace"} <= {*kinds}


@pytest.mark.slow
def test_many_battles_with_what_is_rare():
    battles = [
        battle(f"gen{gen}{kind}customgame", seed, wild=True)
        for gen in range(1, 10)
        for kind in ("", "doubles")[: 1 + (gen > 2)]
        for seed in range(100, 106)
    ]
    check(battles)
