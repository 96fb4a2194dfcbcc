"""Counts of lost and won battles, from the lines of their logs."""

from __future__ import annotations

from benchmarks.strength.losses import summed

START = "|player|p1|mine@3|1|\n|player|p2|bot|1|\n|switch|p1a: A|A|9/9\n|switch|p2a: X|X|9/9\n|turn|1\n"
LOST = """|move|p2a: X|Swords Dance|p2a: X
|-boost|p2a: X|atk|2
|move|p1a: A|Tackle|p2a: X
|-resisted|p2a: X
|-damage|p2a: X|8/9
|turn|2
|move|p2a: X|Earthquake|p1a: A
|-supereffective|p1a: A
|-crit|p1a: A
|-damage|p1a: A|0 fnt
|faint|p1a: A
|switch|p1a: B|B|9/9
|-damage|p1a: B|0 fnt|[from] Stealth Rock
|faint|p1a: B
|win|bot
"""
WON = """|switch|p1a: B|B|9/9
|cant|p2a: X|par
|turn|2
|move|p1a: B|Tackle|p2a: X
|-damage|p2a: X|0 fnt
|faint|p2a: X
|win|mine@3
"""


def test_causes_are_counted_for_both_sides(tmp_path):
    for number, text in enumerate((LOST, WON)):
        (tmp_path / f"{number}.log").write_text(START + text)
    found = summed(tmp_path, "mine")
    own, battles = found["lost", "own"]
    assert battles == 1
    assert (own["fainted"], own["fainted by a move"], own["fainted by hazards"], own["switches"]) == (2, 1, 1, 0)
    told = ("by a critical hit", "by a super effective hit", "by one with boosts of +2 or more")
    assert [own[f"fainted {how}"] for how in told] == [1, 1, 1]
    assert own["fainted before it could move"] == 1
    assert (own["moves resisted"], found["lost", "foe"][0]["moves resisted"]) == (1, 0)
    own, _ = found["won", "own"]
    assert (own["switches"], own["fainted"]) == (1, 0)
    foe, _ = found["won", "foe"]
    assert foe["turns lost to status or flinch"] == 1
