"""What is easily got wrong, each in a battle recorded for it: what the seat sees, may do, and says to the simulator."""

from __future__ import annotations

import pytest

from simul.env_worker.games.pokemon.encoding.profiles import move_row, type_row
from simul.env_worker.games.pokemon.tables import layout
from simul.env_worker.games.pokemon.tables.vocabulary import vocabulary
from tests.support.pokemon.recorded import preview_of
from tests.support.pokemon.situations import situation
from tests.support.seen import Seen, seen_by


def species(name: str) -> float:
    return float(vocabulary().species[name])


def moves(*names: str) -> list[float]:
    rows = [float(move_row(name)) for name in names]
    return rows + [0.0] * (4 - len(rows))


def types(*names: str) -> list[float]:
    rows = [float(type_row(name)) for name in names]
    return rows + [0.0] * (2 - len(rows))


def test_an_own_zoroark_is_itself_whatever_the_field_shows():
    for seen in seen_by(situation("illusion")[0]):
        assert seen.out == [0]
        assert seen.one("own.0.species") == species("zoroark")
        assert seen.read("own.0.moves") == moves("splash", "darkpulse")
        assert seen.legal == [1, 2, 6, 7]
        assert [seen.choices.command(action) for action in (2, 7)] == ["switch 3", "move 2"]
        assert seen.one("own.2.hp") == 1.0
    assert seen.one("own.0.hp") == pytest.approx(147 / 227, abs=1e-3)


def test_a_foes_zoroark_is_a_garchomp_until_it_is_hit():
    *before, after = seen_by(situation("illusion")[1])
    for seen in before:
        assert [seen.one(f"foe.{i}.species") for i in range(6)] == [species("garchomp"), 0, 0, 0, 0, 0]
        assert seen.foe_out == [0]
    (out,) = after.foe_out
    assert after.one(f"foe.{out}.species") == species("zoroark")
    assert after.one(f"foe.{out}.hp") == pytest.approx(0.65, abs=1e-3)


def test_a_copy_has_the_moves_of_whom_it_copies_and_leaves_by_slot():
    first, *copied, after = seen_by(situation("transform")[0])
    assert first.one("global.own_active.transformed") == 0.0
    for seen in copied:
        assert seen.out == [1]
        assert seen.one("global.own_active.transformed") == 1.0
        assert seen.one("own.1.species") == species("ditto")
        assert seen.read("own.1.types") == types("Dragon", "Ground")
        assert seen.read("own.1.moves") == moves("swordsdance", "protect", "dragonclaw", "firefang")
        assert [seen.one(f"move.{k}.id") for k in range(4)] == moves("swordsdance", "protect", "dragonclaw", "firefang")
        assert seen.legal == [0, 2, 6, 7, 8, 9]
        # Its copy is of the team mate's kind: by name the simulator would take the one for the other.
        assert [seen.choices.command(action) for action in (0, 2, 7)] == ["switch 2", "switch 3", "move 2"]
    assert after.out == [2]
    assert after.read("own.1.types") == types("Normal")
    assert after.one("global.own_active.transformed") == 0.0


def test_a_forme_change_changes_the_stats_and_the_species():
    shown = seen_by(situation("forme_change")[0])
    shield, blade = [126 / 500, 270 / 500], [270 / 500, 126 / 500]  # atk, def
    for seen, (own, foe) in zip(
        shown, [(shield, shield), (blade, blade), (blade, shield), (blade, blade)], strict=True
    ):
        assert seen.read("own.0.stats")[1:3] == pytest.approx(own, abs=1e-3)
        assert seen.read("foe.0.stats")[1:3] == pytest.approx(foe, abs=1e-3)
        for who, stats in (("own", own), ("foe", foe)):
            assert seen.one(f"{who}.0.species") == species("aegislash" if stats is shield else "aegislashblade")
        assert seen.legal == [6, 7]


def test_a_mega_evolution_changes_types_and_is_spent():
    before, *after = seen_by(situation("mega")[0])
    assert before.legal == [6, 10]
    assert before.choices.command(10) == "move 1 mega"
    assert before.read("own.0.types") == types("Fire", "Flying")
    for seen in after:
        assert seen.read("own.0.types") == types("Fire", "Dragon")
        assert seen.legal == [6]
        assert seen.one("global.own_side.gimmick_used") == 1.0
    for seen in seen_by(situation("mega")[1])[1:]:
        assert seen.read("foe.0.types") == types("Fire", "Dragon")
        assert seen.one("foe.0.species") == species("charizardmegax")
        assert seen.one("global.foe_side.gimmick_used") == 1.0


