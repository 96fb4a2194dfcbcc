"""What the damage bot thinks of moves, on hands made up for it. Gen 9 unless said."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.pokemon.hands import fighter, type_id

NORMAL, FIRE, WATER, GRASS, GHOST = map(type_id, ("Normal", "Fire", "Water", "Grass", "Ghost"))
Hand = dict[str, Any]


def mon(*names: str, types=(NORMAL,), spe=200, hp=1.0, body=(), **more) -> Hand:
    whole = fighter(*types, stats=(300, 200, 200, 200, 200, spe), **dict(body))
    able = {"guess": False, "aim": 0, "evasion": 0, "fresh": False, "asleep": False}
    return {"fighter": whole, "names": names, "hp": hp} | able | more


class Fight:
    """What the bot thinks of `user` against foes."""

    def __init__(self, user: Hand, answer: dict[str, Any]) -> None:
        self.names, self._rates = user["names"], answer["rates"]
        self.threats, self.margin = answer["threats"], answer["margin"]

    def value(self, slot: int, target: int = 0, tera: bool = False) -> float:
        return self._rates[f"{slot}/{target}/{str(tera).lower()}"]["value"]

    def dealt(self, slot: int, target: int = 0) -> list[float]:
        return self._rates[f"{slot}/{target}/false"]["dealt"]

    @property
    def best(self) -> str:
        return max(self.names, key=lambda name: self.value(self.names.index(name)))


@pytest.fixture
def matchup(hands) -> Callable[..., Fight]:
    def made(user: Hand, *foes: Hand | None, ally=None, tera=False, winds=(1, 1), trick_room=False) -> Fight:
        told = {"user": user, "foes": foes, "ally": ally, "tera": tera, "winds": winds, "trickRoom": trick_room}
        return Fight(user, hands.ask(**told))

    return made


def test_the_stronger_attack_is_worth_more_and_no_more_than_is_left(matchup):
    user = mon("tackle", "bodyslam", "shadowball", "growl")
    fight = matchup(user, mon())
    assert fight.best == "bodyslam"
    assert fight.value(2) == fight.value(3) == 0.0  # immune; no attack
    weak = matchup(user, mon(hp=0.05))
    assert weak.dealt(1)[0] == pytest.approx(0.05)
    assert weak.value(1) == pytest.approx(1.05)


def test_a_sure_knock_out_comes_before_a_stronger_move_that_may_miss(matchup):
    user = mon("dynamicpunch", "tackle")
    assert matchup(user, mon(hp=1.0)).best == "dynamicpunch"
    assert matchup(user, mon(hp=0.05)).best == "tackle"


def test_whoever_would_be_knocked_out_first_takes_the_move_with_priority(matchup):
    user = mon("bodyslam", "quickattack", hp=0.1)
    assert matchup(user, mon("bodyslam", hp=0.1, spe=150)).best == "bodyslam"
    fast = mon("bodyslam", hp=0.1, spe=250)
    fight = matchup(user, fast)
    assert fight.threats[0]["knockout"] == 1.0
    assert fight.best == "quickattack"
    slow_wins = matchup(user, fast, trick_room=True)
    assert slow_wins.value(0) == slow_wins.value(1)
    assert matchup(user, fast, winds=(2, 1)).value(0) > fight.value(0)


def test_a_foe_is_feared_for_attacks_that_nobody_has_seen(matchup):
    user = mon("bodyslam", types=(GRASS,))
    fear = [matchup(user, mon(types=(kind,), guess=True)).threats[0]["taken"] for kind in (FIRE, WATER)]
    assert matchup(user, mon(types=(FIRE,))).threats[0]["taken"] == 0.0 < fear[1] < fear[0]


def test_terastallizing_is_rated_beside_the_move_as_it_is(matchup):
    fight = matchup(mon("ember", types=(NORMAL,), body={"tera": FIRE}), mon(), tera=True)
    assert fight.value(0, tera=True) > 1.4 * fight.value(0) > 0.0


def test_who_deals_more_and_takes_less_stands_better(matchup):
    foe = mon("flamethrower", types=(FIRE,))
    water, grass = mon("surf", types=(WATER,)), mon("energyball", types=(GRASS,))
    assert matchup(water, foe).margin > 0.0 > matchup(grass, foe).margin
    assert matchup(water | {"hp": 0.0}, foe).margin > matchup(grass, foe).margin  # one that is to be revived


def test_a_spread_move_counts_both_foes_and_what_it_does_to_the_own_side(matchup):
    user = mon("earthquake", "bulldoze")
    alone, both = matchup(user, mon(), None), matchup(user, mon(), mon())
    assert alone.dealt(0, -1)[0] == pytest.approx(both.dealt(0, -1)[0] / 0.75)
    assert both.dealt(0, -1)[0] == both.dealt(0, -1)[1]
    assert both.value(0, -1) == pytest.approx(2 * 0.75 * alone.value(0, -1))
    assert matchup(user, mon(), mon(), ally=mon()).value(0, -1) == pytest.approx(both.value(0, -1) / 2)


@pytest.mark.parametrize(
    ("name", "user", "target", "facts", "expected"),
    [
        ("fakeout", mon(fresh=True), mon(), (), 1.0),
        ("fakeout", mon(), mon(), (), 0.0),
        ("dreameater", mon(), mon(), (), 0.0),
        ("dreameater", mon(), mon(asleep=True), (), 1.0),
        ("fissure", mon(), mon(), (), 0.3),
        ("fissure", mon(), mon(body={"level": 81}), (), 0.0),
        ("solarbeam", mon(), mon(), (), 0.5),
        ("solarbeam", mon(), mon(), ("sun",), 1.0),
        ("thunder", mon(), mon(), ("sun",), 0.5),
        ("thunder", mon(), mon(), ("rain",), 1.0),
        ("stoneedge", mon(), mon(), (), 0.8),
        ("stoneedge", mon(aim=-1), mon(evasion=1), (), 0.8 * 3 / 5),
        ("stoneedge", mon(body={"ability": "noguard"}), mon(evasion=6), (), 1.0),
        ("swift", mon(aim=-6), mon(), (), 1.0),
        ("recharge", mon(), mon(), (), 1.0),
    ],
)
def test_what_may_be_counted_on(hands, name, user, target, facts, expected):
    assert hands.ask(chance=name, user=user, target=target, facts=facts) == pytest.approx(expected)
