"""The encoder's estimate of damage and speed, in situations told by a few lines."""

from __future__ import annotations

import pytest

from tests.support.pokemon.requests import entry, offer, team_of, turn
from tests.support.pokemon.views import Seen, Views

ACTIVE = "switch|p1a: Absol|Absol, L80, M|100/100"


def seen(views: Views, gen: int, moves: tuple[str, ...], foe: str, *lines: str) -> Seen:
    """Singles: Absol against a foe that has come in, after more lines."""
    told = [ACTIVE, f"switch|p2a: {foe}|{foe}, L80|100/100", *lines, "turn|5"]
    request = turn([entry("Absol", active=True, moves=moves)], offer(*moves))
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
