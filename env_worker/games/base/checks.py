"""What a game gives, checked before it is sent: the server would refuse the row, and not know the game."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simul.common.errors import EnvError
from simul.common.protocol.messages import NO_LABEL
from simul.common.protocol.specs import GameSpec

MOST_REWARD = float(np.finfo(np.float32).max)  # that a row can carry; sums and squares of it are finite numbers here


def check_legal(mask: NDArray[Any], game: str, seat: int) -> None:
    """Raises EnvError where a mask, 1 = legal, allows no action."""
    if b"\1" not in mask.tobytes() and not mask.any():  # the first takes 0.1 us, a twentieth of the second
        raise EnvError(no_legal_action(game, seat))


def no_legal_action(game: str, seat: int) -> str:
    """The sentence for a seat that must act and may not."""
    return f"{game}: seat {seat} must act, and no action is legal"


def check_label(label: Sequence[int], spec: GameSpec, seat: int) -> tuple[int, ...]:
    """What a game says of the opponents of `seat`, as `Decision.label`. Raises EnvError where its spec has no such."""
    checked = tuple(int(each) for each in label)
    known = all(NO_LABEL <= each < spec.opponent_classes for each in checked)
    if checked and (len(checked) != spec.opponent_labels or not known):
        raise EnvError(
            f"{spec.name}: the opponent_label of seat {seat} is {list(checked)}; expected {spec.opponent_labels} (its "
            f"spec's opponent_labels) numbers from 0 to {spec.opponent_classes - 1}, {NO_LABEL} = not known, or nothing"
        )
    return checked


def check_ending(ending: NDArray[np.uint8], spec: GameSpec, seat: int) -> NDArray[np.uint8]:
    """What a game tells of its end, as `Sample.ending`. Raises EnvError where it is not what its spec says."""
    found, size = np.asarray(ending), sum(spec.ending_sizes)
    if found.dtype != np.uint8 or found.shape != (size,):
        raise EnvError(
            f"{spec.name}: the ending for seat {seat} is {found.dtype} {list(found.shape)}; expected uint8 [{size}] "
            "(its spec's ending_planes, then its ending_numbers)"
        )
    return found


def check_reward(reward: float, game: str, seat: int, scale: float = 1.0) -> None:
    """Raises EnvError where a reward, or what is sent of it (times `scale`), is no finite number of float32."""
    if not abs(reward) * max(abs(scale), 1.0) <= MOST_REWARD:  # also NaN
        scaled = "" if scale == 1.0 else f" (times reward_scale {scale:g})"
        raise EnvError(
            f"{game}: the reward of seat {seat} is {reward:g}{scaled}; expected a finite number, at most "
            f"{MOST_REWARD:.2g} (float32)"
        )
