"""The encoder's estimate of damage and speed, in situations told by a few lines."""

from __future__ import annotations

import pytest

from tests.support.pokemon.requests import entry, offer, team_of, turn
from tests.support.pokemon.views import Seen, Views

ACTIVE = "switch|p1a: Ditto|Ditto, L80, M|400/400"


def seen(views: Views, gen: int, moves: tuple[str, ...], foe: str, *lines: str) -> Seen:
    """Singles: Ditto against a foe that has come in, after more lines."""
    told = [ACTIVE, f"switch|p2a: {foe}|{foe}, L80|400/400", *lines, "turn|5"]
    status = " brn" if "-status|p1a: Ditto|brn" in told else ""
    condition = "160/400" if "-damage|p1a: Ditto|160/400" in told else "400/400"
    own = entry("Ditto", active=True, moves=moves, condition=condition + status, baseAbility="limber", ability="limber")
    request = turn([own], offer(*moves))
    view = views.open(f"gen{gen}customgame", 0)
    found = view.see("\n".join(f"|{line}" for line in told), request)
    assert view.errors == {}
    return found


@pytest.mark.parametrize(("foe", "times"), [("Ditto", 2), ("Shedinja", 1)])
def test_a_dynamaxed_foe_has_twice_the_hp(views: Views, foe: str, times: int) -> None:
    def read(*lines: str) -> tuple[float, list[float]]:
        found = seen(views, 8, ("darkpulse",), foe, *lines)
        names = ("move.0.damage", "own.0.deals", "foe.0.takes", "damage.0.foe.0")
        return found.read("foe.0.stats")[0], [found.read(name)[0] for name in names]

    hp, shares = read()
    assert read(f"-start|p2a: {foe}|Dynamax") == (
        pytest.approx(times * hp, abs=1e-3), pytest.approx([share / times for share in shares], rel=1e-3),
    )  # fmt: skip
    assert read(f"-start|p2a: {foe}|Dynamax", f"-end|p2a: {foe}|Dynamax") == (hp, shares)


@pytest.mark.parametrize(("gen", "share"), [(4, 2730), (5, 2703), (9, 2732)])
def test_a_screen_leaves_two_thirds_in_doubles(views: Views, gen: int, share: int) -> None:
    lines = ["|switch|p1a: Absol|Absol, L80, M|100/100", "|switch|p1b: Ditto|Ditto, L80, M|100/100",
             "|switch|p2a: Blissey|Blissey, L80|100/100", "|switch|p2b: Snorlax|Snorlax, L80|100/100"]  # fmt: skip

    def damage(*more: str) -> list[float]:
        view = views.open(f"gen{gen}doublescustomgame", 0)
        found = view.see("\n".join([*lines, *more]), turn(team_of("Absol", "Ditto")))
        return [found.read(name)[0] for name in ("move.0.right.damage", "own.0.right.deals", "foe.1.left.takes")]

    behind = damage("|-sidestart|p2: Foe|Reflect")
    assert behind == pytest.approx([share / 4096 * open_ for open_ in damage()], rel=1e-3)


BOTH_SCREENS = ("-sidestart|foe|Reflect", "-sidestart|foe|Light Screen")
BODY_PRESS = ("-boost|user|atk|6", "-boost|user|def|2")
STAGED = [
    ("bodypress", BODY_PRESS, 2.0),
    ("bodypress", (*BODY_PRESS, "-status|user|brn", "-sidestart|foe|Reflect"), 0.5),
    ("foulplay", ("-unboost|user|atk|1", "-boost|foe|atk|2"), 2.0),
    ("foulplay", ("-status|user|brn",), 0.5),
    ("psyshock", ("-boost|foe|def|2", "-boost|foe|spd|4"), 0.5),
    ("psyshock", ("-sidestart|foe|Reflect",), 1.0),
    ("psyshock", ("-sidestart|foe|Light Screen", "-boost|user|spa|2"), 1.0),
    ("seismictoss", ("-boost|user|atk|2", "-boost|foe|def|1", "-status|user|brn", *BOTH_SCREENS), 1.0),
    ("superfang", ("-damage|foe|160/400", "-boost|user|atk|2", "-status|user|brn", *BOTH_SCREENS), 0.4),
    ("strength", ("-boost|user|atk|2", "-boost|foe|spd|2", "-sidestart|foe|Light Screen"), 2.0),
    ("surf", ("-boost|user|spa|2", "-boost|foe|def|2", "-sidestart|foe|Reflect"), 2.0),
]  # fmt: skip


