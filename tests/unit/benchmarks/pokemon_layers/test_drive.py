from __future__ import annotations

import random

from benchmarks.pokemon_layers.drive import legal_choices, random_choice


def entry(active=False, condition="100/100", **more):
    return {"active": active, "condition": condition, **more}


def turn(moves, side, **more):
    return {"active": [{"moves": moves, **more}], "side": {"pokemon": side}}


SIDE = [entry(active=True), entry(), entry(condition="0 fnt"), entry()]


def test_moves_that_are_not_disabled_and_living_team_mates():
    request = turn([{"id": "a"}, {"id": "b", "disabled": True}, {"id": "c"}], SIDE)
    assert legal_choices(request) == ["move 1", "move 3", "switch 2", "switch 4"]


def test_gimmicks():
    request = turn([{"id": "a"}, {"id": "b"}], SIDE[:1], canTerastallize="Fire", canZMove=[None, {"move": "z"}])
    assert sorted(legal_choices(request)) == [
        "move 1", "move 1 terastallize", "move 2", "move 2 terastallize", "move 2 zmove",
    ]  # fmt: skip


def test_trapped_and_forced():
    assert legal_choices(turn([{"id": "a"}], SIDE, trapped=True)) == ["move 1"]
    forced = {"forceSwitch": [True], "side": {"pokemon": SIDE}}
    assert legal_choices(forced) == ["switch 2", "switch 4"]


def test_revival_blessing_revives_the_fainted():
    side = [entry(active=True, reviving=True), *SIDE[1:]]
    assert legal_choices({"forceSwitch": [True], "side": {"pokemon": side}}) == ["switch 3"]


def test_every_choice_is_drawn_sooner_or_later():
    request, rng = turn([{"id": "a"}, {"id": "b"}], SIDE), random.Random(1)
    assert {random_choice(request, rng) for _ in range(200)} == set(legal_choices(request))
    assert random_choice({"teamPreview": True}, rng) == "default"
