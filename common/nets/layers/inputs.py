"""What reads the columns that a game declares: numbers, embedded ids and images as one vector, entities as tokens.

A network of one's own uses the same layers:

    self.inputs = VectorInputs(spec)                      # everything, entities column by column
    self.inputs = PooledInputs(spec, width=32)            # entities pooled: their order does not matter
    self.inputs = AttendedInputs(spec, 64, layers=1, heads=4)
    ...
    x = self.inputs(observation)                          # [B, self.inputs.width], float32 or the dtype given
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from simul.common.errors import ConfigError, did_you_mean
from simul.common.nets.layers.attention import Transformer
from simul.common.nets.layers.choices import check_choice
from simul.common.nets.layers.conv import ImageReader, residual_tower
from simul.common.nets.layers.entities import EntityBlocks, EntityEncoder, IdReader, mean_and_max, number_columns
from simul.common.protocol.specs import EntityGroup, GameSpec, Slice

AUTO = "auto"
LARGEST_EMBEDDING = 64
PRESENT = "present"  # the mask of entities that a layout has and its spec does not declare
IMAGE_BLOCKS = 2
TableKey = tuple[str, str]  # name of a table; group of entities where it has no name


def embedding_size(rows: int) -> int:
    """Width of an embedding of so many ids: fastai's rule of thumb, 1.6 rows^0.56, at most LARGEST_EMBEDDING."""
    return min(LARGEST_EMBEDDING, max(1, round(1.6 * rows**0.56)))


def check_embedding(embedding: int | str, zero: str = "") -> None:
    """Raises ConfigError where it is neither `auto` nor a width. `zero`: what 0 is for, where that is taken, too."""
    if embedding == AUTO or (isinstance(embedding, int) and embedding >= (0 if zero else 1)):
        return
    forms = f"{zero}, auto, or" if zero else "auto, or"
    hint = did_you_mean(embedding, [AUTO])
    raise ConfigError(f"embedding: expected {forms} a width of at least 1, got {embedding!r}{hint}")


