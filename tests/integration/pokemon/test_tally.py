"""What rewards count in a seat's lines. That counts of whole battles are right, test_recorded_rewards.py sees."""

from __future__ import annotations

import pytest

from simul.env_worker.games.pokemon.host.tally import Tally
from tests.support.pokemon.requests import forced, team_of, turn

TEAM = team_of("Absol", bench=("Ditto",))
MOVE, SWITCH = turn(TEAM), forced(TEAM, True)
PREVIEW = {"teamPreview": True, "side": {"pokemon": TEAM}}


@pytest.fixture
def count(views):
    """After these lines and requests; a battle of which nothing more is heard."""

    def counted(*batches: tuple[str, dict], free_switches: int = 0) -> Tally:
        view = views.open("gen9randombattle", 0, free_switches=free_switches)
        for lines, request in batches:
            view.see(lines, request)
        return view.end("").tally

    return counted


@pytest.mark.parametrize(
    ("lines", "fails"),
    [
        ("|move|p1a: X|Protect||[still]\n|-fail|p1a: X", 1),
        ("|move|p1a: X|Earthquake|p2a: Y\n|-immune|p2a: Y", 1),
        ("|move|p1a: X|Surf|p2a: Y\n|-immune|p2a: Y\n|-immune|p2b: Z", 1),
        ("|move|p1a: X|Toxic|p2a: Y\n|-fail|p2a: Y|tox\n|move|p1b: W|Protect|\n|-fail|p1b: W", 2),
        ("|move|p2a: Y|Earthquake|p1a: X\n|-immune|p1a: X", 0),
        ("|move|p1a: X|Surf|p2a: Y\n|-miss|p1a: X|p2a: Y", 0),
        ("|move|p1a: X|Surf|p2a: Y\n|\n|-fail|p1a: X", 0),
        ("|move|p1a: X|Surf|p2a: Y\n|switch|p2a: Z|Zapdos|100/100\n|-fail|p1a: X|unboost|[from] ability: Y", 0),
    ],
)
def test_a_move_that_fails_counts_once_and_only_the_own_one(count, lines, fails):
    assert count((lines, MOVE)).fails == fails


def test_only_a_switch_where_a_move_was_possible_counts(count):
    lead = ("|switch|p1a: Absol|Absol, L80, M|100/100\n|switch|p2a: Mew|Mew|100/100\n|turn|1", MOVE)
    own = ("|switch|p1a: Ditto|Ditto, L80, M|100/100\n|move|p2a: Mew|Tackle|p1a: Ditto", MOVE)
    theirs = ("|switch|p2a: Onix|Onix|100/100\n|drag|p1a: Absol|Absol, L80, M|100/100", MOVE)
    fell = ("|move|p2a: Mew|Tackle|p1a: Ditto\n|faint|p1a: Ditto", SWITCH)
    replaced = ("|switch|p1a: Absol|Absol, L80, M|100/100\n|turn|4", MOVE)
    assert count(lead, own, theirs, fell, replaced) == Tally(0, 1, 1, 0)
    assert count(("|poke|p1|Absol, L80, M", PREVIEW), lead, own).switches == 1


def test_switches_in_a_row_beyond_the_free_ones_count(count):
    start = ("|turn|1", MOVE)
    switch, stay = ("|switch|p1a: Ditto|Ditto, L80, M|100/100", MOVE), ("|move|p1a: Ditto|Tackle|p2a: Mew", MOVE)
    assert count(start, *[switch] * 5, free_switches=2).switches == 3
    assert count(start, *[switch, switch, stay] * 3, free_switches=2).switches == 0
