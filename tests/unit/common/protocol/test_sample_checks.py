"""Bad rows of SAMPLES get their own error, each kind; the rows beside them are kept."""

from __future__ import annotations

import numpy as np
import pytest

from simul.common.errors import ERR_LIMIT, ERR_MASK, ERR_SHAPE, ERR_VALUE, ProtocolError
from simul.common.protocol.messages import RowErrors
from simul.common.protocol.sample_checks import MAX_ROWS, unpack_samples
from simul.common.protocol.specs import GameSpec

SPEC = GameSpec("test", observation_size=2, num_actions=10)


def columns(rows: int = 4):
    """Rows with two entries each, of actions 0 and 9."""
    return {
        "observation": np.arange(2 * rows, dtype=np.float32).reshape(rows, 2),
        "mask": np.tile(np.array([0b1, 0b10], np.uint8), (rows, 1)),
        "target_count": np.full(rows, 2, np.int32),
        "target_action": np.tile(np.array([0, 9], np.int32), rows),
        "target_probability": np.tile(np.array([0.25, 0.75], np.float32), rows),
        "outcome": np.linspace(-1, 1, rows, dtype=np.float32),
        "policy_version": np.arange(rows),
    }


def test_good_rows_pass_as_they_are() -> None:
    given = columns()
    kept, errors = unpack_samples(SPEC, given)
    assert errors == ()
    assert all(kept[name] is given[name] for name in given)
    nothing = {name: column[:0] for name, column in given.items()}
    assert unpack_samples(SPEC, nothing)[1] == ()


def test_a_row_without_a_target_needs_none() -> None:
    given = columns(2)
    given["target_count"] = np.array([0, 2], np.int32)
    for name in ("target_action", "target_probability"):
        given[name] = given[name][2:]
    assert unpack_samples(SPEC, given)[1] == ()


WRONG = [  # column, index, value, code, what is said of row 2
    ("observation", (2, 1), np.nan, ERR_VALUE, "observation[1] is nan; expected finite numbers, 1 of 2 are not"),
    ("observation", (2, 0), -np.inf, ERR_VALUE, "observation[0] is -inf; expected finite numbers, 1 of 2 are not"),
    ("mask", (2, slice(None)), 0, ERR_MASK, "the mask allows no action"),
    ("mask", (2, 1), 0b110, ERR_MASK, "the mask has bits beyond the last of 10 actions"),
    ("outcome", 2, 1.5, ERR_VALUE, "outcome 1.5; expected -1 to 1"),
    ("outcome", 2, np.nan, ERR_VALUE, "outcome nan; expected -1 to 1"),
    ("policy_version", 2, -1, ERR_VALUE, "policy_version -1; expected 0 or more"),
    ("target_action", 4, 10, ERR_VALUE, "target_action 10 is not legal by the mask of its row"),
    ("target_action", 5, -1, ERR_VALUE, "target_action -1 is not legal by the mask of its row"),
    ("target_action", 4, 3, ERR_VALUE, "target_action 3 is not legal by the mask of its row"),
    ("target_action", 4, 9, ERR_VALUE, "target_action holds an action twice"),
    ("target_probability", 4, -0.25, ERR_VALUE, "target_probability -0.25; expected 0 to 1"),
    ("target_probability", 4, np.nan, ERR_VALUE, "target_probability nan; expected 0 to 1"),
    ("target_probability", 4, np.inf, ERR_VALUE, "target_probability inf; expected 0 to 1"),
    ("target_probability", 4, 0.5, ERR_VALUE, "target_probability adds up to 1.2500; expected 1"),
]


@pytest.mark.parametrize(("name", "index", "value", "code", "text"), WRONG)
def test_a_bad_row_is_refused_and_the_others_are_kept(name, index, value, code, text) -> None:
    given = columns()
    given[name][index] = value
    kept, errors = unpack_samples(SPEC, given)
    assert errors == (RowErrors(code, f"row 2: {text}", (2,)),)
    fresh, rows = columns(), [0, 1, 3]
    for column in ("observation", "mask", "target_count", "outcome", "policy_version"):
        assert np.array_equal(kept[column], fresh[column][rows])
    for column in ("target_action", "target_probability"):
        assert np.array_equal(kept[column], fresh[column].reshape(4, 2)[rows].reshape(-1))
    assert unpack_samples(SPEC, kept) == (kept, ())


def test_a_row_has_one_error_and_rows_with_the_same_fault_share_it() -> None:
    given = columns()
    given["outcome"][:2] = 7.0
    given["observation"][0] = np.nan
    given["policy_version"][3] = -5
    kept, errors = unpack_samples(SPEC, given)
    assert [(error.code, error.rows) for error in errors] == [(ERR_VALUE, (0,)), (ERR_VALUE, (1,)), (ERR_VALUE, (3,))]
    assert [error.message.partition(" ")[2].partition(":")[0] for error in errors] == ["0", "1", "3"]
    assert len(kept["outcome"]) == 1
    given["outcome"][:] = np.nan
    given["observation"][:] = 0
    _, (error,) = unpack_samples(SPEC, given)
    assert error.rows == (0, 1, 2, 3)


@pytest.mark.parametrize(
    ("change", "code", "words"),
    [
        ({"target_count": np.array([2, 2, 2, 3], np.int32)}, ERR_SHAPE, "adds up to 9 .* the 8 entries"),
        ({"target_count": np.array([2, 2, 5, -1], np.int32)}, ERR_SHAPE, "with a least of -1"),
        ({"target_count": np.full(4, 2)}, ERR_SHAPE, "expected int32"),
        ({"target_probability": np.ones(7, np.float32)}, ERR_SHAPE, r"expected float32 \[8\], got float32 \[7\]"),
        ({"mask": np.ones((4, 10), np.uint8)}, ERR_SHAPE, r"expected uint8 \[4, 2\]"),
        ({"observation": np.ones((4, 3), np.float32)}, ERR_SHAPE, r"expected float32 \[4, 2\]"),
        ({"keys": np.zeros(3)}, ERR_SHAPE, "'keys' is not of this message"),
        ({"outcome": np.zeros(MAX_ROWS + 1, np.float32)}, ERR_LIMIT, "4097 rows in one SAMPLES; at most 4096"),
    ],
)
def test_a_message_that_is_wrong_as_a_whole_raises(change, code, words) -> None:
    with pytest.raises(ProtocolError, match=words) as error:
        unpack_samples(SPEC, columns() | change)
    assert error.value.code == code


def test_a_missing_tensor_is_named() -> None:
    given = columns()
    del given["policy_version"]
    with pytest.raises(ProtocolError, match="'policy_version' is missing"):
        unpack_samples(SPEC, given)


def test_an_ending_is_required_where_the_game_tells_it_and_refused_where_it_does_not() -> None:
    told = GameSpec("test", observation_size=2, num_actions=10, ending_numbers=3)
    given = columns() | {"ending": np.arange(12, dtype=np.uint8).reshape(4, 3)}
    assert unpack_samples(told, given)[0]["ending"] is given["ending"]
    given["outcome"][1] = 3
    assert unpack_samples(told, given)[0]["ending"].tolist() == [[0, 1, 2], [6, 7, 8], [9, 10, 11]]
    for spec, wrong, words in (
        (told, columns(), "ending"),
        (told, columns() | {"ending": np.zeros((4, 2), np.uint8)}, "ending"),
        (SPEC, given, "tensor 'ending' is not of this message"),
    ):
        with pytest.raises(ProtocolError, match=words) as error:
            unpack_samples(spec, wrong)
        assert error.value.code == ERR_SHAPE
