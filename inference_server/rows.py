"""The rows of a STEP message as columns, checked for shape, and what is wrong with single rows. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from common.codec import Tensors, expect
from common.errors import ERR_LIMIT, ProtocolError
from common.finite import finite_rows
from common.messages import DECISION
from common.specs import GameSpec

MAX_ROWS = 4096
_INT64, _FLOAT32, _UINT8 = (np.dtype(name) for name in ("int64", "float32", "uint8"))


@dataclass(eq=False, slots=True)
class Rows:
    """Columns of STEP (see `common.messages.Step`), and bool [N] each:

    finite: observation and reward are finite; has_legal: the mask allows an action and is made of 0 and 1;
    plain: both, and the row is a decision.
    """

    keys: NDArray[np.int64]
    kind: NDArray[np.uint8]
    flags: NDArray[np.uint8]
    reward: NDArray[np.float32]
    policy: NDArray[np.uint8]
    temperature: NDArray[np.float32] | None  # None: 1 everywhere
    observation: NDArray[Any]
    mask: NDArray[np.uint8]
    finite: NDArray[np.bool_]
    has_legal: NDArray[np.bool_]
    plain: NDArray[np.bool_]

    def not_finite(self, row: int) -> str:
        """What of a row that is not `finite` is wrong."""
        if not np.isfinite(self.reward[row]):
            return f"the reward is {self.reward[row]}; expected a finite number"
        places = np.flatnonzero(~np.isfinite(self.observation[row]))
        first = int(places[0])
        return (
            f"observation[{first}] is {self.observation[row, first]}; expected finite numbers, "
            f"{len(places)} of {self.observation.shape[1]} are not"
        )


def unpack(spec: GameSpec, tensors: Tensors) -> Rows:
    """The columns of a STEP message.

    Raises:
        ProtocolError: ERR_LIMIT or ERR_SHAPE: the message as a whole is wrong.
    """
    keys = expect(tensors, "keys", _INT64, (None, 5))
    n = len(keys)
    if n > MAX_ROWS:
        raise ProtocolError(ERR_LIMIT, f"{n} rows in one STEP; at most {MAX_ROWS}")
    observation = expect(tensors, "observation", spec.dtype(), (n, spec.observation_size))
    mask = expect(tensors, "mask", _UINT8, (n, spec.num_actions))
    reward = expect(tensors, "reward", _FLOAT32, (n,))
    kind = expect(tensors, "kind", _UINT8, (n,))
    finite = finite_rows(observation)
    finite &= np.isfinite(reward)
    has_legal: NDArray[np.bool_] = np.maximum.reduce(mask, axis=1, initial=0) == 1
    plain = finite & has_legal
    plain &= kind == DECISION
    return Rows(
        keys=keys,
        kind=kind,
        flags=expect(tensors, "flags", _UINT8, (n,)),
        reward=reward,
        policy=expect(tensors, "policy", _UINT8, (n,)),
        temperature=expect(tensors, "temperature", "float32", (n,)) if "temperature" in tensors else None,
        observation=observation,
        mask=mask,
        finite=finite,
        has_legal=has_legal,
        plain=plain,
    )
