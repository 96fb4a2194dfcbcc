"""How a client's envs travel to mosec and to the plain loop: blocks of raw bytes, no packing and no parsing.

A request is the observations, the masks and, where the client carries it, the state; a reply is the decisions, the new
state where it is carried, and the number of rows that were served together.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.serving.policy import SPEC

Floats = NDArray[np.float32]
Buffer = bytes | bytearray | memoryview

STATE_SIZE = 512  # h and c of LSTM(256), float32
OBSERVATION_BYTES = 4 * SPEC.observation_size
MASK_BYTES = SPEC.num_actions
STATE_BYTES = 4 * STATE_SIZE
DECISION_BYTES = 4 * 3
BATCH_BYTES = 4


@dataclass(frozen=True)
class Request:
    """observation: float32 [E, 2160]; mask: uint8 [E, 26]; state: float32 [E, 512]. The arrays borrow the bytes."""

    observation: Floats
    mask: NDArray[np.uint8]
    state: Floats


def request_blocks(request: Request) -> list[memoryview]:
    """The bytes of a request, in order, not copied."""
    return [np.ascontiguousarray(a).data.cast("B") for a in (request.observation, request.state, request.mask)]


def read_request(data: Buffer) -> Request:
    """Raises ValueError unless `data` holds a whole number of rows."""
    rows, rest = divmod(len(data), OBSERVATION_BYTES + MASK_BYTES + STATE_BYTES)
    if rest or not rows:
        raise ValueError(f"A request of {len(data)} bytes is no whole number of rows.")
    states, masks = rows * OBSERVATION_BYTES, rows * (OBSERVATION_BYTES + STATE_BYTES)
    return Request(
        np.frombuffer(data, np.float32, rows * SPEC.observation_size).reshape(rows, -1),
        np.frombuffer(data, np.uint8, offset=masks).reshape(rows, -1),
        np.frombuffer(data, np.float32, rows * STATE_SIZE, offset=states).reshape(rows, -1),
    )


def reply_bytes(decisions: Floats, state: Floats, batch: int) -> bytes:
    """decisions: float32 [3, E]; state: float32 [E, 512]; batch: rows served together."""
    blocks = (np.ascontiguousarray(decisions).data, np.ascontiguousarray(state).data, np.int32(batch).tobytes())
    return b"".join(blocks)


def read_reply(data: Buffer, rows: int) -> tuple[Floats, Floats, int]:
    """(decisions [3, E], state [E, 512], rows served together). Raises ValueError where the length is wrong."""
    wanted = rows * (DECISION_BYTES + STATE_BYTES) + BATCH_BYTES
    if len(data) != wanted:
        raise ValueError(f"A reply of {len(data)} bytes for {rows} rows; expected {wanted}.")
    decisions = np.frombuffer(data, np.float32, 3 * rows).reshape(3, rows)
    state = np.frombuffer(data, np.float32, rows * STATE_SIZE, offset=rows * DECISION_BYTES).reshape(rows, -1)
    return decisions, state, int.from_bytes(data[-BATCH_BYTES:], "little")
