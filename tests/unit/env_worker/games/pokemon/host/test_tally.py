"""What rewards count in a seat's lines: each count fires on recorded battles, and as often as it happened."""

from __future__ import annotations

import pytest

from simul.env_worker.games.pokemon.host.tally import Tally, TallyKeeper
from tests.support.pokemon.recorded import RecordedSeat, recorded_seats

MOVE, SWITCH, PREVIEW = {"active": [{}]}, {"forceSwitch": [True]}, {"teamPreview": True}


def count(*batches: tuple[str, dict | None], free_switches: int = 0) -> Tally:
    keeper = TallyKeeper("p1", free_switches)
    for lines, request in batches:
        keeper.count_lines(lines, request)
    return keeper.tally


def recount(seat: RecordedSeat) -> Tally:
    keeper = TallyKeeper(seat.role, 0)
    for lines, request in seat.records:
        keeper.count_lines(lines, request)
    return keeper.tally


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
def test_a_move_that_fails_counts_once_and_only_the_own_one(lines, fails):
    assert count((lines, MOVE)).fails == fails


def test_only_a_switch_where_a_move_was_possible_counts():
    lead = ("|switch|p1a: A|A, L80|100/100\n|switch|p2a: B|B|100/100\n|turn|1", MOVE)
    own = ("|switch|p1a: C|C, L80|100/100\n|move|p2a: B|Tackle|p1a: C", MOVE)
    theirs = ("|switch|p2a: D|D|100/100\n|drag|p1a: A|A|100/100", MOVE)
    fell = ("|move|p2a: B|Tackle|p1a: C\n|faint|p1a: C", SWITCH)
    replaced = ("|switch|p1a: A|A, L80|100/100\n|turn|4", MOVE)
    assert count(lead, own, theirs, fell, replaced) == Tally(0, 1, 1, 0)
    assert count(("|poke|p1|A", PREVIEW), lead, own).switches == 1


def test_switches_in_a_row_beyond_the_free_ones_count():
    start = ("|turn|1", MOVE)
    switch, stay = ("|switch|p1a: C|C|100/100", MOVE), ("|move|p1a: C|Tackle|p2a: B", MOVE)
    assert count(start, *[switch] * 5, free_switches=2).switches == 3
    assert count(start, *[switch, switch, stay] * 3, free_switches=2).switches == 0


def test_every_count_fires_on_recorded_battles():
    tallies = [recount(seat) for seat in recorded_seats()]
    assert all(sum(counts) > 0 for counts in zip(*tallies))


def _must_switch(request: dict) -> bool:
    reviving = any(entry.get("reviving") for entry in request["side"]["pokemon"])  # Revival Blessing sends nobody out
    return "forceSwitch" in request and not reviving


def test_counts_of_recorded_battles_match_the_lines_themselves():
    for seat in recorded_seats():
        text = "\n".join(lines for lines, _ in seat.records)
        tally = recount(seat)
        assert tally.own_fainted == text.count(f"|faint|{seat.role}")
        assert tally.foe_fainted == text.count("|faint|") - tally.own_fainted
        assert tally.fails <= text.count("|-fail|") + text.count("|-immune|")
        forced = sum(_must_switch(request) for _, request in seat.records[:-1] if request is not None)  # answered ones
        out = text.count(f"|switch|{seat.role}") - 1  # the lead
        assert tally.switches == out - forced, (seat.format, seat.battle)
