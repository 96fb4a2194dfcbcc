"""Random numbers of the compiled loops: SplitMix64 (Steele, Lea, Flood 2014), its state in an array of one number."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from simul.common.runtime.compiled import compiled

Draws = NDArray[np.uint64]
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_M1, _M2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_S27, _S30, _S31, _S32 = (np.uint64(n) for n in (27, 30, 31, 32))
_WORD = (1 << 64) - 1


def draws_of(seed: int, stream: int) -> Draws:
    """State [1] of a sequence of its own for each (seed, stream)."""
    state = np.array([seed & _WORD], np.uint64)
    first = int(_next_word(state))
    state[0] = (first + stream * int(_GOLDEN)) & _WORD
    state[0] = _next_word(state)
    return state


@compiled()
def _next_word(state: Draws) -> np.uint64:
    state[0] += _GOLDEN
    word = state[0]
    word = (word ^ (word >> _S30)) * _M1
    word = (word ^ (word >> _S27)) * _M2
    return word ^ (word >> _S31)


@compiled()
def draw_below(state: Draws, limit: int) -> int:
    """0 ... limit - 1, uniform up to limit / 2**32."""
    return int(((_next_word(state) >> _S32) * np.uint64(limit)) >> _S32)


@compiled()
def shuffle_front(state: Draws, cards: NDArray[np.int8], count: int, size: int) -> None:
    """Make the first `count` of `cards[:size]` a uniform sample in uniform order."""
    for place in range(min(count, size - 1)):
        other = place + draw_below(state, size - place)
        cards[place], cards[other] = cards[other], cards[place]
