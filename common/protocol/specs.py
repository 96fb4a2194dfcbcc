"""The game spec: observation layout, action count, and their fingerprint."""

from __future__ import annotations

import hashlib
from typing import Any, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

WireDtype = Literal["float16", "float32", "uint8"]
ASKED = "?"  # in HELLO, a fingerprint that asks for the server's own
# Fields added later: in the fingerprint only where they are used.
_LATER = (
    "observation_shape", "observation_axes", "action_planes", "action_cells", "opponent_labels", "opponent_classes",
    "entities", "ending_planes", "ending_numbers",
)  # fmt: skip
MOST_CLASSES = 32767  # a label is an int16


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


class EntityGroup(msgspec.Struct, frozen=True):
    """Entities of one kind, such as the units of one side: equal blocks of the layout, evenly spaced.

    Attributes:
        name: the slices of entity i are called `NAME.i.*`, from `NAME.0.*` on.
        count: how many blocks there are, at least 1.
        present: field, `NAME.i.PRESENT`, that is 1 where the block holds an entity, 0 where it is padding; empty: all
            blocks hold one.
    """

    name: str
    count: int
    present: str = ""


class GameSpec(msgspec.Struct, frozen=True):
    """The contract between a game's env source, the server, the networks and the checkpoints.

    Attributes:
        name: e.g. `pokemon/gen9randombattle`.
        observation_size: D, length of the flat observation of one decision.
        num_actions: A, width of the action mask (True = legal).
        observation_dtype: dtype on the wire, in shared memory and in unrolls; float16 halves an observation's cost and
            is exact for ids up to 2048; uint8 is for images.
        seats: players per env.
        encoder_version: raised by hand when the meaning of a feature changes but not its place.
        layout: slices that cover the observation; empty means one anonymous run of numbers.
        observation_shape: shape of the image (or board) whose numbers, in row-major order, begin the observation;
            numbers behind it belong to no axis. Empty: the observation is a vector.
        observation_axes: a letter for each axis of `observation_shape`: H and W once each, C for channels, N for
            stacked frames. `HWC`, `CHW`, `HW` or `NHWC`, say. A network reads all axes but H and W as channels.
        action_planes, action_cells: for a convolutional policy head: action a is the number `action_cells[a]`, in
            row-major order, of planes [action_planes, H, W]; -1: it has no place on the board (a pass).
        opponent_labels: K, labels that a client may give each step: what the opponent did at the same time, one for
            each of its slots. They are learned from (`learner.opponent_coefficient`) and never observed. 0: none.
        opponent_classes: C, a label is one of 0 to C - 1.
        entities: groups of entities in the layout, which networks may pool or attend to.
        ending_planes, ending_numbers: what a sample of a searched game tells of its game's end, to be learned from
            (`learner.ending_coefficient`) and never observed: planes over H and W of `observation_shape`, such as who
            owns each square, and numbers, such as the margin. A byte each, 0 to 255, planes first in row-major order.
    """

    name: str
    observation_size: int
    num_actions: int
    observation_dtype: WireDtype = "float32"
    seats: int = 1
    encoder_version: int = 1
    layout: tuple[Slice, ...] = ()
    observation_shape: tuple[int, ...] = ()
    observation_axes: str = ""
    action_planes: int = 0
    action_cells: tuple[int, ...] = ()
    opponent_labels: int = 0
    opponent_classes: int = 0
    entities: tuple[EntityGroup, ...] = ()
    ending_planes: int = 0
    ending_numbers: int = 0

    def __post_init__(self) -> None:
        """Raises ValueError where labels or endings cannot be, and where entities are not in the layout."""
        if min(self.ending_planes, self.ending_numbers) < 0 or (self.ending_planes and not self.board_cells):
            raise ValueError(
                f"{self.name} declares ending_planes = {self.ending_planes} and ending_numbers = "
                f"{self.ending_numbers}; expected 0 or more, and planes only with an observation_shape that has H and W"
            )
        labels, classes = self.opponent_labels, self.opponent_classes
        if labels < 0 or (classes != 0 if not labels else not 1 <= classes <= MOST_CLASSES):
            raise ValueError(
                f"{self.name} declares opponent_labels = {labels} of opponent_classes = {classes}; expected a positive "
                f"number of 1 to {MOST_CLASSES} classes, or 0 and 0"
            )
        if len({group.name for group in self.entities}) < len(self.entities):
            raise ValueError(f"{self.name} declares a group of entities twice; expected a name of its own for each")
        for group in self.entities:
            self._check_entities(group)

    def _check_entities(self, group: EntityGroup) -> None:
        """Raises ValueError for a group whose blocks are missing, differ, or are not evenly spaced."""
        blocks = [self.block(f"{group.name}.{i}") for i in range(max(group.count, 1))]
        for i, block in enumerate(blocks):
            if group.count < 1 or not block:
                raise ValueError(
                    f"{self.name} declares {group.count} entities {group.name}, and its layout has no slices "
                    f"{group.name}.{i}.*; expected a positive count, and slices of each"
                )
            expected = blocks[0][0].start + i * (blocks[min(i, 1)][0].start - blocks[0][0].start)
            shape, first = block_shape(block, f"{group.name}.{i}"), block_shape(blocks[0], f"{group.name}.0")
            if block[0].start != expected or shape != first:
                raise ValueError(
                    f"{self.name}: the slices {group.name}.{i}.* differ from {group.name}.0.*; expected equal fields "
                    "(names, sizes, kinds, tables and vocabularies), evenly spaced"
                )
        sizes = [part.size for part in blocks[0] if part.name == f"{group.name}.0.{group.present}"]
        if group.present and sizes != [1]:
            raise ValueError(
                f"{self.name}: the entities {group.name} have no field {group.present!r} of one number, 1 where there "
                "is an entity"
            )

    def block(self, name: str) -> list[Slice]:
        """The slice called `name` and those called `NAME.*`, in the order of the observation."""
        found = [part for part in self.layout if part.name == name or part.name.startswith(name + ".")]
        return sorted(found, key=lambda part: part.start)

    @property
    def board_cells(self) -> int:
        """H times W of `observation_shape`; 0: it has none."""
        sizes = dict(zip(self.observation_axes, self.observation_shape))
        return sizes.get("H", 0) * sizes.get("W", 0)

    @property
    def ending_sizes(self) -> tuple[int, int]:
        """Bytes of `ending` that are planes, and that are numbers."""
        return self.ending_planes * self.board_cells, self.ending_numbers

    def fingerprint(self) -> str:
        """First 16 hex digits of SHA-256 over the canonical encoding of every field that is used."""
        fields = {name: getattr(self, name) for name in self.__struct_fields__}
        used = {name: value for name, value in fields.items() if value or name not in _LATER}
        return hashlib.sha256(msgspec.msgpack.encode(used)).hexdigest()[:16]

    def identity(self) -> str:
        """Fingerprint and `described`, for a sentence about specs that differ."""
        return f"{self.fingerprint()} ({self.described()})"

    def described(self) -> str:
        """Name, encoder version, and how many numbers are observed."""
        return f"{self.name}, encoder version {self.encoder_version}, {self.observation_size} numbers observed"

    def dtype(self) -> np.dtype[Any]:
        """Numpy dtype of an observation on the wire and in unrolls."""
        return np.dtype(self.observation_dtype)

    def slice(self, name: str) -> Slice:
        """The slice called `name`. Raises KeyError."""
        for part in self.layout:
            if part.name == name:
                return part
        raise KeyError(name)


