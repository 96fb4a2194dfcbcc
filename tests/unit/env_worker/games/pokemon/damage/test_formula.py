"""The damage formula on hands that were counted out by hand, and its odd corners."""

import pytest
from simul.env_worker.games.pokemon.damage.attacker import attacker_state, terastallized
from simul.env_worker.games.pokemon.damage.formula import EXACT, Hit, hit_before_roll, roll_moments, rolls
from simul.env_worker.games.pokemon.damage.moves import damage_move
from simul.env_worker.games.pokemon.damage.pairs import MOVES, Attacker, Defender
from simul.env_worker.games.pokemon.damage.queries import STELLAR
from simul.env_worker.games.pokemon.damage.rules import tables
from simul.env_worker.games.pokemon.damage.types import FACTS, NO_SURROUNDINGS, Fighter, Surroundings
from simul.env_worker.games.pokemon.encoding.profiles import type_row

NORMAL, FIRE, WATER, FLYING, GHOST, GRASS = map(type_row, ("Normal", "Fire", "Water", "Flying", "Ghost", "Grass"))
STATS = (300, 200, 200, 200, 200, 200)


def mon(*types: int, **more) -> Fighter:
    return Fighter(**{"species": "none", "level": 80, "stats": STATS, "types": types, "base_types": types, **more})


def hit(user: Fighter, name: str, foe: Fighter, around: Surroundings = NO_SURROUNDINGS, gen: int = 9, screens=()):
    ((_, move_used),) = Attacker(gen, user, ((name, damage_move(gen, name)),), False, around).moves
    blow = hit_before_roll(tables(gen), move_used, Defender(gen, foe, screens, around, {}).target_for(move_used))
    return [0] if blow is None else rolls(blow)


def test_a_neutral_hit_is_counted_as_in_the_games():
    # 2 * 80 // 5 + 2 = 34; 34 * 90 * 200 // 200 // 50 = 61; + 2 = 63; then 85 to 100 hundredths, rounded down.
    assert hit(mon(NORMAL), "surf", mon(NORMAL)) == [63 * roll // 100 for roll in range(85, 101)]


def test_gen_1_has_39_rolls_of_255ths():
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
        (mon(FIRE, base_types=(NORMAL,), ability="libero"), "surf", mon(NORMAL), 63),  # once each time it comes in
        (mon(FIRE, tera=FIRE, terastallized=True, ability="protean"), "surf", mon(NORMAL), 63),
        (mon(NORMAL), "meteorbeam", mon(NORMAL), 124),  # 34 * 120 * 300 // 200 // 50 + 2: it rises by a stage first
        (mon(NORMAL, effects=("PREPARING",)), "meteorbeam", mon(NORMAL), 83),  # it has risen
        (mon(NORMAL, ability="contrary"), "meteorbeam", mon(NORMAL), 56),
        (mon(NORMAL), "seismictoss", mon(NORMAL), 80),
        (mon(NORMAL), "superfang", mon(NORMAL, hp=50), 75),
    ],
)
def test_what_changes_damage(user, name, foe, largest):
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
def test_what_does_nothing(user, name, foe):
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
def test_what_hits_after_all(user, name, foe):
    assert min(hit(user, name, foe)) > 0


def test_until_gen_8_protean_takes_every_type():
    assert max(hit(mon(FIRE, base_types=(NORMAL,), ability="protean"), "surf", mon(NORMAL), gen=8)) == 94


def test_psychic_terrain_keeps_priority_moves_from_what_stands_on_it():
    psychic = Surroundings(FACTS["psychic_terrain"])
    assert set(hit(mon(NORMAL), "quickattack", mon(NORMAL), psychic)) == {0}
    assert min(hit(mon(NORMAL), "quickattack", mon(NORMAL, FLYING), psychic)) > 0
    assert min(hit(mon(NORMAL), "bodyslam", mon(NORMAL), psychic)) > 0
    assert min(hit(mon(NORMAL), "quickattack", mon(NORMAL), Surroundings(FACTS["misty_terrain"]))) > 0


def test_weather_and_screens():
    rain = Surroundings(FACTS["rain"])
    assert max(hit(mon(NORMAL), "surf", mon(NORMAL), rain)) == 94
    assert max(hit(mon(NORMAL), "flamethrower", mon(NORMAL), rain)) == 31
    assert max(hit(mon(NORMAL), "surf", mon(NORMAL), screens=("lightscreen",))) == 31
    assert max(hit(mon(NORMAL), "surf", mon(NORMAL), screens=("reflect",))) == 63
    assert max(hit(mon(NORMAL, ability="infiltrator"), "surf", mon(NORMAL), screens=("lightscreen",))) == 63


def test_moments_are_those_of_all_rolls():
    for gen in range(1, 10):
        blow = Hit(gen, damage=63, stab=6144, effect=1, final=5324)
        assert roll_moments(blow) == (sum(rolls(blow)), sum(roll * roll for roll in rolls(blow)))
        assert len(rolls(blow)) == len(rolls(Hit(gen, 80, how=EXACT))) == (39 if gen <= 2 else 16)


TERA_MOVES = ("terablast", "surf", "bulletseed", "photongeyser", "revelationdance", "terrainpulse", "earthquake")


@pytest.mark.parametrize("types", [(WATER,), (WATER, FLYING), (GHOST,)])
@pytest.mark.parametrize("tera", [WATER, FIRE, GRASS, FLYING, STELLAR])
@pytest.mark.parametrize("ability", ["", "adaptability", "protean"])
def test_what_terastallizing_does_not_change_is_what_it_would_be(types, tera, ability):
    user = mon(*types, tera=tera, ability=ability, stages=(2, 0, 0, 0, 0))
    grassy = Surroundings(FACTS["grassy_terrain"])
    after = terastallized(tables(9), attacker_state(tables(9), user, grassy)).user
    for name in TERA_MOVES:
        moves = ((name, damage_move(9, name)),)
        ((_, alone),) = Attacker(9, after, moves, False, grassy).moves
        assert dict(Attacker(9, user, moves, True, grassy).moves)[MOVES] == alone
