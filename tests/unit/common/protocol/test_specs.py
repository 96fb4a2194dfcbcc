"""The game spec: its fingerprint tells every difference, and it survives the files it is written to."""

import hashlib

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simul.common.config.games.pokemon import PokemonConfig
from simul.common.protocol.specs import EntityGroup, GameSpec, Slice, random_observations
from simul.env_worker.games.pokemon.formats.spec import pokemon_spec

SPEC = GameSpec(
    name="toy", observation_size=5, num_actions=3, observation_dtype="float16", seats=2,
    layout=(Slice("own.hp", 0, 1, meaning="hit points"), Slice("own.moves", 1, 4, kind="id", high=9, vocabulary=10)),
)  # fmt: skip

slices = st.builds(
    Slice, name=st.text(max_size=8), start=st.integers(0, 99), size=st.integers(1, 9),
    kind=st.sampled_from(["number", "id"]), low=st.floats(-9, 9), high=st.floats(-9, 9), meaning=st.text(max_size=9),
    vocabulary=st.integers(0, 999), table=st.text(max_size=5),
)  # fmt: skip
specs = st.builds(
    GameSpec, name=st.text(max_size=12), observation_size=st.integers(1, 9999), num_actions=st.integers(1, 999),
    observation_dtype=st.sampled_from(["float16", "float32", "uint8"]), seats=st.integers(1, 4),
    encoder_version=st.integers(1, 99), layout=st.lists(slices, max_size=4).map(tuple),
    observation_shape=st.lists(st.integers(1, 99), max_size=4).map(tuple), observation_axes=st.text("NCHW", max_size=4),
    action_planes=st.integers(0, 91), action_cells=st.lists(st.integers(-1, 9999), max_size=4).map(tuple),
)  # fmt: skip


@given(specs)
def test_round_trip_keeps_the_fingerprint(spec):
    for codec in (msgspec.json, msgspec.msgpack):
        again = codec.decode(codec.encode(spec), type=GameSpec)
        assert again == spec
        assert again.fingerprint() == spec.fingerprint()
    assert len(spec.fingerprint()) == 16
    assert set(spec.fingerprint()) <= set("0123456789abcdef")


@pytest.mark.parametrize(
    "change",
    [
        {"name": "toy2"}, {"observation_size": 6}, {"num_actions": 4}, {"observation_dtype": "float32"}, {"seats": 1},
        {"encoder_version": 2}, {"layout": ()}, {"layout": SPEC.layout[::-1]},
        {"ending_numbers": 1},
        {"observation_shape": (5,)}, {"observation_axes": "HW"}, {"action_planes": 2}, {"action_cells": (0, 1, -1)},
        {"layout": (SPEC.layout[0], msgspec.structs.replace(SPEC.layout[1], vocabulary=11))},
    ],
)  # fmt: skip
def test_every_field_changes_the_fingerprint(change):
    assert msgspec.structs.replace(SPEC, **change).fingerprint() != SPEC.fingerprint()


@pytest.mark.parametrize(
    ("spec", "fingerprint"),
    [
        (GameSpec("toy", 3, 2), "57a750bc159b8ea9"),
        (SPEC, "5de4e2067465b9be"),
        (GameSpec("gymnasium/CartPole-v1", 4, 2), "76e7c581761cb43f"),
    ],
)
def test_fingerprints_are_stable_also_of_specs_without_the_later_fields(spec, fingerprint):
    assert spec.fingerprint() == fingerprint


def test_the_fingerprint_of_pokemon_is_over_the_fields_of_the_first_release_and_its_labels():
    spec = pokemon_spec(PokemonConfig())
    first = ("name", "observation_size", "num_actions", "observation_dtype", "seats", "encoder_version", "layout")
    first += ("opponent_labels", "opponent_classes")
    encoded = msgspec.msgpack.encode({name: getattr(spec, name) for name in first})
    assert spec.fingerprint() == hashlib.sha256(encoded).hexdigest()[:16]


