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
