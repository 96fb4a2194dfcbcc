"""Which slot a client's seat has: a dense array for small numbers, a dict for all others. Pure."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from simul.inference_server.engine.numba_helpers import INT64, column, compiled, read

NOBODY = -1  # as an index: the table's last slot, which is free for ever
MOST_CELLS = 65_536  # of the dense array; a client that numbers its envs from 10**9 costs no more than its sessions


class SeatMap:
    """(env, seat) -> slot of one client's live sessions; NOBODY where there is none."""

    def __init__(self) -> None:
        self._dense = np.full((1, 1), NOBODY)
        self._others: dict[tuple[int, int], int] = {}
        self._used: set[int] = set()

    def __len__(self) -> int:
        return len(self._used)

    @property
    def slots(self) -> list[int]:
        """Slots of every live session, lowest first."""
        return sorted(self._used)

    def get(self, env: int, seat: int) -> int:
        """The slot of one seat."""
        envs, seats = self._dense.shape
        if 0 <= env < envs and 0 <= seat < seats:
            return int(self._dense[env, seat])
        return self._others.get((env, seat), NOBODY)

    def guess(self, keys: NDArray[np.int64]) -> NDArray[np.int64]:
        """Slots int64 [N] for rows of `keys` int64 [N, 5] (env, seat, ...).

        A guess: where env or seat lie outside the dense array it may be another seat's slot, so that the caller must
        compare. Rows of the same seat always get the same guess.
        """
        slots = np.empty(len(keys), np.int64)
        _look_up(keys, self._dense, slots)
        if self._others:
            for i, key in enumerate(map(tuple, keys[:, :2].tolist())):
                slots[i] = self._others.get(key, slots[i])
        return slots

    def put(self, env: int, seat: int, slot: int) -> None:
        """A session has begun on a seat that had none."""
        self._used.add(slot)
        if self._reach(env, seat):
            self._dense[env, seat] = slot
        else:
            self._others[env, seat] = slot

    def remove(self, env: int, seat: int) -> None:
        """A seat's session is over."""
        self._used.discard(self.get(env, seat))
        if (env, seat) in self._others:
            del self._others[env, seat]
        else:
            self._dense[env, seat] = NOBODY

    def clear(self) -> None:
        """Every seat's session is over."""
        self._dense.fill(NOBODY)
        self._others.clear()
        self._used.clear()

    def _reach(self, env: int, seat: int) -> bool:
        """Grow the dense array, where that is cheap, so that it has a cell for the seat."""
        envs, seats = self._dense.shape
        if 0 <= env < envs and 0 <= seat < seats:
            return True
        shape = (_power_of_two(max(envs, env + 1)), _power_of_two(max(seats, seat + 1)))
        if env < 0 or seat < 0 or shape[0] * shape[1] > MOST_CELLS:
            return False
        grown = np.full(shape, NOBODY)
        grown[:envs, :seats] = self._dense
        self._dense = grown
        for key in [key for key in self._others if 0 <= key[0] < shape[0] and 0 <= key[1] < shape[1]]:
            self._dense[key] = self._others.pop(key)
        return True


@compiled(read(INT64, 2), read(INT64, 2), column(INT64))
def _look_up(keys: NDArray[np.int64], dense: NDArray[np.int64], slots: NDArray[np.int64]) -> None:
    envs, seats = dense.shape
    for i in range(len(keys)):
        slots[i] = dense[max(0, min(keys[i, 0], envs - 1)), max(0, min(keys[i, 1], seats - 1))]


def _power_of_two(n: int) -> int:
    return 1 << (n - 1).bit_length()