class VectorInputs(nn.Module):
    """Numbers as they are, ids embedded, an image of bytes through IMPALA's residual tower: one vector.

    Attributes:
        width: of the vector. It may be 0.
        embeddings: tables of ids. places: where in it a table is, by `table_key`.
    """

    def __init__(
        self,
        spec: GameSpec,
        embedding: int | str = AUTO,
        channels: Sequence[int] = (16, 32, 32),
        without: Iterable[EntityGroup] = (),
        sharing: Iterable[EntityGroup] = (),
    ) -> None:
        """Args:
            spec: of the game.
            embedding: width of every table of ids; `auto`: by their number, see `embedding_size`.
            channels: of the tower, see `residual_tower`; IMAGE_BLOCKS residual blocks for each.
            without: entities that something else reads.
            sharing: entities whose ids these tables embed, too, where `embedding` is a width: see `EntityInputs`.

        Raises:
            ConfigError: another `embedding`, or an image that does not fit.
        """
        super().__init__()
        check_embedding(embedding)
        bytes_observed = spec.observation_dtype == "uint8"  # a board of float32 is numbers
        self._image = ImageReader(spec) if bytes_observed else None
        begin = self.width = 0
        if self._image is not None:
            begin = spec.observation_size - self._image.rest
            self.tower = residual_tower(self._image.channels, channels, IMAGE_BLOCKS)
            height, width = self._image.height, self._image.width
            for _ in channels:
                height, width = -(-height // 2), -(-width // 2)
            self.width += (channels[-1] if channels else self._image.channels) * height * width
        taken = {part.name for group in without for i in range(group.count) for part in spec.block(f"{group.name}.{i}")}
        whole = (Slice("observation", 0, spec.observation_size),)
        parts = [_behind(part, begin) for part in spec.layout or whole if part.name not in taken]
        parts = [part for part in parts if part.size]
        self._numbers = number_columns(parts, begin)
        self.width += self._numbers.count
        tables: dict[str, list[Slice]] = {}
        for part in parts:
            if part.kind == "id":
                tables.setdefault(part.table, []).append(part)
        inside = _rows_inside(spec, sharing) if isinstance(embedding, int) else {}
        self.ids, self.embeddings = nn.ModuleList(), nn.ParameterList()
        self.places: dict[TableKey, int] = {}
        for name, of_table in tables.items():
            reader = IdReader(of_table)
            self.ids.append(reader)
            rows = max(reader.table_rows, inside.pop((name, ""), 0))
            self.width += reader.count * self._add_table((name, ""), rows, embedding)
        for key, rows in inside.items():
            self._add_table(key, rows, embedding)

    def _add_table(self, key: TableKey, rows: int, embedding: int | str) -> int:
        size = embedding_size(rows) if isinstance(embedding, str) else embedding
        self.places[key] = len(self.embeddings)
        self.embeddings.append(torch.randn(rows, size) * 0.1)
        return size

    def forward(self, observation: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
        """Wire dtype or float32 [B, D] -> `dtype` [B, width]."""
        if self._image is None:
            parts = [self._numbers.read(observation).to(dtype)]
        else:
            image, rest = self._image.read(observation, dtype)
            parts = [self._numbers.read(rest), self.tower(image).relu().flatten(1)]
        for ids, table in zip(self.ids, self.embeddings):
            parts.append(F.embedding(ids(observation), table).flatten(1).to(dtype))
        return parts[0] if len(parts) == 1 else torch.cat(parts, dim=1)


def table_key(part: Slice, group: str = "") -> TableKey:
    """Ids of one key share a table. Ids that name no table share one among those of their `group`."""
    return part.table, "" if part.table else group


def _ids_inside(spec: GameSpec, group: EntityGroup) -> dict[TableKey, list[Slice]]:
    """The ids of a group's first block by their table."""
    found: dict[TableKey, list[Slice]] = {}
    for part in spec.block(f"{group.name}.0"):
        if part.kind == "id":
            found.setdefault(table_key(part, group.name), []).append(part)
    return found


def _rows_inside(spec: GameSpec, groups: Iterable[EntityGroup]) -> dict[TableKey, int]:
    """Rows of each table that ids inside of entities need."""
    rows: dict[TableKey, int] = {}
    for group in groups:
        for key, parts in _ids_inside(spec, group).items():
            rows[key] = max(rows.get(key, 0), *(part.vocabulary for part in parts))
    return rows


def _behind(part: Slice, begin: int) -> Slice:
    """The columns of a slice from `begin` on: the image before them is read as an image."""
    cut = max(begin - part.start, 0)
    if not cut:
        return part
    size = max(part.size - cut, 0)
    return Slice(part.name, part.start + cut, size, part.kind, vocabulary=part.vocabulary, table=part.table)


class EntityInputs(nn.Module):
    """One group of entities as tokens, encoded by shared weights. Encodings end in a ReLU.

    With `embedding: auto` a table of its own embeds the ids, as wide as the encoding; with a width the tables of the
    `VectorInputs` beside it do, which ids of the same table share inside and outside of entities.
    """

    def __init__(
        self, spec: GameSpec, group: EntityGroup, width: int, embedding: int | str, rest: VectorInputs
    ) -> None:
        """`rest`: whose tables these entities share. Raises ConfigError where the layout has no such blocks."""
        super().__init__()
        self.blocks = EntityBlocks([f"{group.name}.{i}" for i in range(group.count)], spec)
        self.readers, self._places, embedded = nn.ModuleList(), [], None
        if isinstance(embedding, int):
            found = _ids_inside(spec, group)
            self.readers.extend(IdReader(parts, self.blocks.start) for parts in found.values())
            self._places = [rest.places[key] for key in found]
            embedded = self.blocks.ids.count * embedding
        self.encoder = EntityEncoder(self.blocks, width, embedded)
        self._present = self.blocks.column(group.present) if group.present else -1

    @property
    def present_columns(self) -> list[int]:
        """Columns of an observation that say which entities are present."""
        first = self.blocks.start + self._present
        return [first + i * self.blocks.stride for i in range(self.blocks.count if self._present >= 0 else 0)]

    def forward(self, observation: Tensor, dtype: torch.dtype, tables: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
        """Wire dtype or float32 [B, D] -> tokens `dtype` [B, count, width], and bool [B, count], True = present.

        `tables`: `embeddings` of the `VectorInputs`.
        """
        rows = self.blocks(observation)
        ids = self.blocks.ids(rows).flatten(0, 1)  # exact: read before any cast
        parts = [self.blocks.numbers.read(rows).to(dtype)]
        for reader, place in zip(self.readers, self._places):
            parts.append(F.embedding(reader(rows), tables[place]).flatten(2).to(dtype))
        numbers = torch.cat(parts, dim=2) if len(parts) > 1 else parts[0]
        tokens: Tensor = self.encoder(ids, numbers.flatten(0, 1).contiguous()).unflatten(0, (-1, self.blocks.count))
        present = (
            rows[..., self._present] > 0 if self._present >= 0 else torch.ones_like(rows[..., 0], dtype=torch.bool)
        )
        return tokens, present


def pool_entities(tokens: Tensor, present: Tensor) -> Tensor:
    """[B, N, E], of which none is negative, and bool [B, N] -> mean and maximum of those present, [B, 2 E].

    Zeros where none is.
    """
    kept = present[..., None].to(tokens.dtype)
    mean, largest = mean_and_max(tokens * kept)
    share = kept.mean(1)
    return torch.cat((mean / share.clamp(min=1 / kept.shape[1]), largest), dim=1)


def declared_entities(spec: GameSpec, names: Sequence[str] = ()) -> list[EntityGroup]:
    """The groups that the spec declares, or those whose blocks NAME.0.*, NAME.1.*, ... its layout has.

    A group that the spec does not declare is masked by its field `present`, where it has one of one number.

    Raises:
        ConfigError: no such blocks, or a name that is given twice.
    """
    if not names:
        return list(spec.entities)
    if twice := next((name for name in names if list(names).count(name) > 1), ""):
        raise ConfigError(f"entities: {twice} is given twice; expected each group once")
    known = {group.name: group for group in spec.entities}
    groups = []
    for name in names:
        count = next(i for i in range(spec.observation_size + 1) if not spec.block(f"{name}.{i}"))
        if not count:
            hint = did_you_mean(name, _names_of_blocks(spec))
            raise ConfigError(f"entities: the layout of {spec.name} has no slices {name}.0.*{hint}")
        masked = any(part.name == f"{name}.0.{PRESENT}" and part.size == 1 for part in spec.layout)
        groups.append(known.get(name, EntityGroup(name, count, PRESENT if masked else "")))
    return groups


def _names_of_blocks(spec: GameSpec) -> Iterator[str]:
    """Names that have slices NAME.0 or NAME.0.* in the layout."""
    for part in spec.layout:
        words = part.name.split(".")
        yield from (".".join(words[:place]) for place, word in enumerate(words) if place and word == "0")


class PooledInputs(nn.Module):
    """`VectorInputs`, and for each group of entities mean and maximum of their encodings, and the share present.

    Attributes:
        width: of the vector.
    """

    def __init__(
        self, spec: GameSpec, width: int, embedding: int | str = AUTO, channels: Sequence[int] = (16, 32, 32)
    ) -> None:
        """`width`: of an entity's encoding. Raises ConfigError as `VectorInputs` does."""
        super().__init__()
        self.rest = VectorInputs(spec, embedding, channels, spec.entities, spec.entities)
        self.groups = nn.ModuleList(EntityInputs(spec, each, width, embedding, self.rest) for each in spec.entities)
        self.width = self.rest.width + len(spec.entities) * (2 * width + 1)

    def forward(self, observation: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
        """Wire dtype or float32 [B, D] -> `dtype` [B, width]."""
        parts = [self.rest(observation, dtype)]
        for group in self.groups:
            tokens, present = group(observation, dtype, self.rest.embeddings)
            parts += [pool_entities(tokens, present), present.to(dtype).mean(1, keepdim=True)]
        return torch.cat(parts, dim=1)


def declared_inputs(
    spec: GameSpec,
    width: int,
    entities: str = "pool",
    embedding: int | str = AUTO,
    channels: Sequence[int] = (16, 32, 32),
) -> VectorInputs | PooledInputs:
    """What reads all declared columns as one vector.

    Args:
        spec: of the game.
        width: of an entity's encoding.
        entities: `pool`, or `flat`: one behind the other, as any numbers.
        embedding, channels: see `VectorInputs`.

    Raises:
        ConfigError: another value of an option.
    """
    check_choice("entities", entities, ("pool", "flat"))
    if entities == "flat" or not spec.entities:
        return VectorInputs(spec, embedding, channels)
    return PooledInputs(spec, width, embedding, channels)


class AttendedInputs(nn.Module):
    """A transformer over all entities and one token for everything else, which is always present.

    Attributes:
        width: of what comes out, three times the tokens' where the game declares entities: the token of everything
            else, and mean and maximum of the entities.
    """

    def __init__(
        self,
        spec: GameSpec,
        width: int,
        layers: int,
        heads: int,
        embedding: int | str = AUTO,
        channels: Sequence[int] = (16, 32, 32),
        entities: Sequence[str] = (),
    ) -> None:
        """`width`: of a token; `entities`: see `declared_entities`. Raises ConfigError."""
        super().__init__()
        groups = declared_entities(spec, entities)
        self.rest = VectorInputs(spec, embedding, channels, groups, groups)
        self.rest_token = nn.Linear(max(self.rest.width, 1), width)
        self.groups = nn.ModuleList(EntityInputs(spec, each, width, embedding, self.rest) for each in groups)
        self.transformer = Transformer(width, layers, heads)
        self.width = width * (3 if groups else 1)

    def forward(self, observation: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
        """Wire dtype or float32 [B, D] -> `dtype` [B, width]."""
        rest = self.rest(observation, dtype)
        first = self.rest_token(rest if self.rest.width else torch.ones_like(observation[:, :1], dtype=dtype))
        if not len(self.groups):
            alone: Tensor = self.transformer(first[:, None], None)[:, 0]
            return alone.to(dtype)
        found = [group(observation, dtype, self.rest.embeddings) for group in self.groups]
        tokens = torch.cat((first[:, None].to(dtype), *(tokens for tokens, _ in found)), dim=1)
        others = torch.cat([present for _, present in found], dim=1)
        out = self.transformer(tokens, F.pad(others, (1, 0), value=True)).to(dtype)
        first, attended = out.split((1, others.shape[1]), dim=1)
        return torch.cat((first[:, 0], pool_entities(attended.relu(), others)), dim=1)
