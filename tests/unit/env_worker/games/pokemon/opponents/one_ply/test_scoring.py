"""What the damage bot thinks of moves, on hands made up for it. Gen 9 unless said."""

from __future__ import annotations

import pytest

from simul.env_worker.games.pokemon.damage.types import FACTS, NO_SURROUNDINGS, Fighter, Surroundings
from simul.env_worker.games.pokemon.encoding.profiles import type_row
from simul.env_worker.games.pokemon.opponents.one_ply.combatants import Combatant, View
from simul.env_worker.games.pokemon.opponents.one_ply.hit_chance import hit_chance
from simul.env_worker.games.pokemon.opponents.one_ply.scoring import OnePlyMatchup, matchups

NORMAL, FIRE, WATER, GRASS, GHOST = map(type_row, ("Normal", "Fire", "Water", "Grass", "Ghost"))
STATS = (300, 200, 200, 200, 200, 200)
SUN = Surroundings(FACTS["sun"])


def mon(*names: str, types=(NORMAL,), spe=200, hp=1.0, fighter=(), **more) -> Combatant:
    body = {"species": "none", "level": 80, "stats": (*STATS[:5], spe), "types": types, "base_types": types}
    return Combatant(Fighter(**body | dict(fighter)), names, hp=hp, **more)


def matchup(user: Combatant, *foes: Combatant, around=NO_SURROUNDINGS, ally=None, tera=False, **more) -> OnePlyMatchup:
    return matchups(9, View(around, (user,), foes, **more), [user], tera=tera, ally=ally)[0]


def best(fight: OnePlyMatchup) -> str:
    names = fight.user.names
    return max(names, key=lambda name: fight.rate(names.index(name), 0).value)


def test_the_stronger_attack_is_worth_more_and_no_more_than_is_left():
    user = mon("tackle", "bodyslam", "shadowball", "growl")
    fight = matchup(user, mon())
    assert best(fight) == "bodyslam"
    assert fight.rate(2, 0).value == fight.rate(3, 0).value == 0.0  # immune; no attack
    weak = matchup(user, mon(hp=0.05)).rate(1, 0)
    assert weak.dealt[0] == pytest.approx(0.05)
    assert weak.value == pytest.approx(1.05)


def test_a_sure_knock_out_comes_before_a_stronger_move_that_may_miss():
    user = mon("dynamicpunch", "tackle")
    assert best(matchup(user, mon(hp=1.0))) == "dynamicpunch"
    assert best(matchup(user, mon(hp=0.05))) == "tackle"


def test_whoever_would_be_knocked_out_first_takes_the_move_with_priority():
    user = mon("bodyslam", "quickattack", hp=0.1)
    assert best(matchup(user, mon("bodyslam", hp=0.1, spe=150))) == "bodyslam"
    fast = mon("bodyslam", hp=0.1, spe=250)
    fight = matchup(user._replace(names=("bodyslam", "quickattack")), fast)
    assert fight.threats[0].knockout == 1.0
    assert best(fight) == "quickattack"
    slow_wins = matchup(user, fast, trick_room=True)
    assert slow_wins.rate(0, 0).value == slow_wins.rate(1, 0).value
    assert matchup(user, fast, winds=(2, 1)).rate(0, 0).value > fight.rate(0, 0).value


def test_a_foe_is_feared_for_attacks_that_nobody_has_seen():
    user = mon("bodyslam", types=(GRASS,))
    assert matchup(user, mon(types=(FIRE,))).threats[0].taken == 0.0
    assumed = matchup(user, mon(types=(FIRE,), guess=True)).threats[0].taken
    assert assumed > matchup(user, mon(types=(WATER,), guess=True)).threats[0].taken > 0.0


def test_terastallizing_is_rated_beside_the_move_as_it_is():
    user = mon("ember", types=(NORMAL,), fighter={"tera": FIRE})
    fight = matchup(user, mon(), tera=True)
    assert fight.rate(0, 0, tera=True).value > 1.4 * fight.rate(0, 0).value > 0.0


def test_who_deals_more_and_takes_less_stands_better():
    foe = mon("flamethrower", types=(FIRE,))
    water, grass = mon("surf", types=(WATER,)), mon("energyball", types=(GRASS,))
    assert matchup(water, foe).margin() > 0.0 > matchup(grass, foe).margin()
    assert matchup(water._replace(hp=0.0), foe).margin() > matchup(grass, foe).margin()  # one that is to be revived


def test_a_spread_move_counts_both_foes_and_what_it_does_to_the_own_side():
    user = mon("earthquake", "bulldoze")
    alone = matchup(user, mon(), None).rate(0, -1)
    both = matchup(user, mon(), mon()).rate(0, -1)
    assert alone.dealt[0] == pytest.approx(both.dealt[0] / 0.75)
    assert both.dealt[0] == both.dealt[1]
    assert both.value == pytest.approx(2 * 0.75 * alone.value)
    assert matchup(user, mon(), mon(), ally=mon()).rate(0, -1).value == pytest.approx(both.value / 2)


@pytest.mark.parametrize(
    ("name", "user", "target", "around", "expected"),
    [
        ("fakeout", mon(fresh=True), mon(), NO_SURROUNDINGS, 1.0),
        ("fakeout", mon(), mon(), NO_SURROUNDINGS, 0.0),
        ("dreameater", mon(), mon(), NO_SURROUNDINGS, 0.0),
        ("dreameater", mon(), mon(asleep=True), NO_SURROUNDINGS, 1.0),
        ("fissure", mon(), mon(), NO_SURROUNDINGS, 0.3),
        ("fissure", mon(), mon(fighter={"level": 81}), NO_SURROUNDINGS, 0.0),
        ("solarbeam", mon(), mon(), NO_SURROUNDINGS, 0.5),
        ("solarbeam", mon(), mon(), SUN, 1.0),
        ("thunder", mon(), mon(), SUN, 0.5),
        ("thunder", mon(), mon(), Surroundings(FACTS["rain"]), 1.0),
        ("stoneedge", mon(), mon(), NO_SURROUNDINGS, 0.8),
        ("stoneedge", mon(aim=-1), mon(evasion=1), NO_SURROUNDINGS, 0.8 * 3 / 5),
        ("stoneedge", mon(fighter={"ability": "noguard"}), mon(evasion=6), NO_SURROUNDINGS, 1.0),
        ("swift", mon(aim=-6), mon(), NO_SURROUNDINGS, 1.0),
        ("recharge", mon(), mon(), NO_SURROUNDINGS, 1.0),
    ],
)
def test_what_may_be_counted_on(name, user, target, around, expected):
    assert hit_chance(9, name, user, target, around) == pytest.approx(expected)
