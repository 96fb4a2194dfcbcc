"""The network `pokemon` for doubles: one slot of a side decides at a time, and a move is aimed at somebody.

An action that uses a move has an encoding of its own, made by weights that all twenty of them share:

    move k --+
    who stands at the target --+--> encoding of (k, target)      . query of the gimmick = logit
    what the move does to it --+

It needs a layout with blocks `own.0..5.*`, `foe.0..5.*`, each with `slot` (it stands left, right), `move.0..3.*` and
`partner_move.0..3.*`, each with equal fields `left.*` and `right.*` (what it does to either foe), and `global.right`
(the right slot decides), in the order of the actions: pass, 1-6 switch to own.i, then groups of 4 moves x 5 targets:
plain, mega, Z, dynamax, tera. Targets are Showdown's -2, -1, 0, 1, 2: own right, own left, nobody in particular, foe's
left, foe's right.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from simul.common.nets.layers.entities import number_columns
from simul.common.nets.layers.functions import mean_and_max
from simul.common.nets.models.pokemon_base import MOVES, TEAM, EntityNetwork
from simul.common.protocol.errors import ConfigError
from simul.common.protocol.specs import GameSpec

PASS, TARGETS = 1, 5
SIDES = ("left", "right")
POOLED = 12  # mean and maximum of own, foes, moves, the partner's moves; the decider, its partner, both foes
SELF_AND_PARTNER, NOBODY, FOE = slice(0, 2), slice(2, 3), slice(3, 4)  # rows of `relations`


class PokemonDoublesNetwork(EntityNetwork):
    """See the module. `entity` is the width of an encoding, `hidden` that of trunk and LSTM."""

    def __init__(self, spec: GameSpec, entity: int = 64, hidden: int = 256) -> None:
        kinds, rest = divmod(spec.num_actions - PASS - TEAM, MOVES * TARGETS)
        if kinds < 1 or rest:
            raise ConfigError(
                f"The network pokemon needs 7 + 20 k actions for doubles; {spec.name} has {spec.num_actions}. "
                "Set network.name: mlp_lstm."
            )
        moves = [f"{whose}.{i}" for whose in ("move", "partner_move") for i in range(MOVES)]
        super().__init__(spec, entity, hidden, moves=moves, pooled=POOLED, kinds=kinds, plain=PASS)
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
        """As `EntityNetwork._read`: the teams, both slots' moves, who stands where; each move at each target."""
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
        """Who stands at each target, and what it is to the decider: [B, 5, E]."""
        relations = self.relations.to(standing.dtype)
        itself = relations[SELF_AND_PARTNER]
        own, foes = self.by_target(standing).unbind(1)
        own = own + torch.where(right, itself.flip(0), itself)  # left, right
        nobody = relations[NOBODY].expand(standing.shape[0], 1, -1)
        return torch.cat((own.flip(1), nobody, foes + relations[FOE]), dim=1)

    def _effects(self, low: Tensor) -> Tensor:
        """What each move does to each target, as far as the layout says: [B, 4, 5, n]."""
        blocks = self.moves(low)[:, :MOVES]
        left, right = (columns.read(blocks) for columns in self.against)
        unknown = torch.zeros_like(left)
        return torch.stack((unknown, unknown, (left + right) / 2, left, right), dim=2)
