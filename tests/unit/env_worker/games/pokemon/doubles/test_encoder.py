"""What a slot of doubles sees: every number in its range, every feature alive, the facts in their places."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from simul.common.config.games.pokemon import PokemonConfig
from simul.common.errors import ConfigError
from simul.env_worker.games.pokemon.doubles.actions import FIRST_MOVE, NUM_ACTIONS, meaning
from simul.env_worker.games.pokemon.formats.spec import pokemon_spec
from simul.env_worker.games.pokemon.tables import doubles_layout as layout
from tests.support.layouts import check_cover, check_ranges
from tests.support.pokemon.recorded import recorded_seats
from tests.support.pokemon.recorded_doubles import SEATS, Asked, decisions
from tests.support.pokemon.vectors import DOUBLES, read_vectors

NEVER_LEGAL = [f"mask of gimmick 3, target {target}" for target in (0, 1)]  # max moves do not aim at one's own side
SLICES = {part.name: part for part in layout.slices()}


def read(row: np.ndarray, name: str) -> list[float]:
    part = SLICES[name]
    return row[part.start : part.start + part.size].tolist()


@pytest.fixture(scope="module")
def asked() -> list[Asked]:
    return [one for seat in SEATS for one in decisions(seat)]


@pytest.fixture(scope="module")
def observations() -> np.ndarray:
    """float16 [N, D] of the golden vectors."""
    return np.concatenate([read_vectors(name).observations(0, False) for name in DOUBLES])


def test_the_spec_is_that_of_doubles():
    spec = pokemon_spec(PokemonConfig(format="gen9randomdoublesbattle"))
    assert (spec.num_actions, spec.observation_size) == (107, layout.OBSERVATION_SIZE)
    assert spec.layout == layout.slices()
    assert pokemon_spec(PokemonConfig(format="gen9vgc2025regi")).num_actions == NUM_ACTIONS


def test_damage_of_the_whole_team_is_refused():
    with pytest.raises(ConfigError, match=r"damage_attackers: 6 asks for blocks that doubles .* leave it out"):
        pokemon_spec(PokemonConfig(format="gen9randomdoublesbattle", damage_attackers=6))


def test_slices_cover_the_observation():
    check_cover(layout.slices(), layout.OBSERVATION_SIZE)


def test_every_value_lies_in_its_range(observations):
    check_ranges(observations, layout.slices())


def test_every_feature_fires(observations):
    silent = [name for name, columns in features() if observations[:, columns].min() == observations[:, columns].max()]
    assert silent == NEVER_LEGAL


def features() -> list[tuple[str, list[int]]]:
    """Number by number; blocks of a kind count as one, so do actions of one gimmick with one target."""
    columns: dict[str, list[int]] = {}
    for part in layout.slices():
        group, _, field = part.name.partition(".")
        if group in ("own", "foe", "move", "partner_move"):
            field = group + field[1:]
        for offset in range(part.size):
            name = f"{field or group}[{offset}]"
            if group == "mask" and offset >= FIRST_MOVE:
                name = f"mask of gimmick {(offset - FIRST_MOVE) // 20}, target {(offset - FIRST_MOVE) % 5}"
            columns.setdefault(name, []).append(part.start + offset)
    columns["foe.present[0]"] += columns.pop("own.present[0]")
    return list(columns.items())


def test_the_right_slot_sees_what_the_left_one_chose(asked):
    seen = 0
    for left, right in pairwise(asked):
        if left.request is not right.request or left.request.get("teamPreview"):
            continue
        row, chosen = right.decision.observation, meaning(left.action)
        assert read(left.decision.observation, "global.first.made") == [0.0]
        assert read(row, "global.right") == read(row, "global.first.made") == [1.0]
        assert read(row, "global.first.switch") == [chosen.member == i for i in range(6)]
        assert read(row, "global.first.gimmick") == [chosen.gimmick == kind for kind in range(1, 5)]
        assert bool(read(row, "global.first.move")[0]) == (chosen.move >= 0)
        assert left.said is None
        assert right.said is not None
        seen += 1
    assert seen > 100


def test_slots_see_each_others_moves(asked):
    """What is `move` for one slot is `partner_move` for the other, at the same request."""
    for left, right in pairwise(asked):
        if left.request is not right.request or "active" not in left.request:
            continue
        for k in range(4):
            mine = read(left.decision.observation, f"move.{k}.id")
            assert mine == read(right.decision.observation, f"partner_move.{k}.id")


def test_both_foes_count():
    """Damage against the left foe is not that against the right one."""
    rows = [one.decision.observation for seat in SEATS[:6] for one in decisions(seat)]
    left = np.array([read(row, "move.0.left.damage")[0] for row in rows])
    right = np.array([read(row, "move.0.right.damage")[0] for row in rows])
    assert (left != right).sum() > 20


def test_a_preview_picks_four_of_six():
    first = [one for one in decisions(recorded_seats("gen9vgc2025regi")[0]) if "teamPreview" in one.request]
    assert [one.said is not None for one in first] == [False, False, False, True]
    assert first[-1].said == "team " + ",".join(str(one.action) for one in first)
    assert [int(one.decision.mask.sum()) for one in first] == [6, 5, 4, 3]
    assert not any(one.decision.mask[0] for one in first)
    assert read(first[0].decision.observation, "global.preview_picks") == [np.float16(4 / 6)]
