"""What an env observes against the space that it declares."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces

from simul.common.errors import EnvError


def check_observation(space: spaces.Space, observation: Any, name: str) -> None:
    """Flattening hides a wrong shape (a transposed image has as many numbers) and loses fractions. Raises EnvError."""
    if isinstance(space, spaces.Dict):
        for key, part in space.spaces.items():
            if key not in observation:
                raise EnvError(f"{name} lacks {key!r}, which its space declares")
            check_observation(part, observation[key], f"{name}[{key!r}]")
    elif isinstance(space, spaces.Tuple):
        if len(observation) != len(space.spaces):
            raise EnvError(f"{name} has {len(observation)} parts; its space declares {len(space.spaces)}")
        for i, part in enumerate(space.spaces):
            check_observation(part, observation[i], f"{name}[{i}]")
    elif isinstance(space, spaces.Sequence):
        for i, part in enumerate(observation):
            check_observation(space.feature_space, part, f"{name}[{i}]")
    elif isinstance(space, spaces.Box | spaces.MultiBinary | spaces.MultiDiscrete):
        found = np.shape(observation)
        if found != space.shape:
            raise EnvError(f"{name} has shape {list(found)}; its space declares {list(space.shape)}")
    if isinstance(space, spaces.Discrete | spaces.MultiDiscrete):
        whole = np.asarray(observation)
        if whole.dtype.kind not in "iub":
            raise EnvError(f"{name} has dtype {whole.dtype}; its space {space} declares whole numbers ({space.dtype})")
        if ((whole < space.start) | (whole >= space.start + _options(space))).any():
            raise EnvError(f"{name} is {whole.tolist()}, which its space {space} does not contain")


def _options(space: spaces.Discrete | spaces.MultiDiscrete) -> Any:
    return space.n if isinstance(space, spaces.Discrete) else space.nvec


def check_bytes(space: spaces.Space, observation: Any) -> None:
    """An image of another dtype must consist of bytes. Raises EnvError."""
    while isinstance(space, spaces.Tuple):
        space, observation = space.spaces[0], observation[0]
    found = np.asarray(observation)
    if found.dtype == np.uint8:
        return
    with np.errstate(invalid="ignore"):
        same = found.astype(np.uint8) == found
    if not same.all():
        raise EnvError(
            f"an image has dtype {found.dtype} and values that are not whole numbers from 0 to 255; "
            "its space declares uint8"
        )
