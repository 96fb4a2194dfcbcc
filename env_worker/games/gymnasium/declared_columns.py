"""Observations whose parts are declared: ids as columns of their own, sequences as entities with a mask."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from simul.common.errors import ConfigError, EnvError
from simul.common.protocol.specs import EntityGroup, Slice
from simul.env_worker.games.gymnasium.consecutive_choices import component_options
from simul.env_worker.games.gymnasium.space_checks import check_observation

PRESENT = "present"
MOST_IDS = 2**24  # float32 is exact up to here
WriteColumns = Callable[[Any, NDArray[np.float32]], None]


def has_sequence(space: spaces.Space) -> bool:
    """Whether a Sequence is somewhere in the space."""
    return isinstance(space, spaces.Sequence) or any(map(has_sequence, _parts_of(space).values()))


def has_ids(space: spaces.Space) -> bool:
    """Whether a Discrete or MultiDiscrete is somewhere in the space."""
    return isinstance(space, spaces.Discrete | spaces.MultiDiscrete) or any(map(has_ids, _parts_of(space).values()))


def _parts_of(space: spaces.Space) -> dict[Any, spaces.Space]:
    """Those of a Dict or a Tuple, by what an observation is indexed with; empty for any other space."""
    if isinstance(space, spaces.Dict):
        return dict(space.spaces)
    return dict(enumerate(space.spaces)) if isinstance(space, spaces.Tuple) else {}


class DeclaredColumns(gymnasium.ObservationWrapper):
    """An env that observes float32 [D], whose columns are declared.

    Parts are named by the keys of a Dict and the numbers of a Tuple. With `ids` a Discrete is one column, an id from 0
    on, and a MultiDiscrete one for each component; each has a table of its own. A Sequence is a group of
    `max_entities` equal blocks: in each the columns of an entity, then 1 where there is one; the blocks behind the last
    entity are zero. Everything else is a slice of numbers, as Gymnasium flattens it; bytes of an image are divided by
    255.

    Attributes:
        layout, entities: of the game spec.
    """

    def __init__(self, env: gymnasium.Env, ids: bool, max_entities: int) -> None:
        """Raises ConfigError for a space that has no columns."""
        super().__init__(env)
        self._ids, self._max_entities = ids, max_entities
        self._slices: list[Slice] = []
        self._groups: list[EntityGroup] = []
        self._inside: list[range] = []  # of each group, the numbers of its slices
        self._write = self._add(env.observation_space, "", "")
        self._check_names()
        self.layout, self.entities = tuple(self._slices), tuple(self._groups)
        self.observation_space = spaces.Box(-np.inf, np.inf, (self._size,), np.float32)

    def observation(self, observation: Any) -> NDArray[np.float32]:
        """The row of an observation. Raises EnvError where the env broke its own declaration."""
        check_observation(self.env.observation_space, observation, "an observation")
        row = np.zeros(self._size, np.float32)
        self._write(observation, row)
        return row

    @property
    def _size(self) -> int:
        return self._slices[-1].start + self._slices[-1].size if self._slices else 0

    def _check_names(self) -> None:
        """Raises ConfigError where the dots in a key of a Dict give two parts one name, or one that is an entity's."""
        names = [part.name for part in self._slices]
        if twice := next((name for name, count in Counter(names).items() if count > 1), ""):
            raise ConfigError(f"Two parts of the observations are called {twice}; rename a key that has a dot")
        for group, inside in zip(self._groups, self._inside):
            for i, name in enumerate(names):
                if i not in inside and name.startswith(f"{group.name}."):
                    raise ConfigError(
                        f"{name} of the observations is called as a part of the Sequence {group.name}; rename its key"
                    )

    def _add(self, space: spaces.Space, name: str, table: str) -> WriteColumns:
        """Append the columns of a part. `table`: its name without the numbers of entities."""
        if parts := _parts_of(space):
            writes = [(key, self._add(part, _join(name, key), _join(table, key))) for key, part in parts.items()]

            def write_parts(observation: Any, row: NDArray[np.float32]) -> None:
                for key, write in writes:
                    write(observation[key], row)

            return write_parts
        name, table = name or "observation", table or "observation"
        if isinstance(space, spaces.Sequence):
            return self._add_entities(space, name)
        if self._ids and isinstance(space, spaces.Discrete | spaces.MultiDiscrete):
            return self._add_ids(space, name, table)
        return self._add_numbers(space, name)

    def _add_numbers(self, space: spaces.Space, name: str) -> WriteColumns:
        try:
            size = int(spaces.flatdim(space))
        except (ValueError, NotImplementedError) as error:
            raise ConfigError(f"{name} of the observations does not flatten to numbers: {error}") from None
        begin, scale = self._size, _scale_of(space)
        low, high = _range_of(space)
        self._slices.append(Slice(name, begin, size, low=low / scale, high=high / scale))

        def write(observation: Any, row: NDArray[np.float32]) -> None:
            flat = observation if isinstance(space, spaces.Box) else spaces.flatten(space, observation)
            row[begin : begin + size] = np.asarray(flat).reshape(-1)
            row[begin : begin + size] /= scale

        return write

    def _add_ids(self, space: spaces.Discrete | spaces.MultiDiscrete, name: str, table: str) -> WriteColumns:
        counts = component_options(space) or (int(space.n),)
        if max(counts) > MOST_IDS:
            raise ConfigError(f"{name} of the observations has {max(counts)} values; expected at most {MOST_IDS} ids")
        begin = self._size
        for i, count in enumerate(counts):
            own = f".{i}" if isinstance(space, spaces.MultiDiscrete) else ""
            self._slices.append(
                Slice(name + own, begin + i, 1, "id", high=count - 1.0, vocabulary=count, table=table + own)
            )
        first = np.asarray(space.start).reshape(-1)

        def write(observation: Any, row: NDArray[np.float32]) -> None:
            row[begin : begin + len(counts)] = np.asarray(observation).reshape(-1) - first

        return write

    def _add_entities(self, space: spaces.Sequence, name: str) -> WriteColumns:
        one, limit = space.feature_space, self._max_entities
        if not limit:
            raise ConfigError(
                f"{name} of the observations is a Sequence, which has no greatest length. Set gymnasium.max_entities "
                "to the most entities that it may have."
            )
        if has_sequence(one) or (space.stack and not isinstance(one, spaces.Box)):
            raise ConfigError(
                f"{name} of the observations is {space}; expected a Sequence of a Box, a Discrete or a Dict of these, "
                "with stack=False"
            )
        if PRESENT in _parts_of(one):
            raise ConfigError(f"An entity of {name} has a part {PRESENT!r}, which Simul adds itself; rename it")
        field = "" if _parts_of(one) else ".value"
        blocks: list[tuple[WriteColumns, int]] = []
        first = len(self._slices)
        for i in range(limit):
            begin = self._size
            write = self._add(one, f"{name}.{i}{field}", name + field)
            if self._size == begin:
                raise ConfigError(f"An entity of {name} is {one}, which has no numbers; leave the Sequence out")
            blocks.append((write, self._size))
            self._slices.append(Slice(f"{name}.{i}.{PRESENT}", self._size, 1))
        self._groups.append(EntityGroup(name, limit, PRESENT))
        self._inside.append(range(first, len(self._slices)))

        def write_entities(observation: Any, row: NDArray[np.float32]) -> None:
            if len(observation) > limit:
                raise EnvError(f"{name} has {len(observation)} entities; gymnasium.max_entities allows {limit}")
            for entity, (write, present) in zip(observation, blocks):
                write(entity, row)
                row[present] = 1.0

        return write_entities


def _join(name: str, key: Any) -> str:
    return f"{name}.{key}" if name else str(key)


def _scale_of(space: spaces.Space) -> float:
    """What numbers are divided by: 255 for bytes with two axes or more, an image; else 1."""
    image = isinstance(space, spaces.Box) and space.dtype == np.uint8 and len(space.shape) > 1
    return 255.0 if image else 1.0


def _range_of(space: spaces.Space) -> tuple[float, float]:
    """A Box's bounds, and 0, which stands for absent entities; without bounds -1 to 1, for rows of load tests."""
    if not isinstance(space, spaces.Box):
        return 0.0, 1.0
    if not (np.isfinite(space.low).all() and np.isfinite(space.high).all()):
        return -1.0, 1.0
    return min(0.0, float(space.low.min())), max(0.0, float(space.high.max()))