@pytest.mark.parametrize(("move", "lines", "factor"), STAGED)
def test_each_move_follows_its_own_stages_and_screens(
    views: Views, move: str, lines: tuple[str, ...], factor: float
) -> None:
    """Own attacks by the estimate and by the formula; then a foe's."""

    def numbers(told: tuple[str, ...], *names: str) -> list[float]:
        users = "p1" if names[0].startswith("move") else "p2"
        who = {"p1": "p1a: Ditto", "p2": "p2a: Snorlax"}
        foes = "p2" if users == "p1" else "p1"
        named = [line.replace("sidestart|foe", f"sidestart|{foes}: Side").replace("|foe|", f"|{who[foes]}|")
                 .replace("|user|", f"|{who[users]}|") for line in told]  # fmt: skip
        shown = (f"move|{who['p2']}|{name}|{who['p1']}" for name in (move, "growl", "leer", "splash"))
        found = seen(views, 9, (move,), "Snorlax", *(shown if users == "p2" else ()), *named)
        return [found.read(name)[0] for name in names]

    names = ("move.0.damage", "own.0.deals", "foe.0.takes", "foe.0.threat", "damage.0.foe.0")
    for slices in (names, ("own.0.takes", "own.0.threat", "foe.0.deals")):
        before, after = numbers((), *slices), numbers(lines, *slices)
        assert after == pytest.approx([factor * number for number in before], rel=0.03)


def test_a_share_of_the_foes_hp_is_followed_on_the_bench(views: Views) -> None:
    team = [*team_of("Ditto"), entry("Raticate", moves=("superfang", "splash"))]
    view = views.open("gen9customgame", 0)
    before = view.see(f"|{ACTIVE}\n|switch|p2a: Snorlax|Snorlax, L80|400/400", turn(team))
    after = view.see("|-damage|p2a: Snorlax|100/400", turn(team), anew=True)
    assert before.read("own.1.deals") == pytest.approx([0.45], abs=1e-3)
    assert after.read("own.1.deals") == pytest.approx([0.45 / 4], abs=1e-3)


@pytest.mark.parametrize("windy", ["p1", "p2"])
def test_a_tailwind_doubles_speed(views: Views, windy: str) -> None:
    """Ditto and Slowbro have 200; estimated are 235 (Garchomp) and 105 (Snorlax)."""
    team = team_of("Ditto", bench=["Slowbro"])
    for foe, without in (("Garchomp", -1.0), ("Snorlax", 1.0)):
        view = views.open("gen9customgame", 0)
        before = view.see(f"|{ACTIVE}\n|switch|p2a: {foe}|{foe}, L90|100/100", turn(team))
        after = view.see(f"|-sidestart|{windy}: Side|move: Tailwind", turn(team), anew=True)
        for name, sign in (("own.0.moves_first", 1), ("own.1.moves_first", 1), ("foe.0.moves_first", -1)):
            assert before.read(name) == [sign * without]
            assert after.read(name) == [sign * (1.0 if windy == "p1" else -1.0)]


SCREENS = ("Reflect", "Light Screen", "Aurora Veil", "Mist", "Tailwind")


