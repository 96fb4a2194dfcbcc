"""What the networks for singles and doubles share: entities, encoded by shared weights, at which actions point.

    12 Pokémon --shared--> encodings --+-- pooled --+
    the moves  --shared--> encodings --+-- pooled --+--> trunk --> LSTM --+--> value
    the rest, legal actions ----------------------+                    +--> queries . encodings = logits

Blocks `set.0..5.*`, where there are any, say more of the foes: their encodings are added to those of `foe.0..5.*`.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from simul.common.nets.base import RecurrentNetwork, compute_dtype
from simul.common.nets.layers.entities import Blocks, Ids, number_columns
from simul.common.nets.layers.functions import embedding_sum
from simul.common.nets.layers.lstm import PackedLSTM
from simul.common.nets.layers.packing import make_packing
from simul.common.protocol.specs import GameSpec

TEAM, MOVES = 6, 4


class Encoder(nn.Module):
    """Shared by all entities of a kind: ids summed as embeddings, numbers, one hidden layer.

    The embedding has the width of the hidden layer: summing it there is a one-hot input's linear layer.
    """

    def __init__(self, blocks: Blocks, size: int) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.randn(blocks.ids.table_rows, size) * 0.1)
        self.numbers = nn.Linear(blocks.numbers.count, size)
        self.output = nn.Linear(size, size)

    def forward(self, ids: Tensor, numbers: Tensor) -> Tensor:
        """ids: int64 [N, K]; numbers: [N, M], contiguous. Returns [N, size]."""
        embedded = embedding_sum(self.table, ids)
        hidden = torch.relu(self.numbers(numbers) + embedded.to(numbers.dtype))
        return torch.relu(self.output(hidden))


class EntityNetwork(RecurrentNetwork):
    """Everything but which encodings are pooled, and what a move's actions point at: a subclass's `_read`.

    The actions come in this order: `plain` that are about no entity, 6 that switch to own.i, then `kinds` times those
    that use a move.
    """

    def __init__(
        self, spec: GameSpec, entity: int, hidden: int, *, moves: Sequence[str], pooled: int, kinds: int, plain: int
    ) -> None:
        """`entity`: width of an encoding; `hidden`: of trunk and LSTM; `moves`: blocks; `pooled`: encodings pooled."""
        super().__init__()
        team = [f"{side}.{i}" for side in ("own", "foe") for i in range(TEAM)]
        self.pokemon, self.moves = Blocks(team, spec), Blocks(moves, spec)
        sets = [f"set.{i}" for i in range(TEAM) if any(part.name.startswith("set.") for part in spec.layout)]
        self.sets = Blocks(sets, spec) if sets else None
        self.set_encoder = Encoder(self.sets, entity) if self.sets is not None else None
        taken = (*(name + "." for name in (*team, *moves, *sets)), "mask")  # legal actions come from the mask itself
        others = [part for part in spec.layout if not part.name.startswith(taken)]
        self.other_ids, self.other_numbers = Ids(others), number_columns(others)
        self.pokemon_encoder = Encoder(self.pokemon, entity)
        self.move_encoder = Encoder(self.moves, entity)
        self.other_table = nn.Parameter(torch.randn(self.other_ids.table_rows, entity // 4) * 0.1)
        other = self.other_numbers.count + self.other_ids.count * (entity // 4)
        self.trunk = nn.Linear(pooled * entity + other + spec.num_actions, hidden)
        self.lstm = PackedLSTM(hidden, hidden)
        self.state_size = 2 * hidden
        self.kinds, self.plain, self.entity = kinds, plain, entity
        self.query = nn.Linear(hidden, plain + (1 + kinds) * (entity + 1))
        self.value_head = nn.Linear(hidden, 1)
        with torch.no_grad():
            self.query.weight *= 0.1
            nn.init.zeros_(self.query.bias)
            nn.init.zeros_(self.value_head.bias)

    def forward(self, observation: Tensor, mask: Tensor, state: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """As `RecurrentNetwork.forward`."""
        x, own, uses = self._encode(observation, mask)
        h, new_state = self.lstm(x, state)
        return *self._heads(x, h, own, uses), new_state

    def unroll(self, observation: Tensor, mask: Tensor, state: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """As `RecurrentNetwork.unroll`, on valid rows only."""
        packing = make_packing(lengths, observation.shape[0], observation.device)
        x, own, uses = self._encode(packing.pack(observation), packing.pack(mask))
        h = self.lstm.run(x, state.index_select(0, packing.order), packing.batch_sizes)
        logits, value = self._heads(x, h, own, uses)
        return packing.pad(logits), packing.pad(value)

    def lowered(self, dtype: torch.dtype) -> EntityNetwork:
        """As `RecurrentNetwork.lowered`; the last products of both heads and single tables stay float32."""
        network = copy.deepcopy(self)
        for part in network.children():
            if part is not network.value_head:
                part.to(dtype)
        return network

    def _read(self, low: Tensor, sides: Tensor, moves: Tensor) -> tuple[list[Tensor], Tensor]:
        """Pooled encodings, each [B, n E], and what actions that use a move point at: [B, U, E].

        Args:
            low: the observation [B, D].
            sides: encodings of own and foes' Pokémon [B, 2, 6, E].
            moves: encodings of the moves' blocks [B, M, E].
        """
        raise NotImplementedError

    def _encode(self, observation: Tensor, mask: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Trunk output [B, hidden], own encodings [B, 6, E], what moves' actions point at [B, U, E]."""
        exact = observation.float()  # half the time of going from float16 to bfloat16 at once
        low = exact.to(compute_dtype(self.trunk.weight))
        team = self._encode_blocks(self.pokemon, self.pokemon_encoder, exact, low)
        moves = self._encode_blocks(self.moves, self.move_encoder, exact, low)
        if self.sets is not None and self.set_encoder is not None:
            own, foes = team.split(TEAM, dim=1)
            team = torch.cat((own, foes + self._encode_blocks(self.sets, self.set_encoder, exact, low)), dim=1)
        sides = team.unflatten(1, (2, TEAM))  # (B, 2, 6, E)
        pooled, uses = self._read(low, sides, moves)
        ids = F.embedding(self.other_ids(exact), self.other_table).flatten(1)
        inputs = (*pooled, self.other_numbers.read(low), ids.to(low.dtype), mask.to(low.dtype))
        x = torch.relu(self.trunk(torch.cat(inputs, dim=1)))
        return x, sides.unbind(1)[0], uses

    def _encode_blocks(self, blocks: Blocks, encoder: Encoder, exact: Tensor, low: Tensor) -> Tensor:
        """Encodings [B, count, E]; ids come from the float32 observation, numbers from the lowered one."""
        ids = blocks.ids(blocks(exact)).flatten(0, 1)
        numbers = blocks.numbers.read(blocks(low)).flatten(0, 1).contiguous()
        encoded: Tensor = encoder(ids, numbers)
        return encoded.unflatten(0, (-1, blocks.count))

    def _heads(self, x: Tensor, h: Tensor, own: Tensor, uses: Tensor) -> tuple[Tensor, Tensor]:
        """Logits [B, A] and value [B] from trunk, LSTM and the encodings that actions point at."""
        features = x.float() + h  # (B, hidden)
        dtype = compute_dtype(self.query.weight)
        asked = self.query(features.to(dtype)).float()
        plain, asked = asked.split((self.plain, asked.shape[1] - self.plain), dim=1)
        queries = asked.unflatten(1, (1 + self.kinds, self.entity + 1))
        with torch.autocast(features.device.type, enabled=False):
            value = self.value_head(features).squeeze(1)
            points, bias = queries.split((self.entity, 1), dim=2)
            to_own, to_uses = (points * self.entity**-0.5).split((1, self.kinds), dim=1)
            switch_bias, use_bias = bias.split((1, self.kinds), dim=1)
            switch = to_own @ own.float().transpose(1, 2) + switch_bias  # (B, 1, 6)
            use = to_uses @ uses.float().transpose(1, 2) + use_bias  # (B, kinds, U)
        return torch.cat((plain, switch.flatten(1), use.flatten(1)), dim=1), value
