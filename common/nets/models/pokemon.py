"""`pokemon`: an entity network for singles and one for doubles; entities are encoded by shared weights.

    12 Pokémon --shared--> encodings --+-- pooled --+
    the moves  --shared--> encodings --+-- pooled --+--> trunk --> memory --+--> value
    the rest, legal actions ----------------------+                      +--> queries . encodings = logits

The memory is an LSTM, a GRU or none. With `attention` a transformer lets the 12 encodings see each other first.

Layout of both: blocks `own.0..5.*`, `foe.0..5.*`, `move.0..3.*`. Optional blocks `set.0..5.*` say more about the foes:
their encodings are added to those of `foe.0..5.*`.

Actions in singles: 0-5 switch to own.i, then groups of four use move.i: plain (6-9), mega, Z, dynamax, tera.

Doubles: one slot of a side decides at a time. Each (move, target) pair has an encoding, made by shared weights:

    move k --+
    the Pokémon at the target --+--> encoding of (k, target)      . query of the gimmick = logit
    the move's effect on it   --+

Its layout adds `slot` to each Pokémon (it stands left, right), `partner_move.0..3.*`, equal fields `left.*` and
`right.*` in each move (its effect on either foe), and `global.right` (the right slot decides). Its actions: pass, 1-6
switch to own.i, then groups of 4 moves x 5 targets: plain, mega, Z, dynamax, tera. Targets are Showdown's -2, -1, 0, 1,
2: own right, own left, no single target, foe's left, foe's right.

Where the spec declares labels of the opponent's choices, both also predict these, in training only: for each slot of
the opponent, left and right, one query points at the encodings of foe.0..5, one at the embeddings of all moves.

    trunk + LSTM --> hidden layer --+--> query . encodings of the foes = logits of a switch to foe.0..5
                                    +--> logit of a switch to a Pokémon that has not been seen
                                    +--> query . embeddings of the moves = logits of the moves
                                    +--> added to those that the Pokémon in the slot has shown

At first a switch to each foe, one to a Pokémon that has not been seen, each move that has been shown, and all other
moves together are about equally likely.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from simul.common.config.section import NonNegative, Positive
from simul.common.errors import ConfigError
from simul.common.nets.base import compute_dtype
from simul.common.nets.layers.attention import Transformer
from simul.common.nets.layers.entities import (
    EntityBlocks,
    EntityEncoder,
    IdReader,
    dot_products,
    mean_and_max,
    number_columns,
)
from simul.common.nets.layers.lstm import make_packing, round_up_rows
from simul.common.nets.layers.memory import RememberingNetwork
from simul.common.protocol.specs import GameSpec

TEAM, MOVES = 6, 4
OPPONENT_UNITS = 96
HEADS = 4  # of the transformer


class OpponentHead(nn.Module):
    """Predicts what each slot of the opponent does, see the module; K = slots, E = width of an encoding, V = moves."""

    def __init__(self, hidden: int, entity: int, slots: int) -> None:
        super().__init__()
        self.slots, self.entity = slots, entity
        self.hidden = nn.Linear(hidden, OPPONENT_UNITS)
        self.query = nn.Linear(OPPONENT_UNITS, slots * (2 * entity + 2 + MOVES))
        with torch.no_grad():
            self.query.weight *= 0.1
            nn.init.zeros_(self.query.bias)

    def forward(self, features: Tensor, foes: Tensor, shown: Tensor, moves: Tensor) -> Tensor:
        """Logits of the classes, float32 [N, K, 7 + V].

        Args:
            features: float32 [N, hidden]. foes: [N, 6, E], their encodings.
            shown: int64 [N, K, 4], ids of the moves that the Pokémon in each slot has shown; 0 = none.
            moves: float32 [V, E], embeddings by id.
        """
        dtype = compute_dtype(self.query.weight)
        asked = self.query(torch.relu(self.hidden(features.to(dtype)))).unflatten(1, (self.slots, -1))
        to_foes, to_moves, bias, unseen, known = asked.split((self.entity, self.entity, 1, 1, MOVES), dim=2)
        switch = dot_products(to_foes * self.entity**-0.5, foes.to(dtype)) + bias  # (N, K, 6)
        pointed = F.pad(moves.to(dtype), (0, 0, TEAM + 1, 0))  # (7 + V, E); one product and one sum, no other copies
        logits = (to_moves @ pointed.t()).float()
        few = torch.cat((switch, unseen, known), dim=2).float() + math.log(len(moves))  # (N, K, 7 + 4)
        classes = torch.arange(TEAM + 1, device=shown.device).expand(*shown.shape[:2], -1)
        used = F.pad(shown > 0, (TEAM + 1, 0), value=True)
        return logits.scatter_add_(2, torch.cat((classes, shown + TEAM + 1), dim=2), torch.where(used, few, 0.0))


class EntityNetwork(RememberingNetwork):
    """Base of both networks. `_read` of a subclass chooses the pooled encodings and the encodings of move actions.

    Order of the actions: `plain` ones that concern no entity, 6 that switch to own.i, then `kinds` groups that use a
    move. `standing`: fields of a Pokémon, and numbers of them, that say which slots it stands in.
    """

    reads_exactly = True  # it selects by the numbers that say who is active
    standing: tuple[tuple[str, int], ...] = ()

    def __init__(
        self, spec: GameSpec, entity: int, hidden: int, memory: str, attention: int, *, moves: Sequence[str],
        pooled: int, kinds: int, plain: int,
    ) -> None:  # fmt: skip
        """`entity`: width of an encoding; `hidden`: of trunk and memory; `moves`: blocks; `pooled`: encodings pooled.

        `memory`: none, lstm or gru; `attention`: layers of the transformer. Raises ConfigError.
        """
        super().__init__()
        team = [f"{side}.{i}" for side in ("own", "foe") for i in range(TEAM)]
        self.pokemon, self.moves = EntityBlocks(team, spec), EntityBlocks(moves, spec)
        sets = [f"set.{i}" for i in range(TEAM) if any(part.name.startswith("set.") for part in spec.layout)]
        self.sets = EntityBlocks(sets, spec) if sets else None
        self.set_encoder = EntityEncoder(self.sets, entity) if self.sets is not None else None
        taken = (*(name + "." for name in (*team, *moves, *sets)), "mask")  # legal actions come from the mask itself
        others = [part for part in spec.layout if not part.name.startswith(taken)]
        self.other_ids, self.other_numbers = IdReader(others), number_columns(others)
        self.pokemon_encoder = EntityEncoder(self.pokemon, entity)
        self.move_encoder = EntityEncoder(self.moves, entity)
        self.other_table = nn.Parameter(torch.randn(self.other_ids.table_rows, entity // 4) * 0.1)
        other = self.other_numbers.count + self.other_ids.count * (entity // 4)
        self.trunk = nn.Linear(pooled * entity + other + spec.num_actions, hidden)
        self.add_memory(hidden, hidden, memory)
        self.kinds, self.plain, self.entity = kinds, plain, entity
        self.query = nn.Linear(hidden, plain + (1 + kinds) * (entity + 1))
        self.value_head = nn.Linear(hidden, 1)
        self.move_run = self.moves.ids.table_runs.get("move", (0, 0))  # in the table of the move encoder
        classes = spec.opponent_labels, spec.opponent_classes
        self.predicts_opponent = classes == (len(self.standing), TEAM + 1 + self.move_run[1])
        with torch.no_grad():
            self.query.weight *= 0.1
            nn.init.zeros_(self.query.bias)
            nn.init.zeros_(self.value_head.bias)
        if self.predicts_opponent:  # behind the others, whose first weights do not depend on it
            self.opponent_head = OpponentHead(hidden, entity, spec.opponent_labels)
        self.attention = Transformer(entity, attention, HEADS) if attention else None

    def forward(self, observation: Tensor, mask: Tensor, state: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """As `RecurrentNetwork.forward`."""
        x, sides, uses = self._encode(observation, mask)
        h, new_state = self.remember(x, state)
        features = x.float() if h is None else x.float() + h
        return *self._heads(features, sides.unbind(1)[0], uses), new_state

    def unroll(self, observation: Tensor, mask: Tensor, state: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """As `RecurrentNetwork.unroll`, on valid rows only."""
        return self._unroll(observation, mask, state, lengths, None)[:2]

    def unroll_predicting(
        self, observation: Tensor, mask: Tensor, state: Tensor, lengths: Tensor, labelled: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """As `RecurrentNetwork.unroll_predicting`."""
        logits, value, opponent = self._unroll(observation, mask, state, lengths, labelled)
        assert opponent is not None
        return logits, value, opponent

    def _unroll(
        self, observation: Tensor, mask: Tensor, state: Tensor, lengths: Tensor, labelled: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        packing = make_packing(lengths, observation.shape[0], observation.device)
        observation = packing.pack(observation)
        x, sides, uses = self._encode(observation, packing.pack(mask))
        h = self.remember_rows(x, state, packing)
        features = x.float() if h is None else x.float() + h
        own, foes = sides.unbind(1)
        logits, value = self._heads(features, own, uses)
        opponent = None
        if labelled is not None:
            places = packing.places_of(labelled)
            chosen = round_up_rows(places)
            first, rows = self.move_run
            assert self.move_encoder.table is not None
            moves = self.move_encoder.table[first : first + rows]
            asked = (rows.index_select(0, chosen) for rows in (features, foes, self._shown_moves(observation)))
            opponent = self.opponent_head(*asked, moves)[: len(places)]
        return packing.pad(logits), packing.pad(value), opponent

    def _shown_moves(self, observation: Tensor) -> Tensor:
        """Ids of the moves that the foe in each slot has shown, of [N, D]: int64 [N, K, 4]."""
        foes = self.pokemon(observation)[:, TEAM:]
        columns = [self.pokemon.column(name) + place for name, place in self.standing]
        first, rows = self.pokemon.column("moves"), self.move_run[1]
        stands = foes[:, :, columns].transpose(1, 2).float()  # (N, K, 6)
        ids = (stands[..., None] * foes[:, None, :, first : first + MOVES].float()).amax(2)
        return ids.long().clamp(0, rows - 1)

    def lowered(self, dtype: torch.dtype) -> EntityNetwork:
        """As `RecurrentNetwork.lowered`; the last products of both heads and single tables stay float32."""
        network = copy.deepcopy(self)
        for part in network.children():
            if part is not network.value_head:
                part.to(dtype)
        return network

    def _read(self, low: Tensor, sides: Tensor, moves: Tensor) -> tuple[list[Tensor], Tensor]:
        """Pooled encodings, each [B, n E], and the encodings that move actions point at: [B, U, E].

        Args:
            low: the observation [B, D].
            sides: encodings of own and foes' Pokémon [B, 2, 6, E].
            moves: encodings of the moves' blocks [B, M, E].
        """
        raise NotImplementedError

    def _encode(self, observation: Tensor, mask: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Trunk output [B, hidden], encodings of own and foes [B, 2, 6, E], of move actions [B, U, E]."""
        exact = observation.float()  # float16 -> float32 -> bfloat16 takes half the time of the direct cast
        low = exact.to(compute_dtype(self.trunk.weight))
        team = self._encode_blocks(self.pokemon, self.pokemon_encoder, exact, low)
        moves = self._encode_blocks(self.moves, self.move_encoder, exact, low)
        if self.sets is not None and self.set_encoder is not None:
            own, foes = team.split(TEAM, dim=1)
            team = torch.cat((own, foes + self._encode_blocks(self.sets, self.set_encoder, exact, low)), dim=1)
        if self.attention is not None:
            team = self.attention(team, None).to(low.dtype).relu()  # poolings want what a ReLU gives
        sides = team.unflatten(1, (2, TEAM))  # (B, 2, 6, E)
        pooled, uses = self._read(low, sides, moves)
        ids = F.embedding(self.other_ids(exact), self.other_table).flatten(1)
        inputs = (*pooled, self.other_numbers.read(low), ids.to(low.dtype), mask.to(low.dtype))
        x = torch.relu(self.trunk(torch.cat(inputs, dim=1)))
        return x, sides, uses

    def _encode_blocks(self, blocks: EntityBlocks, encoder: EntityEncoder, exact: Tensor, low: Tensor) -> Tensor:
        """Encodings [B, count, E]; ids come from the float32 observation, numbers from the lowered one."""
        ids = blocks.ids(blocks(exact)).flatten(0, 1)
        numbers = blocks.numbers.read(blocks(low)).flatten(0, 1).contiguous()
        encoded: Tensor = encoder(ids, numbers)
        return encoded.unflatten(0, (-1, blocks.count))

    def _heads(self, features: Tensor, own: Tensor, uses: Tensor) -> tuple[Tensor, Tensor]:
        """Logits [B, A] and value [B], from the features and the encodings of the actions' entities."""
        dtype = compute_dtype(self.query.weight)
        asked = self.query(features.to(dtype)).float()
        plain, asked = asked.split((self.plain, asked.shape[1] - self.plain), dim=1)
        queries = asked.unflatten(1, (1 + self.kinds, self.entity + 1))
        with torch.autocast(features.device.type, enabled=False):
            value = self.value_head(features).squeeze(1)
            points, bias = queries.split((self.entity, 1), dim=2)
            to_own, to_uses = (points * self.entity**-0.5).split((1, self.kinds), dim=1)
            switch_bias, use_bias = bias.split((1, self.kinds), dim=1)
            switch = (to_own * own.float()).sum(2) + switch_bias.squeeze(1)  # (B, 6)
            use = dot_products(to_uses, uses.float()) + use_bias  # (B, kinds, U)
        return torch.cat((plain, switch, use.flatten(1)), dim=1), value


