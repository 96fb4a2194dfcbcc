"""The damage formula against what the simulator and @smogon/calc make of real hits, given the true sets."""

from __future__ import annotations

import subprocess
from collections import Counter

import numpy as np
import orjson
import pytest

from simul.env_worker.games.pokemon.install.node import find_node
from tests.support.damage.hits import Hit, foreseen, record
from tests.support.npm_packages import CALC
from tests.support.pokemon.hands import Hands

GENERATIONS = tuple(range(1, 10))
COUNTS = pytest.mark.parametrize(
    ("hits_of_generation", "least", "share"),
    [(60, 400, 0.98), pytest.param(1250, 10_000, 0.99, marks=pytest.mark.slow)],
)
# Why a hit may lie outside its rolls: something that nobody knows before the move is used.
CAUSES = {
    "what happened before in the turn": "pursuit payback boltbeak fishiousrend avalanche revenge assurance "
    "stompingtantrum temperflare lashout fusionbolt fusionflare round analytic stakeout",
    "power that grows with use": "rollout iceball furycutter ragefist echoedvoice spitup trumpcard punishment",
    "power drawn by chance": "magnitude present ficklebeam",
    "the team's or an item's power": "beatup fling naturalgift",
    "the better of two categories": "shellsidearm",
    "a second, weaker blow": "parentalbond",
    "a disguise takes the blow": "disguise iceface",
    "the same aura twice": "darkaura fairyaura",
    "an item of the Pokemon it was before it transformed": "metalpowder",
    "a weight that was changed": "heavymetal lightmetal autotomize floatstone",
}


def cause(hit: Hit) -> str:
    """Empty where nothing explains a miss."""
    named = {hit["move"], hit["user"]["ability"], hit["foe"]["ability"], hit["foe"]["item"]}
    return next((reason for reason, names in CAUSES.items() if named & set(names.split())), "")


def check(hands: Hands, hits_of_generation: int, seed: int) -> Counter[str]:
    """Counts by outcome; critical hits and moves that return what they got stay outside."""
    found: Counter[str] = Counter()
    unexplained = []
    for hit in record(GENERATIONS, hits_of_generation, seed):
        damage = foreseen(hands, hit)
        if hit["crit"] or damage is None:
            continue
        within = bool(damage.min() <= hit["damage"] <= damage.max())
        found["within" if within else cause(hit)] += 1
        if not within and not cause(hit):
            unexplained.append((hit, damage.min(), damage.max()))
    assert unexplained == []
    return found


@pytest.mark.slow  # .ci/long runs it
@COUNTS
def test_real_hits_lie_within_their_rolls(hands, hits_of_generation, least, share):
    found = check(hands, hits_of_generation, seed=11)
    assert found.total() > least
    assert found["within"] >= share * found.total(), found


# It knows no rolls of moves that halve hp, and adds up what comes in several different blows.
NOT_COMPARED = {"superfang", "naturesmadness", "ruination", "tripleaxel", "triplekick", "shellsidearm", "beatup"}


def calculated(hits: list[Hit]) -> list[list[int] | None]:
    lines = b"".join(orjson.dumps(hit) + b"\n" for hit in hits)
    command = [find_node().path, str(CALC / "calculate.mjs")]
    out = subprocess.run(command, input=lines, capture_output=True, check=True, timeout=600).stdout
    return [orjson.loads(line) for line in out.splitlines()]


def agreement(hands: Hands, hits_of_generation: int, seed: int) -> tuple[int, int]:
    """How many of our ranges are those of @smogon/calc, to a point, and of how many."""
    same = compared = 0
    played = record(GENERATIONS, hits_of_generation, seed)
    hits = [hit for hit in played if not hit["crit"] and hit["move"] not in NOT_COMPARED]
    for hit, theirs in zip(hits, calculated(hits), strict=True):
        ours = foreseen(hands, hit)
        if theirs is None or ours is None or hit["user"]["ability"] == "parentalbond":
            continue
        compared += 1
        same += np.abs(np.array([ours.min() - min(theirs), ours.max() - max(theirs)])).max() <= 1
    return same, compared


@COUNTS
def test_agrees_with_smogons_calculator(hands, hits_of_generation, least, share):
    same, compared = agreement(hands, hits_of_generation, seed=11)
    assert compared > 0.75 * least
    assert same >= share * compared
