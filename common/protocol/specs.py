"""The game spec: observation layout, action count, and their fingerprint."""

from __future__ import annotations

import hashlib
from typing import Literal

import msgspec
import numpy as np

WireDtype = Literal["float16", "float32"]


class Slice(msgspec.Struct, frozen=True):
    """A named run of numbers inside the flat observation.

    Attributes:
        name: unique, dotted, e.g. `own.0.moves.id`.
        start, size: position in the observation.
        kind: `number` (already scaled) or `id` (an integer that indexes an embedding table of `vocabulary` rows).
        low, high: the range every value lies in.
        meaning: one sentence of documentation.
        vocabulary: number of rows of the embedding table, 0 for numbers. Ids that mean the same thing share `table`.
        table: name of the embedding table, empty for numbers.
    """

    name: str
    start: int
    size: int
    kind: Literal["number", "id"] = "number"
    low: float = 0.0
    high: float = 1.0
    meaning: str = ""
    vocabulary: int = 0
    table: str = ""


class GameSpec(msgspec.Struct, frozen=True):
    """The contract between a game's env source, the server, the networks and the checkpoints.

    Attributes:
        name: e.g. `pokemon/gen9randombattle`.
        observation_size: D, length of the flat observation of one decision.
        num_actions: A, width of the action mask (True = legal).
        observation_dtype: dtype on the wire; float16 halves an observation's cost and is exact for ids up to 2048.
        seats: players per env.
        encoder_version: raised by hand when the meaning of a feature changes but not its place.
        layout: slices that cover the observation; empty means one anonymous run of numbers.
    """

    name: str
    observation_size: int
    num_actions: int
    observation_dtype: WireDtype = "float32"
    seats: int = 1
    encoder_version: int = 1
    layout: tuple[Slice, ...] = ()

    def fingerprint(self) -> str:
        """First 16 hex digits of SHA-256 over the canonical encoding of every field."""
        return hashlib.sha256(msgspec.msgpack.encode(self)).hexdigest()[:16]

    def dtype(self) -> np.dtype[np.floating]:
        """Numpy dtype of an observation on the wire and in unrolls."""
        return np.dtype(self.observation_dtype)

    def slice(self, name: str) -> Slice:
        """The slice called `name`. Raises KeyError."""
        for part in self.layout:
            if part.name == name:
                return part
        raise KeyError(name)
