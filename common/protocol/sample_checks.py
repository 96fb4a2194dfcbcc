"""The rows of SAMPLES as columns: which of them can be learned from, and what is wrong with the others. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simul.common.errors import ERR_LIMIT, ERR_MASK, ERR_SHAPE, ERR_VALUE, ProtocolError
from simul.common.protocol.codec import Tensors, expect, expect_only
from simul.common.protocol.masks import packed_width
from simul.common.protocol.messages import SAMPLES_TENSORS, RowErrors
from simul.common.protocol.specs import GameSpec
from simul.common.runtime.finite import describe_not_finite, finite_rows

MAX_ROWS = 4096
SUM_TOLERANCE = 1e-3  # of a policy target
PER_ENTRY = "target_action", "target_probability"
Fault = tuple[str, NDArray[np.bool_], Callable[[int], str]]  # error code, bool [N] its rows, what is wrong with one


def unpack_samples(spec: GameSpec, tensors: Tensors) -> tuple[dict[str, NDArray[Any]], tuple[RowErrors, ...]]:
    """The rows of a SAMPLES message that can be learned from, and the errors of the others; each row has one.

    Raises:
        ProtocolError: ERR_LIMIT or ERR_SHAPE: the message as a whole is wrong.
    """
    columns = _columns(spec, tensors)
    counts = columns["target_count"]
    rows = np.repeat(np.arange(len(counts)), counts)  # [K], the row of each entry
    good, errors = np.ones(len(counts), np.bool_), []
    for code, faulty, describe in _faults(spec, columns, rows):
        if places := np.flatnonzero(faulty & good).tolist():
            errors.append(RowErrors(code, f"row {places[0]}: {describe(places[0])}", tuple(places)))
            good &= ~faulty
    if good.all():
        return columns, ()
    return keep_rows(columns, good), tuple(errors)


def keep_rows(columns: Mapping[str, NDArray[Any]], keep: NDArray[np.bool_]) -> dict[str, NDArray[Any]]:
    """The columns of SAMPLES without the rows where `keep`, bool [N], is False."""
    of_entry = np.repeat(keep, columns["target_count"])
    return {name: column[of_entry if name in PER_ENTRY else keep] for name, column in columns.items()}


def _columns(spec: GameSpec, tensors: Tensors) -> dict[str, NDArray[Any]]:
    ending = sum(spec.ending_sizes)
    expect_only(tensors, SAMPLES_TENSORS if ending else SAMPLES_TENSORS - {"ending"})
    outcome = expect(tensors, "outcome", "float32", (None,))
    n = len(outcome)
    if n > MAX_ROWS:
        raise ProtocolError(ERR_LIMIT, f"{n} rows in one SAMPLES; at most {MAX_ROWS}")
    counts = expect(tensors, "target_count", "int32", (n,))
    actions = expect(tensors, "target_action", "int32", (None,))
    if (counts < 0).any() or counts.sum(dtype=np.int64) != len(actions):
        raise ProtocolError(
            ERR_SHAPE,
            f"target_count adds up to {counts.sum(dtype=np.int64)} with a least of {counts.min(initial=0)}; expected "
            f"numbers from 0 up that add up to the {len(actions)} entries of target_action",
        )
    return {
        "observation": expect(tensors, "observation", spec.dtype(), (n, spec.observation_size)),
        "mask": expect(tensors, "mask", "uint8", (n, packed_width(spec.num_actions))),
        "target_count": counts,
        "target_action": actions,
        "target_probability": expect(tensors, "target_probability", "float32", (len(actions),)),
        "outcome": outcome,
        "policy_version": expect(tensors, "policy_version", "int64", (n,)),
        **({"ending": expect(tensors, "ending", "uint8", (n, ending))} if ending else {}),
    }


def _faults(spec: GameSpec, columns: dict[str, NDArray[Any]], rows: NDArray[np.intp]) -> Iterator[Fault]:
    """What can be wrong with a row, the observation first. `rows`: int [K], the row of each entry of a target."""
    observation, mask, outcome, version = (
        columns[name] for name in ("observation", "mask", "outcome", "policy_version")
    )
    actions, probability, count = (columns[name] for name in (*PER_ENTRY, "target_count"))
    n, num_actions = len(outcome), spec.num_actions
    yield ERR_VALUE, ~finite_rows(observation), lambda row: describe_not_finite(observation[row])
    has_legal: NDArray[np.bool_] = mask.max(axis=1) > 0
    yield ERR_MASK, ~has_legal, lambda _: "the mask allows no action"
    beyond: NDArray[np.bool_] = mask[:, -1] > 0xFF >> -num_actions % 8
    yield ERR_MASK, beyond, lambda _: f"the mask has bits beyond the last of {num_actions} actions"
    outside: NDArray[np.bool_] = ~(np.abs(outcome) <= 1)  # NaN included
    yield ERR_VALUE, outside, lambda row: f"outcome {outcome[row]:g}; expected -1 to 1"
    too_low: NDArray[np.bool_] = version < 0
    yield ERR_VALUE, too_low, lambda row: f"policy_version {version[row]}; expected 0 or more"
    unknown = (actions < 0) | (actions >= num_actions)
    ids = np.where(unknown, 0, actions)
    illegal = unknown | (mask[rows, ids >> 3] >> (ids & 7) & 1 == 0)
    yield (
        ERR_VALUE,
        _rows_of(rows[illegal], n),
        lambda row: f"target_action {actions[(rows == row) & illegal][0]} is not legal by the mask of its row",
    )
    keys = np.sort(rows * num_actions + ids)
    twice = _rows_of(keys[1:][keys[1:] == keys[:-1]] // num_actions, n)
    yield ERR_VALUE, twice, lambda _: "target_action holds an action twice"
    bad = ~(np.isfinite(probability) & (probability >= 0))
    yield (
        ERR_VALUE,
        _rows_of(rows[bad], n),
        lambda row: f"target_probability {probability[(rows == row) & bad][0]:g}; expected 0 to 1",
    )
    sums = np.bincount(rows, np.where(bad, 0, probability), minlength=n)
    uneven: NDArray[np.bool_] = (count > 0) & (np.abs(sums - 1) > SUM_TOLERANCE)
    yield ERR_VALUE, uneven, lambda row: f"target_probability adds up to {sums[row]:.4f}; expected 1"


def _rows_of(rows: NDArray[np.intp], n: int) -> NDArray[np.bool_]:
    """bool [n], True for each of `rows`."""
    return np.bincount(rows, minlength=n) > 0
