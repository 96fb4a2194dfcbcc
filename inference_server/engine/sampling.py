"""Masked sampling by Gumbel-max: argmax(logits + noise) over legal actions is a draw from their softmax."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from simul.common.runtime.compiled import (
    BOOL,
    FLOAT32,
    INT32,
    INT64,
    UINT8,
    UINT64,
    column,
    compiled,
    read,
    trailing_zeros,
)

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_S27, _S30, _S31, _S41 = (np.uint64(n) for n in (27, 30, 31, 41))
_M1, _M2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_ONE, _HALF, _SCALE = np.uint64(1), np.float32(0.5), np.float32(2.0**-23)
Sampler = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]
ILLEGAL = torch.finfo(torch.float32).min


@compiled(UINT64)
def _mix(x: np.uint64) -> np.uint64:
    x ^= x >> _S30
    x *= _M1
    x ^= x >> _S27
    x *= _M2
    return x ^ (x >> _S31)


@compiled(read(BOOL, 2), INT64, column(INT64))
def _list_legal(legal: NDArray[np.bool_], row: int, ids: NDArray[np.int64]) -> int:
    """Write the legal actions of a row into `ids` int64 [A]; how many they are.

    Without a branch, which a processor guesses wrong for half of the actions.
    """
    count = 0
    for action in range(legal.shape[1]):
        ids[count] = action
        count += legal[row, action]
    return count


@compiled(read(INT64), read(UINT64), read(INT64, 2), read(INT64), read(BOOL), read(BOOL, 2), column(FLOAT32, 2))
def draw_gumbel(
    slots: NDArray[np.int64],
    noise_key: NDArray[np.uint64],
    due: NDArray[np.int64],
    attempt: NDArray[np.int64],
    greedy: NDArray[np.bool_],
    legal: NDArray[np.bool_],
    noise: NDArray[np.float32],
) -> None:
    """Write standard Gumbel noise for the legal actions of steps that wait, zeros where they are greedy.

    slots: int64 [B]; noise_key, due, attempt, greedy: columns of `simul.inference_server.sessions.table.SessionTable`;
    legal: bool [B or more, A]; noise: float32 [B or more, A], its first B rows are written.
    """
    ids = np.empty(noise.shape[1], np.int64)
    for row in range(len(slots)):
        slot = slots[row]
        if greedy[slot]:
            noise[row] = 0.0
            continue
        step = np.uint64(due[slot, 3])  # the step that is due after the one that waits
        key = _mix(_mix(noise_key[slot] + _GOLDEN * step) + np.uint64(attempt[slot]))
        for action in ids[: _list_legal(legal, row, ids)]:
            bits = _mix(key + _GOLDEN * (np.uint64(action) + _ONE)) >> _S41  # 23: float32 holds (bits + 0.5) exactly
            draw = (np.float32(bits) + _HALF) * _SCALE
            noise[row, action] = -math.log(-math.log(draw))


def sample(logits: Tensor, mask: Tensor, noise: Tensor, temperature: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Choose an action for every row.

    Args:
        logits: float32 [B, A].
        mask: bool [B, A], True = legal; at least one in every row.
        noise: float32 [B, A], standard Gumbel, or zeros for the most probable action.
        temperature: float32 [B], the logits are divided by it; None: 1 everywhere.

    Returns:
        action: int64 [B]; log_prob: float32 [B] of the masked distribution at that temperature.
    """
    if temperature is not None:
        logits = logits / temperature[:, None]  # to the last bit the same where it is 1
    legal = torch.where(mask, logits, ILLEGAL)
    log_probs = torch.log_softmax(legal, dim=-1)  # (B, A)
    action = torch.where(mask, logits + noise, ILLEGAL).argmax(dim=-1)  # (B,)
    return action, log_probs.gather(-1, action[:, None]).squeeze(-1)