def test_random_observations_are_bytes_where_bytes_travel():
    drawn = random_observations(GameSpec("image", 500, 2, "uint8"), 20, np.random.default_rng(0))
    assert (drawn.dtype, drawn.shape, drawn.min(), drawn.max()) == (np.uint8, (20, 500), 0, 255)


def test_dtype_and_slices():
    assert SPEC.dtype() == np.float16
    assert SPEC.slice("own.moves").vocabulary == 10
    with pytest.raises(KeyError, match=r"own\.speed"):
        SPEC.slice("own.speed")


@pytest.mark.parametrize("text", [b'{"name": "toy"}', b'{"name": "t", "observation_size": 1, "num_actions": "2"}'])
def test_a_broken_file_is_refused(text):
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(text, type=GameSpec)


def _units(count: int, gap: int = 0, present: int = 1) -> tuple[Slice, ...]:
    at = [3 * i + gap * (i > 1) for i in range(count)]
    return tuple(
        part
        for i, start in enumerate(at)
        for part in (Slice(f"unit.{i}.place", start, 2), Slice(f"unit.{i}.present", start + 2, present))
    )


@pytest.mark.parametrize(
    ("layout", "entities", "says"),
    [
        (_units(2), (EntityGroup("unit", 3),), r"declares 3 entities unit, and its layout has no slices unit\.2\.\*"),
        (_units(2), (EntityGroup("unit", 0),), "expected a positive count"),
        (
            _units(3, gap=1),
            (EntityGroup("unit", 3),),
            r"unit\.2\.\* differ from unit\.0\.\*; expected equal fields \(.*\), evenly",
        ),
        (
            (Slice("unit.0.hp", 0, 1), Slice("unit.1.place", 1, 1)),
            (EntityGroup("unit", 2),),
            r"unit\.1\.\* differ from unit\.0\.\*",
        ),
        (
            tuple(Slice(f"unit.{i}.kind", i, 1, "id", vocabulary=10 + i, table="kind") for i in range(2)),
            (EntityGroup("unit", 2),),
            r"unit\.1\.\* differ from unit\.0\.\*",
        ),
        (_units(3), (EntityGroup("unit", 3, "here"),), "entities unit have no field 'here' of one number"),
        (_units(2, present=2)[:2], (EntityGroup("unit", 1, "present"),), "have no field 'present' of one number"),
        (_units(2), (EntityGroup("unit", 2), EntityGroup("unit", 1)), "a group of entities twice"),
    ],
)
def test_entities_that_are_not_in_the_layout_are_refused(layout, entities, says):
    with pytest.raises(ValueError, match=says):
        GameSpec("game", 12, 2, layout=layout, entities=entities)


def test_entities_are_in_the_fingerprint_and_half_of_random_ones_are_absent():
    plain = GameSpec("game", 9, 2, layout=_units(3))
    declared = msgspec.structs.replace(plain, entities=(EntityGroup("unit", 3, "present"),))
    assert declared.fingerprint() != plain.fingerprint()
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(declared), type=GameSpec) == declared
    present = random_observations(declared, 200, np.random.default_rng(0))[:, 2::3]
    assert set(np.unique(present)) == {0.0, 1.0}
    assert 0.3 < present.mean() < 0.7


def test_planes_of_the_ending_need_a_board():
    board = {"observation_shape": (1, 2, 2), "observation_axes": "CHW"}
    spec = msgspec.structs.replace(SPEC, **board, ending_planes=3, ending_numbers=2)
    assert spec.ending_sizes == (12, 2)
    assert SPEC.ending_sizes == (0, 0)
    with pytest.raises(ValueError, match="ending_planes = 1 and ending_numbers = 0; expected 0 or more, and planes"):
        GameSpec("toy", 5, 3, ending_planes=1)
    with pytest.raises(ValueError, match="ending_numbers = -1"):
        GameSpec("toy", 5, 3, ending_numbers=-1)
