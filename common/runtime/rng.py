"""Counter-based random draws: the same (seed, session, step, attempt, action) always gives the same number.

A game's draws therefore do not depend on arrival order or on what else was in the batch. This is the definition, in
numpy; what runs for every decision is compiled (`simul.inference_server.engine.sampling`); a test holds the two
together.
The mixer is SplitMix64's finaliser (Steele, Lea, Flood 2014, "Fast splittable pseudorandom number generators").
"""

from __future__ import annotations

import functools
import hashlib

import numpy as np
from numpy.typing import NDArray

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_S30, _S27, _S31, _S41 = (np.uint64(n) for n in (30, 27, 31, 41))
_M1, _M2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


def session_key(seed: int, client: str, env: int, seat: int, episode: int) -> int:
    """64-bit key of a session, from names that do not depend on when or where it runs."""
    text = f"{seed}/{client}/{env}/{seat}/{episode}".encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")


def _mix(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """SplitMix64's finaliser, in place."""
    shifted = x >> _S30
    x ^= shifted
    x *= _M1
    x ^= np.right_shift(x, _S27, out=shifted)
    x *= _M2
    x ^= np.right_shift(x, _S31, out=shifted)
    return x


@functools.cache
def _offsets(num_actions: int) -> NDArray[np.uint64]:
    return _GOLDEN * np.arange(1, num_actions + 1, dtype=np.uint64)


def uniform(
    keys: NDArray[np.uint64], steps: NDArray[np.uint64], attempts: NDArray[np.uint64], num_actions: int
) -> NDArray[np.float32]:
    """Uniform draws in the open interval (0, 1).

    Args:
        keys: uint64 [B], session keys.
        steps: uint64 [B], step numbers.
        attempts: uint64 [B], attempt numbers.
        num_actions: A.

    Returns:
        float32 [B, A].
    """
    rows = _mix(_mix(keys + _GOLDEN * (steps + np.uint64(1))) + attempts)  # (B,)
    bits = _mix(rows[:, None] + _offsets(num_actions))  # (B, A)
    bits >>= _S41  # 23 bits: float32 holds (bits + 0.5) exactly
    draws = bits.astype(np.float32)
    draws += np.float32(0.5)
    draws *= np.float32(2.0**-23)
    return draws


def gumbel(
    keys: NDArray[np.uint64], steps: NDArray[np.uint64], attempts: NDArray[np.uint64], num_actions: int
) -> NDArray[np.float32]:
    """Standard Gumbel noise, float32 [B, A]: argmax(logits + noise) is a draw from softmax(logits)."""
    noise = uniform(keys, steps, attempts, num_actions)
    for _ in range(2):
        np.negative(np.log(noise, out=noise), out=noise)
    return noise