class PokemonNetwork(EntityNetwork):
    """Singles. Options as of `EntityNetwork`."""

    standing = (("active", 0),)

    def __init__(
        self,
        spec: GameSpec,
        entity: Positive = 64,
        hidden: Positive = 256,
        memory: str = "lstm",
        attention: NonNegative = 0,
    ) -> None:
        kinds, rest = divmod(spec.num_actions - TEAM, MOVES)
        if kinds < 1 or rest:
            raise ConfigError(
                f"The network pokemon needs 6 + 4 k actions; {spec.name} has {spec.num_actions}. "
                "Set network.name: mlp_lstm."
            )
        moves = [f"move.{i}" for i in range(MOVES)]
        shows_active = any(part.name == "own.0.active" for part in spec.layout)
        pooled = 6 + 2 * shows_active
        super().__init__(spec, entity, hidden, memory, attention, moves=moves, pooled=pooled, kinds=kinds, plain=0)
        self.active = self.pokemon.column("active")

    def _read(self, low: Tensor, sides: Tensor, moves: Tensor) -> tuple[list[Tensor], Tensor]:
        """As `EntityNetwork._read`: pools teams, moves and the active Pokémon; actions point at the moves."""
        pooled = [part.flatten(1) for part in (*mean_and_max(sides), *mean_and_max(moves))]
        if self.active >= 0:
            active = self.pokemon(low)[:, :, self.active].unflatten(1, (2, 1, TEAM))
            pooled.append((active @ sides).flatten(1))
        return pooled, moves


