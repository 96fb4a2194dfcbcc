"""`pokemon`: an entity network. Pokémon and moves are encoded by shared weights; actions point at their encodings.

    12 Pokémon --shared--> encodings --+-- pooled --+
     4 moves   --shared--> encodings --+-- pooled --+--> trunk --> LSTM --+--> value
     the rest, legal actions ----------------------+                    +--> queries . encodings = logits

It needs a layout with blocks `own.0..5.*`, `foe.0..5.*` and `move.0..3.*`, in the order of the actions:
0-5 switch to own.i, then groups of four use move.i: plain (6-9), mega, Z, dynamax, tera.
Parts named `mask*` are skipped: the legal actions come from the mask itself. Blocks `set.0..5.*`, where there are any,
say more of the foes: their encodings are added to those of `foe.0..5.*`.
"""

from __future__ import annotations

import copy

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from common.errors import ConfigError
from common.nets.base import RecurrentNetwork, compute_dtype
from common.nets.entities import Blocks, Ids, number_columns
from common.nets.functions import embedding_sum, mean_and_max
from common.nets.lstm import PackedLSTM
from common.nets.packing import make_packing
from common.specs import GameSpec

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


class PokemonNetwork(RecurrentNetwork):
    """See the module. `entity` is the width of an encoding, `hidden` that of trunk and LSTM."""

    def __init__(self, spec: GameSpec, entity: int = 64, hidden: int = 256) -> None:
        super().__init__()
        kinds, rest = divmod(spec.num_actions - TEAM, MOVES)
        if kinds < 1 or rest:
            raise ConfigError(
                f"The network pokemon needs 6 + 4 k actions; {spec.name} has {spec.num_actions}. "
                "Set network.name: mlp_lstm."
            )
        team = [f"{side}.{i}" for side in ("own", "foe") for i in range(TEAM)]
        moves = [f"move.{i}" for i in range(MOVES)]
        self.pokemon, self.moves = Blocks(team, spec), Blocks(moves, spec)
        sets = [f"set.{i}" for i in range(TEAM) if any(part.name.startswith("set.") for part in spec.layout)]
        self.sets = Blocks(sets, spec) if sets else None
        self.set_encoder = Encoder(self.sets, entity) if self.sets is not None else None
        taken = (*(name + "." for name in (*team, *moves, *sets)), "mask")
        others = [part for part in spec.layout if not part.name.startswith(taken)]
        self.other_ids, self.other_numbers = Ids(others), number_columns(others)
        self.active = self.pokemon.column("active")
        self.pokemon_encoder = Encoder(self.pokemon, entity)
        self.move_encoder = Encoder(self.moves, entity)
        self.other_table = nn.Parameter(torch.randn(self.other_ids.table_rows, entity // 4) * 0.1)
        pooled = (4 + 2 * (self.active >= 0) + 2) * entity
        other = self.other_numbers.count + self.other_ids.count * (entity // 4)
        self.trunk = nn.Linear(pooled + other + spec.num_actions, hidden)
        self.lstm = PackedLSTM(hidden, hidden)
        self.state_size = 2 * hidden
        self.kinds, self.entity = kinds, entity
        self.query = nn.Linear(hidden, (1 + kinds) * (entity + 1))
        self.value_head = nn.Linear(hidden, 1)
        with torch.no_grad():
            self.query.weight *= 0.1
            nn.init.zeros_(self.query.bias)
            nn.init.zeros_(self.value_head.bias)

    def forward(self, observation: Tensor, mask: Tensor, state: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """As `RecurrentNetwork.forward`."""
        x, own, moves = self._encode(observation, mask)
        h, new_state = self.lstm(x, state)
        return *self._heads(x, h, own, moves), new_state

    def unroll(self, observation: Tensor, mask: Tensor, state: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """As `RecurrentNetwork.unroll`, on valid rows only."""
        packing = make_packing(lengths, observation.shape[0], observation.device)
        x, own, moves = self._encode(packing.pack(observation), packing.pack(mask))
        h = self.lstm.run(x, state.index_select(0, packing.order), packing.batch_sizes)
        logits, value = self._heads(x, h, own, moves)
        return packing.pad(logits), packing.pad(value)

    def lowered(self, dtype: torch.dtype) -> PokemonNetwork:
        """As `RecurrentNetwork.lowered`; the last products of both heads stay float32."""
        network = copy.deepcopy(self)
        for part in (network.pokemon_encoder, network.move_encoder, network.trunk, network.lstm, network.query):
            part.to(dtype)
        if network.set_encoder is not None:
            network.set_encoder.to(dtype)
        return network

    def _encode(self, observation: Tensor, mask: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Trunk output [B, hidden], own encodings [B, 6, E], move encodings [B, 4, E]."""
        exact = observation.float()  # half the time of going from float16 to bfloat16 at once
        low = exact.to(compute_dtype(self.trunk.weight))
        team = self._encode_blocks(self.pokemon, self.pokemon_encoder, exact, low)
        moves = self._encode_blocks(self.moves, self.move_encoder, exact, low)
        if self.sets is not None and self.set_encoder is not None:
            own, foes = team.split(TEAM, dim=1)
            team = torch.cat((own, foes + self._encode_blocks(self.sets, self.set_encoder, exact, low)), dim=1)
        sides = team.unflatten(1, (2, TEAM))  # (B, 2, 6, E)
        pooled = [part.flatten(1) for part in (*mean_and_max(sides), *mean_and_max(moves))]
        if self.active >= 0:
            active = self.pokemon(low)[:, :, self.active].unflatten(1, (2, 1, TEAM))
            pooled.append((active @ sides).flatten(1))
        ids = F.embedding(self.other_ids(exact), self.other_table).flatten(1)
        inputs = (*pooled, self.other_numbers.read(low), ids.to(low.dtype), mask.to(low.dtype))
        x = torch.relu(self.trunk(torch.cat(inputs, dim=1)))
        return x, sides.unbind(1)[0], moves

    def _encode_blocks(self, blocks: Blocks, encoder: Encoder, exact: Tensor, low: Tensor) -> Tensor:
        """Encodings [B, count, E]; ids come from the float32 observation, numbers from the lowered one."""
        ids = blocks.ids(blocks(exact)).flatten(0, 1)
        numbers = blocks.numbers.read(blocks(low)).flatten(0, 1).contiguous()
        encoded: Tensor = encoder(ids, numbers)
        return encoded.unflatten(0, (-1, blocks.count))

    def _heads(self, x: Tensor, h: Tensor, own: Tensor, moves: Tensor) -> tuple[Tensor, Tensor]:
        """Logits [B, A] and value [B] from trunk, LSTM and the encodings that actions point at."""
        features = x.float() + h  # (B, hidden)
        dtype = compute_dtype(self.query.weight)
        queries = self.query(features.to(dtype)).float().unflatten(1, (1 + self.kinds, self.entity + 1))
        with torch.autocast(features.device.type, enabled=False):
            value = self.value_head(features).squeeze(1)
            points, bias = queries.split((self.entity, 1), dim=2)
            to_own, to_moves = (points * self.entity**-0.5).split((1, self.kinds), dim=1)
            switch_bias, move_bias = bias.split((1, self.kinds), dim=1)
            switch = to_own @ own.float().transpose(1, 2) + switch_bias  # (B, 1, 6)
            use = to_moves @ moves.float().transpose(1, 2) + move_bias  # (B, kinds, 4)
        return torch.cat((switch.flatten(1), use.flatten(1)), dim=1), value