def sample_on_host(
    logits: NDArray[np.float32],
    legal: NDArray[np.bool_],
    noise: NDArray[np.float32],
    temperature: NDArray[np.float32],
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """`sample`, compiled, for a CPU. Arrays as there; action: int32 [B].

    Where logits are not finite, neither is the log_prob.
    """
    action, log_prob = np.empty(len(logits), np.int32), np.empty(len(logits), np.float32)
    _sample_rows(logits, legal, noise, temperature, action, log_prob)
    return action, log_prob


@compiled(
    read(FLOAT32, 2), read(BOOL, 2), read(FLOAT32, 2), read(FLOAT32), column(INT32), column(FLOAT32)
)  # fmt: skip
def _sample_rows(
    logits: NDArray[np.float32],
    legal: NDArray[np.bool_],
    noise: NDArray[np.float32],
    temperature: NDArray[np.float32],
    action: NDArray[np.int32],
    log_prob: NDArray[np.float32],
) -> None:
    ids = np.empty(logits.shape[1], np.int64)
    for row in range(len(logits)):
        legal_ids = ids[: _list_legal(legal, row, ids)]
        highest = best = np.float32(-np.inf)
        chosen_logit = total = np.float32(0.0)
        index = 0
        for a in legal_ids:
            logit = logits[row, a] / temperature[row]
            highest = max(highest, logit)
            if logit + noise[row, a] > best:
                best, index, chosen_logit = logit + noise[row, a], a, logit
        for a in legal_ids:
            total += math.exp(logits[row, a] / temperature[row] - highest)
        action[row] = index
        log_prob[row] = chosen_logit - highest - math.log(total)


@compiled(read(FLOAT32), read(FLOAT32))
def all_finite(log_prob: NDArray[np.float32], value: NDArray[np.float32]) -> bool:
    """No NaN and no infinity in either, float32 [B] each."""
    total = np.float32(0.0)
    for row in range(len(log_prob)):
        total += (log_prob[row] - log_prob[row]) + (value[row] - value[row])  # 0, or NaN
    return total == 0.0


def which_finite(log_prob: NDArray[np.float32], value: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Rows without NaN and infinity in either, bool [B]; float32 [B] each."""
    found: NDArray[np.bool_] = np.isfinite(log_prob) & np.isfinite(value)
    return found


def sample_packed(logits: Tensor, value: Tensor, mask: Tensor, noise: Tensor, temperature: Tensor) -> Tensor:
    """`sample`, its results and `value` [B] as float32 [3, B]: one copy to the host."""
    action, log_prob = sample(logits.float(), mask, noise, temperature)
    return torch.stack((action.to(torch.float32), log_prob, value.float()))


@torch.inference_mode()
def recorded_sampler(num_actions: int, device: torch.device) -> Sampler:
    """`sample_packed` without Python between its operations."""
    logits = torch.zeros(2, num_actions, device=device)
    example = (logits, logits[:, 0], logits == 0, logits, logits[:, 0] + 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # recording tells that it will be removed one day
        recorded: Sampler = torch.jit.trace(sample_packed, example, check_trace=False)
    return recorded


def legal_priors(logits: Tensor, mask: Tensor, places: Tensor) -> Tensor:
    """float32 [K]: probabilities over the legal actions. Arguments as for `sample`; `places`: int64 [K], in [B * A]."""
    return torch.softmax(torch.where(mask, logits, ILLEGAL), dim=-1).take(places)


@compiled(read(FLOAT32, 2), read(INT64), column(FLOAT32))
def _write_priors(logits: NDArray[np.float32], counts: NDArray[np.int64], priors: NDArray[np.float32]) -> None:
    """Softmax of the first `counts[row]` logits of each row, row behind row: a row's sum has its own order."""
    at = 0
    for row in range(len(counts)):
        count = counts[row]
        highest = logits[row, 0]
        for m in range(count):
            highest = max(highest, logits[row, m])
        total = 0.0
        for m in range(count):
            priors[at + m] = math.exp(logits[row, m] - highest)
            total += priors[at + m]
        for m in range(count):
            priors[at + m] /= total
        at += count


@compiled(read(UINT8, 2), column(UINT8, 2), column(INT64, 2))
def list_packed(bits: NDArray[np.uint8], mask: NDArray[np.uint8], ids: NDArray[np.int64]) -> None:
    """Unpack masks, and write the legal actions of each row, ascending, to its first places in `ids`.

    bits: uint8 [B, ceil(A / 8)]; mask: uint8 [B or more, A], its first B rows are written; ids: int64 [B or more, M],
    M at least the most legal actions of a row.
    """
    for row in range(len(bits)):
        mask[row] = 0
        found = 0
        for byte in range(bits.shape[1]):
            rest = np.int64(bits[row, byte])
            while rest:
                action = 8 * byte + trailing_zeros(rest)
                if action < mask.shape[1] and found < ids.shape[1]:
                    mask[row, action] = 1
                    ids[row, found] = action
                    found += 1
                rest &= rest - 1


def listed_priors(logits: NDArray[np.float32], counts: NDArray[np.int64]) -> NDArray[np.float32]:
    """float32 [K]: probabilities over the legal actions, row behind row.

    logits: float32 [B, M], of a row's legal actions in its first places; counts: int64 [B], how many, at least one.
    """
    priors = np.empty(int(counts.sum()), np.float32)
    _write_priors(logits, counts, priors)
    return priors
