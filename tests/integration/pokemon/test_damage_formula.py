"""The damage formula on hands that were counted out by hand, and its odd corners."""

from collections.abc import Callable

import pytest

from simul.env_worker.games.pokemon.tables.damage.rules import rules
from tests.support.pokemon.hands import fighter as mon
from tests.support.pokemon.hands import type_id

NORMAL, FIRE, WATER, FLYING, GHOST = map(type_id, ("Normal", "Fire", "Water", "Flying", "Ghost"))
LOWERED, RAISED = {"stages": (0, 0, -2, 0, 0)}, {"stages": (0, 0, 0, 2, 0)}
Hit = Callable[..., list[int]]


@pytest.fixture
def hit(hands) -> Hit:
    """Every roll of a move."""
    return lambda user, name, foe, *facts, **more: hands.ask(rolls=name, user=user, foe=foe, facts=facts, **more)


def test_a_neutral_hit_is_counted_as_in_the_games(hit):
    # 2 * 80 // 5 + 2 = 34; 34 * 90 * 200 // 200 // 50 = 61; + 2 = 63; then 85 to 100 hundredths, rounded down.
    assert hit(mon(NORMAL), "surf", mon(NORMAL)) == [63 * roll // 100 for roll in range(85, 101)]


def test_gen_1_has_39_rolls_of_255ths(hit):
    damage = 34 * 95 * 200 // 200 // 50 + 2  # surf had 95
    assert hit(mon(NORMAL), "surf", mon(NORMAL), gen=1) == [damage * roll // 255 for roll in range(217, 256)]


@pytest.mark.parametrize(
    ("user", "name", "foe", "largest"),
    [
        (mon(WATER), "surf", mon(NORMAL), 94),  # (63 * 6144 + 2047) >> 12
        (mon(WATER, ability="adaptability"), "surf", mon(NORMAL), 126),
        (mon(WATER, tera=WATER, terastallized=True), "surf", mon(NORMAL), 126),
        (mon(NORMAL), "surf", mon(FIRE), 126),
        (mon(NORMAL), "surf", mon(WATER), 31),
        (mon(NORMAL, item="lifeorb"), "surf", mon(NORMAL), 82),  # (63 * 5324 + 2047) >> 12
        (mon(NORMAL, stages=(0, 0, 2, 0, 0)), "surf", mon(NORMAL), 124),
        (mon(NORMAL, stages=(0, 0, 2, 0, 0)), "surf", mon(NORMAL, ability="unaware"), 63),
        (mon(NORMAL), "surf", mon(NORMAL, stages=(0, 0, 0, 6, 0)), 17),
        (mon(NORMAL, status="BRN"), "surf", mon(NORMAL), 63),
        (mon(NORMAL, ability="protean"), "surf", mon(NORMAL), 94),
        (mon(FIRE, baseTypes=(NORMAL,), ability="libero"), "surf", mon(NORMAL), 63),  # once each time it comes in
        (mon(FIRE, tera=FIRE, terastallized=True, ability="protean"), "surf", mon(NORMAL), 63),
        (mon(NORMAL), "meteorbeam", mon(NORMAL), 124),  # 34 * 120 * 300 // 200 // 50 + 2: it rises by a stage first
        (mon(NORMAL, effects=("PREPARING",)), "meteorbeam", mon(NORMAL), 83),  # it has risen
        (mon(NORMAL, ability="contrary"), "meteorbeam", mon(NORMAL), 56),
        (mon(NORMAL), "seismictoss", mon(NORMAL), 80),
        (mon(NORMAL), "superfang", mon(NORMAL, hp=3), 75),
        (mon(NORMAL), "superfang", mon(NORMAL, stats=(600, *[200] * 5), effects=["DYNAMAX"]), 150),
    ],
)
def test_what_changes_damage(hit, user, name, foe, largest):
    assert max(hit(user, name, foe)) == largest


@pytest.mark.parametrize(
    ("user", "name", "foe"),
    [
        (mon(NORMAL), "earthquake", mon(FLYING)),
        (mon(NORMAL), "earthquake", mon(NORMAL, ability="levitate")),
        (mon(NORMAL), "bodyslam", mon(GHOST)),
        (mon(NORMAL), "seismictoss", mon(GHOST)),
        (mon(NORMAL), "surf", mon(NORMAL, ability="waterabsorb")),
        (mon(NORMAL), "surf", mon(NORMAL, ability="wonderguard")),
    ],
)
def test_what_does_nothing(hit, user, name, foe):
    assert set(hit(user, name, foe)) == {0}


@pytest.mark.parametrize(
    ("user", "name", "foe"),
    [
        (mon(NORMAL, ability="moldbreaker"), "earthquake", mon(NORMAL, ability="levitate")),
        (mon(NORMAL, ability="scrappy"), "bodyslam", mon(GHOST)),
        (mon(NORMAL), "earthquake", mon(FLYING, item="ironball")),
        (mon(NORMAL), "thousandarrows", mon(FLYING)),
    ],
)
def test_what_hits_after_all(hit, user, name, foe):
    assert min(hit(user, name, foe)) > 0


def test_until_gen_8_protean_takes_every_type(hit):
    assert max(hit(mon(FIRE, baseTypes=(NORMAL,), ability="protean"), "surf", mon(NORMAL), gen=8)) == 94


def test_psychic_terrain_keeps_priority_moves_from_what_stands_on_it(hit):
    assert set(hit(mon(NORMAL), "quickattack", mon(NORMAL), "psychic_terrain")) == {0}
    assert min(hit(mon(NORMAL), "quickattack", mon(NORMAL, FLYING), "psychic_terrain")) > 0
    assert min(hit(mon(NORMAL), "bodyslam", mon(NORMAL), "psychic_terrain")) > 0
    assert min(hit(mon(NORMAL), "quickattack", mon(NORMAL), "misty_terrain")) > 0


def test_weather_and_screens(hit):
    assert max(hit(mon(NORMAL), "surf", mon(NORMAL), "rain")) == 94
    assert max(hit(mon(NORMAL), "flamethrower", mon(NORMAL), "rain")) == 31
    assert max(hit(mon(NORMAL), "surf", mon(NORMAL), screens=("lightscreen",))) == 31
    assert max(hit(mon(NORMAL), "surf", mon(NORMAL), screens=("reflect",))) == 63
    assert max(hit(mon(NORMAL, ability="infiltrator"), "surf", mon(NORMAL), screens=("lightscreen",))) == 63
    plain = hit(mon(NORMAL), "frostbreath", mon(NORMAL))
    assert hit(mon(NORMAL), "frostbreath", mon(NORMAL), screens=("lightscreen",)) == plain, "always a critical hit"


@pytest.mark.parametrize(("gen", "share"), [(4, 2730), (5, 2703), (9, 2732)])
def test_two_behind_a_screen_are_less_safe(gen, share):
    (rule,) = rules(gen, doubles=True)["screen"]["reflect"]
    assert rule.mod == share
    assert rules(gen)["screen"]["reflect"][0].mod == 2048


def test_sheer_force_gives_up_what_only_sheer_force_knows_of(hit):
    """The simulator has an empty secondary effect there."""
    forceful = hit(mon(NORMAL, ability="sheerforce"), "ceaselessedge", mon(NORMAL))
    assert max(forceful) > max(hit(mon(NORMAL), "ceaselessedge", mon(NORMAL)))


def test_technician_looks_at_the_power_that_a_move_has_now(hit):
    """Doubled, it is above 60."""
    technician = mon(NORMAL, ability="technician")
    assert max(hit(technician, "weatherball", mon(NORMAL), "rain")) == 105  # (34 * 100 // 50 + 2) * 1.5 by the rain
    assert max(hit(technician, "weatherball", mon(NORMAL))) == 79  # (34 * 75 // 50 + 2) * 1.5, of its own type
    asleep = mon(NORMAL, status="SLP")
    assert max(hit(technician, "wakeupslap", asleep, gen=4)) == 166  # (34 * 120 // 50 + 2) * 2


def test_gravity_strengthens_grav_apple(hit):
    assert max(hit(mon(NORMAL), "gravapple", mon(NORMAL))) == 56  # 34 * 80 // 50 + 2
    assert max(hit(mon(NORMAL), "gravapple", mon(NORMAL), gravity=True)) == 83  # 34 * 120 // 50 + 2


@pytest.mark.parametrize(
    ("user", "foe", "screens", "largest"),
    [
        ({}, {}, (), 63),  # (34 * 60 // 50 + 2) * 1.5
        ({"ability": "sniper"}, {}, (), 94),
        ({}, {"ability": "shellarmor"}, (), 42),
        ({"ability": "sniper"}, {"ability": "battlearmor"}, (), 42),
        ({"ability": "moldbreaker"}, {"ability": "battlearmor"}, (), 63),
        ({}, {}, ("luckychant",), 42),
        ({}, {}, ("luckychant", "lightscreen"), 21),
        (LOWERED, RAISED, (), 63),
        (LOWERED, RAISED, ("luckychant",), 12),  # 34 * 60 * 100 // 400 // 50 + 2
    ],
)
def test_who_makes_a_sure_critical_hit_more_or_less(hit, user, foe, screens, largest):
    assert max(hit(mon(NORMAL, **user), "frostbreath", mon(NORMAL, **foe), screens=screens)) == largest