def block_shape(block: list[Slice], name: str) -> list[tuple[str, int, int, str, str, int]]:
    """What two equal blocks share: names behind theirs, places inside, sizes, kinds, tables and vocabularies."""
    return [
        (part.name.removeprefix(name), part.start - block[0].start, part.size, part.kind, part.table, part.vocabulary)
        for part in block
    ]


def random_observations(spec: GameSpec, rows: int, draw: np.random.Generator) -> NDArray[Any]:
    """Wire dtype [rows, D], uniform in what each slice of the layout, else the dtype, allows; ids are whole numbers.

    Half of the entities that may be absent are.
    """
    if spec.dtype() == np.uint8:
        return draw.integers(0, 256, (rows, spec.observation_size), np.uint8)
    values = draw.random((rows, spec.observation_size), np.float32)
    for part in spec.layout:
        place = values[:, part.start : part.start + part.size]
        if part.kind == "id":
            place[:] = draw.integers(0, max(part.vocabulary, 1), place.shape)
        else:
            place *= part.high - part.low
            place += part.low
    for group in spec.entities:
        for i in range(group.count if group.present else 0):
            column = spec.slice(f"{group.name}.{i}.{group.present}").start
            values[:, column] = draw.random(rows) < 0.5
    return values.astype(spec.dtype())