PASS, TARGETS = 1, 5
SIDES = ("left", "right")
POOLED = 12  # mean and maximum of own, foes, moves, the partner's moves; the decider, its partner, both foes
SELF_AND_PARTNER, NO_TARGET, FOE = slice(0, 2), slice(2, 3), slice(3, 4)  # rows of `relations`


class PokemonDoublesNetwork(EntityNetwork):
    """Doubles, see the module. Options as of `EntityNetwork`."""

    standing = (("slot", 0), ("slot", 1))

    def __init__(
        self,
        spec: GameSpec,
        entity: Positive = 64,
        hidden: Positive = 256,
        memory: str = "lstm",
        attention: NonNegative = 0,
    ) -> None:
        kinds, rest = divmod(spec.num_actions - PASS - TEAM, MOVES * TARGETS)
        if kinds < 1 or rest:
            raise ConfigError(
                f"The network pokemon needs 7 + 20 k actions for doubles; {spec.name} has {spec.num_actions}. "
                "Set network.name: mlp_lstm."
            )
        moves = [f"{whose}.{i}" for whose in ("move", "partner_move") for i in range(MOVES)]
        super().__init__(spec, entity, hidden, memory, attention, moves=moves, pooled=POOLED, kinds=kinds, plain=PASS)
        self.slot = self.pokemon.column("slot")
        self.right = next((part.start for part in spec.layout if part.name == "global.right"), -1)
        self.against = [
            number_columns(
                [part for part in self.moves.parts if part.name.startswith(f"move.0.{side}.")], self.moves.start
            )
            for side in SIDES
        ]
        left, right = (columns.count for columns in self.against)
        if self.slot < 0 or self.right < 0 or left != right or not left:
            raise ConfigError(
                f"The network pokemon needs own.*.slot, global.right and equal move.*.left.*, move.*.right.* in the "
                f"layout of {spec.name}. Set network.name: mlp_lstm."
            )
        self.by_move = nn.Linear(entity, entity)
        self.by_target = nn.Linear(entity, entity, bias=False)
        self.by_effect = nn.Linear(left, entity, bias=False)
        self.relations = nn.Parameter(torch.randn(4, entity) * 0.1)

    def _read(self, low: Tensor, sides: Tensor, moves: Tensor) -> tuple[list[Tensor], Tensor]:
        """As `EntityNetwork._read`: pools teams, both slots' moves and the Pokémon on the field."""
        slots = self.pokemon(low)[:, :, self.slot : self.slot + 2].unflatten(1, (2, TEAM))
        standing = slots.transpose(2, 3) @ sides  # (B, own or foe, left or right, E)
        own, foes = standing.unbind(1)
        right = low[:, self.right, None, None] > 0.5  # (B, 1, 1)
        decider_first = torch.where(right, own.flip(1), own)
        mine, partners = moves.split(MOVES, dim=1)
        parts = (*mean_and_max(sides), *mean_and_max(mine), *mean_and_max(partners), decider_first, foes)
        uses = torch.relu(
            self.by_move(mine)[:, :, None]
            + self._targets(standing, right)[:, None]
            + self.by_effect(self._effects(low))
        )  # (B, 4, 5, E)
        return [part.flatten(1) for part in parts], uses.flatten(1, 2)

    def _targets(self, standing: Tensor, right: Tensor) -> Tensor:
        """Encoding of the Pokémon at each target and its relation to the deciding slot: [B, 5, E]."""
        relations = self.relations.to(standing.dtype)
        itself = relations[SELF_AND_PARTNER]
        own, foes = self.by_target(standing).unbind(1)
        own = own + torch.where(right, itself.flip(0), itself)  # left, right
        no_target = relations[NO_TARGET].expand(standing.shape[0], 1, -1)
        return torch.cat((own.flip(1), no_target, foes + relations[FOE]), dim=1)

    def _effects(self, low: Tensor) -> Tensor:
        """Observed effect of each move on each target, zeros where the layout has none: [B, 4, 5, n]."""
        blocks = self.moves(low)[:, :MOVES]
        left, right = (columns.read(blocks) for columns in self.against)
        unknown = torch.zeros_like(left)
        return torch.stack((unknown, unknown, (left + right) / 2, left, right), dim=2)


def pokemon_network(
    spec: GameSpec, entity: Positive = 64, hidden: Positive = 256, memory: str = "lstm", attention: NonNegative = 0
) -> EntityNetwork:
    """The network `pokemon` for a layout: doubles where it has blocks `partner_move.*`, else singles.

    Options as of `EntityNetwork`.
    """
    doubles = any(part.name.startswith("partner_move.") for part in spec.layout)
    return (PokemonDoublesNetwork if doubles else PokemonNetwork)(spec, entity, hidden, memory, attention)
