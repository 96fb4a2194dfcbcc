"""Damage estimates and the type chart against known values."""

import pytest
from simul.env_worker.games.pokemon.damage.types import Body
from simul.env_worker.games.pokemon.encoding.expected_damage import (
    BestDamage,
    DamageProfile,
    MoveDamage,
    best_damage,
    defence_of,
    move_damage,
    offence_of,
)
from simul.env_worker.games.pokemon.encoding.profiles import estimated_stats, type_row

from simul.env_worker.games.pokemon.tables.movedex import move_info, type_chart

FIRE, WATER, GROUND, GHOST, NORMAL, FLYING = (
    type_row(n) for n in ("Fire", "Water", "Ground", "Ghost", "Normal", "Flying")
)
STATS = (300.0, 200.0, 200.0, 200.0, 200.0, 200.0)


def body(*types: int, **more) -> Body:
    return Body(**{"types": types, "base_types": types, "level": 80, "stats": STATS, "ability": "", "item": "", **more})


def hit(user: Body, move: str, target: Body) -> MoveDamage:
    return move_damage(offence_of(9, DamageProfile(user, (move_info(9, move),))).slots[0], defence_of(9, target))


def attack(profile: DamageProfile, target: Body) -> BestDamage:
    return best_damage(offence_of(9, profile).all, defence_of(9, target))


def test_type_chart():
    chart = type_chart(9)
    assert chart[WATER][FIRE] == 2.0
    assert chart[FIRE][WATER] == 0.5
    assert chart[NORMAL][GHOST] == 0.0
    assert type_chart(1)[GHOST][type_row("Psychic")] == 0.0


def test_a_neutral_blow_follows_the_formula():
    # ((2 * 80 / 5 + 2) * 90 * 1 / 50 + 2) * 0.925 / 300
    assert hit(body(NORMAL), "surf", body(NORMAL)).damage == pytest.approx((34 * 90 / 50 + 2) * 0.925 / 300)


@pytest.mark.parametrize(
    ("user", "move", "target", "factor"),
    [
        (body(WATER), "surf", body(FIRE), 3.0),
        (body(WATER), "surf", body(FIRE, GROUND), 6.0),
        (body(NORMAL), "surf", body(NORMAL, ability="waterabsorb"), 0.0),
        (body(NORMAL), "earthquake", body(FLYING), 0.0),
        (body(FIRE, base_types=(WATER,), terastallized=True), "surf", body(NORMAL), 1.5),
        (body(WATER, base_types=(WATER,), terastallized=True), "surf", body(NORMAL), 2.0),
        (body(NORMAL, ability="protean"), "surf", body(NORMAL), 1.5),
        (body(FIRE, base_types=(NORMAL,), ability="protean"), "surf", body(NORMAL), 1.0),
        (body(WATER, item="choicespecs"), "surf", body(NORMAL, item="assaultvest"), 1.5),
    ],
)
def test_modifiers(user, move, target, factor):
    neutral = hit(body(NORMAL), "surf" if move == "surf" else "earthquake", body(NORMAL)).damage
    assert hit(user, move, target).damage == pytest.approx(neutral * factor, rel=0.02)


def test_fixed_damage():
    assert hit(body(NORMAL), "seismictoss", body(NORMAL)).damage == pytest.approx(80 / 300)
    assert hit(body(NORMAL), "seismictoss", body(GHOST)).damage == 0.0
    assert hit(body(NORMAL), "superfang", body(NORMAL)).damage == 0.5


def test_terastallizing_changes_stab():
    found = hit(body(NORMAL, tera=WATER), "surf", body(NORMAL))
    assert found.tera_damage == pytest.approx(found.damage * 1.5)


def test_an_unknown_foe_is_assumed_to_have_stab():
    unknown = DamageProfile(body(WATER), (), guess=True)
    physical, _, effectiveness = attack(unknown, body(FIRE))
    assert effectiveness == 2.0
    assert physical > 0.0
    assert attack(DamageProfile(body(WATER), ()), body(FIRE)) == (0.0, 0.0, 0.0)


def test_estimated_stats_of_a_random_battle_pokemon():
    # Garchomp at level 76 in a gen 9 random battle, as the simulator's request shows it.
    base = {"hp": 108, "atk": 130, "def": 95, "spa": 80, "spd": 85, "spe": 102}
    assert estimated_stats(9, base, 76) == (289.0, 242.0, 188.0, 166.0, 173.0, 199.0)


def test_unknown_moves_have_no_data():
    assert move_info(9, "recharge") is None
    assert move_info(7, "hiddenpowerfire60").type == FIRE