@pytest.mark.parametrize(("gen", "screen"), [(1, "Reflect"), (1, "Light Screen"), (1, "Mist"), (2, "Mist")])
def test_a_screen_of_one_pokemon_is_observed_as_its_sides(views: Views, gen: int, screen: str) -> None:
    """It ends with Haze, and when the Pokemon leaves."""
    view, place = views.open(f"gen{gen}customgame", 0), SCREENS.index(screen)
    moves, slot = ("strength", "surf"), int(screen == "Light Screen")
    request = turn([entry("Ditto", active=True, moves=moves, condition="400/400")], offer(*moves))

    def read(*lines: str) -> tuple[list[float], list[float]]:
        found = view.see("\n".join(f"|{line}" for line in lines), request, anew=True)
        raised = found.read("global.foe_side.screens") + found.read("global.foe_side.screen_turns")
        return raised, [found.read("damage.0.foe.0")[2 * slot], found.read(f"move.{slot}.damage")[0]]

    one = [float(place == n) for n in range(5)]
    shown = [*one, *[age / 4 for age in one]]
    nothing, damage = read(ACTIVE, "switch|p2a: Snorlax|Snorlax, L80|400/400", "turn|3")
    assert nothing == [0.0] * 10
    left = 1.0 if screen == "Mist" else 0.5
    behind = read(f"-start|p2a: Snorlax|{screen}", "turn|4", "turn|5")
    assert behind == (shown, pytest.approx([left * number for number in damage], rel=0.05))
    assert read(f"-end|p2a: Snorlax|{screen}|[silent]") == (nothing, damage)
    assert read(f"-start|p2a: Snorlax|{screen}", "turn|6", "turn|7") == behind
    gone, on_the_bench = read("switch|p2a: Chansey|Chansey, L80|400/400")
    assert (gone, on_the_bench[0]) == (nothing, damage[0])
    assert view.errors == {}


def test_a_screen_of_one_pokemon_does_not_protect_who_comes_in(views: Views) -> None:
    view, team = views.open("gen1customgame", 0), team_of("Ditto", bench=["Slowbro"])
    lines = f"|{ACTIVE}\n|switch|p2a: Tauros|Tauros, L80|100/100"
    without, behind = (view.see(more, turn(team), anew=True) for more in (lines, "|-start|p1a: Ditto|Reflect"))
    own, bench = ([seen.read(f"own.{place}.takes")[0] for seen in (without, behind)] for place in (0, 1))
    assert own[1] == pytest.approx(own[0] / 2, rel=1e-3)
    assert bench[1] == bench[0] > 0


def test_mist_is_passed_in_gen_2(views: Views) -> None:
    view = views.open("gen2customgame", 0)
    lines = [f"|{ACTIVE}", "|switch|p2a: Snorlax|Snorlax, L80|400/400", "|turn|1", "|-start|p2a: Snorlax|Mist",
             "|turn|2", "|switch|p2a: Chansey|Chansey, L80|400/400|[from] Baton Pass", "|turn|3"]  # fmt: skip
    found = view.see("\n".join(lines), turn(team_of("Ditto")))
    assert found.read("global.foe_side.screens")[3] == 1.0
    assert found.read("global.foe_side.screen_turns")[3] == 2 / 8


@pytest.mark.parametrize(
    ("gen", "ability", "move", "immune"),
    [(4, "Lightning Rod", "thunderbolt", False), (5, "Lightning Rod", "thunderbolt", True),
     (4, "Storm Drain", "surf", False), (5, "Storm Drain", "surf", True), (4, "Motor Drive", "thunderbolt", True)],
)  # fmt: skip
def test_what_makes_immune_since_when(views: Views, gen: int, ability: str, move: str, immune: bool) -> None:
    found = seen(views, gen, (move,), "Snorlax", f"-ability|p2a: Snorlax|{ability}")
    numbers = [found.read(name)[0] for name in ("move.0.damage", "own.0.deals", "damage.0.foe.0")]
    assert [number == 0 for number in numbers] == [immune] * 3


def test_lucky_chant_is_in_the_damage_of_sure_critical_hits(views: Views) -> None:
    plain, safe = (
        seen(views, 7, ("frostbreath",), "Snorlax", *lines).read("damage.0.foe.0")[0]
        for lines in ((), ("-sidestart|p2: Side|move: Lucky Chant",))
    )
    assert safe == pytest.approx(plain / 1.5, rel=0.03)