def test_revival_blessing_offers_the_fainted_and_nobody_else():
    seen = seen_by(situation("revival_blessing")[0])
    (asked,) = [one for one in seen if one.one("global.reviving")]
    assert asked.one("global.force_switch") == 1.0
    assert asked.legal == [1]
    assert asked.choices.command(1) == "switch 2"
    assert asked.one("own.1.fainted") == 1.0
    after = seen[seen.index(asked) + 1]
    assert after.one("own.1.fainted") == 0.0
    assert after.one("own.1.hp") == pytest.approx(141 / 283, abs=1e-3)
    assert after.out == [0]


def test_struggle_takes_the_first_slot():
    first, *taunted = seen_by(situation("struggle")[0])
    assert first.legal == [1, 6, 7]
    for seen in taunted:
        assert seen.legal == [1, 6]
        assert seen.choices.command(6) == "move 1"
        assert seen.one("move.0.id") == move_row("struggle")
        assert [seen.one(f"move.{k}.usable") for k in range(2)] == [1.0, 0.0]
        assert seen.read("own.0.moves") == moves("splash", "calmmind")


def test_recharging_is_the_only_choice():
    first, recharging, after = seen_by(situation("recharge")[0])
    assert first.legal == after.legal == [1, 6, 7]
    assert recharging.legal == [6]
    assert recharging.choices.command(6) == "move 1"
    assert recharging.one("global.trapped") == recharging.one("global.own_active.recharging") == 1.0
    assert after.one("global.trapped") == after.one("global.own_active.recharging") == 0.0
    foes = [seen.one("global.foe_active.recharging") for seen in seen_by(situation("recharge")[1])]
    assert foes == [0.0, 1.0, 0.0]


def test_a_charging_move_is_prepared_for_one_turn():
    for seat, who in enumerate(("own", "foe")):
        shown = seen_by(situation("charging")[seat])
        assert [seen.one(f"global.{who}_active.preparing") for seen in shown] == [0.0, 1.0, 0.0]
        last = [seen.one(f"global.{who}_active.last_move") for seen in shown]
        assert last == [0.0, move_row("solarbeam"), move_row("solarbeam")]


def test_asleep_in_the_first_generation_there_is_only_fight():
    first, *asleep = seen_by(situation("fight")[0])
    assert first.legal == [1, 6, 7]
    for seen in asleep:
        assert seen.request["active"][0]["moves"][0]["id"] == "fight"
        assert seen.legal == [1, 6]
        assert seen.choices.command(6) == "move 1"
        assert seen.one("move.0.usable") == 1.0
        assert seen.read("own.0.status")[4] == 1.0


def test_forced_switches_offer_the_living_bench():
    seen = seen_by(situation("forced_switch")[0])
    fainted, pivoted = [one for one in seen if one.one("global.force_switch")]
    assert (fainted.legal, pivoted.legal) == ([1, 2, 3], [2, 3])
    assert [fainted.choices.command(action) for action in fainted.legal] == ["switch 2", "switch 3", "switch 4"]
    assert [pivoted.choices.command(action) for action in pivoted.legal] == ["switch 3", "switch 2"]  # Garchomp was out
    for one in (fainted, pivoted):
        assert not one.row[layout.MOVE_START : layout.MASK_START].any()
    assert fainted.one("own.0.fainted") == 1.0
    assert fainted.out == [0]
    assert pivoted.out == [1]


def test_who_may_be_trapped_may_try_once():
    maybe, trapped = seen_by(situation("maybe_trapped")[0])
    assert [maybe.one("global.maybe_trapped"), maybe.one("global.trapped")] == [1.0, 0.0]
    assert maybe.legal == [1, 6]
    assert maybe.choices.command(1) == "switch 2"
    assert [trapped.one("global.maybe_trapped"), trapped.one("global.trapped")] == [0.0, 1.0]
    assert trapped.legal == [6]


def test_a_preview_asks_pick_by_pick():
    seat = situation("preview")[0]
    preview = preview_of(seat)
    said = []
    for action in (2, 0, 3):
        seen = Seen({}, preview.choices, preview.encode()[0])
        assert [seen.one("global.preview"), seen.one("global.preview_picks")] == [1.0, 0.5]
        assert [seen.one(f"foe.{i}.species") for i in range(4)] == [
            species(name) for name in ("gengar", "urshifu", "snorlax", "pawmot")
        ]
        assert seen.out == seen.foe_out == []
        assert seen.legal == [i for i in range(4) if i not in (2, 0, 3)[: len(said)]]
        said.append(preview.pick(action))
    assert said == [None, None, "team 3,1,4"]
    after = seen_by(seat)[0]
    assert after.one("global.preview") == 0.0
    assert after.one(f"own.{after.out[0]}.species") == species("ditto")


def test_hit_points_in_pixels_are_a_fraction_too():
    told = "\n".join(lines for lines, _ in situation("pixels")[0].records)
    assert "|-damage|p2a: Shuckle|28/48" in told
    assert seen_by(situation("pixels")[0])[-1].one("foe.0.hp") == pytest.approx(28 / 48, abs=1e-3)
