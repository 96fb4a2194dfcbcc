"""`pokemon`: an entity network (`pokemon_base`) for singles, and by its side the one for doubles (`pokemon_doubles`).

It needs a layout with blocks `own.0..5.*`, `foe.0..5.*` and `move.0..3.*`, in the order of the actions:
0-5 switch to own.i, then groups of four use move.i: plain (6-9), mega, Z, dynamax, tera.
"""

from __future__ import annotations

from torch import Tensor

from simul.common.nets.layers.functions import mean_and_max
from simul.common.nets.models.pokemon_base import MOVES, TEAM, EntityNetwork
from simul.common.nets.models.pokemon_doubles import PokemonDoublesNetwork
from simul.common.protocol.errors import ConfigError
from simul.common.protocol.specs import GameSpec


def pokemon_network(spec: GameSpec, entity: int = 64, hidden: int = 256) -> EntityNetwork:
    """The network `pokemon` that fits a layout: two decide for a side where a partner's moves are observed."""
    doubles = any(part.name.startswith("partner_move.") for part in spec.layout)
    return (PokemonDoublesNetwork if doubles else PokemonNetwork)(spec, entity, hidden)


class PokemonNetwork(EntityNetwork):
    """Singles. `entity` is the width of an encoding, `hidden` that of trunk and LSTM."""

    def __init__(self, spec: GameSpec, entity: int = 64, hidden: int = 256) -> None:
        kinds, rest = divmod(spec.num_actions - TEAM, MOVES)
        if kinds < 1 or rest:
            raise ConfigError(
                f"The network pokemon needs 6 + 4 k actions; {spec.name} has {spec.num_actions}. "
                "Set network.name: mlp_lstm."
            )
        moves = [f"move.{i}" for i in range(MOVES)]
        shows_active = any(part.name == "own.0.active" for part in spec.layout)
        super().__init__(spec, entity, hidden, moves=moves, pooled=6 + 2 * shows_active, kinds=kinds, plain=0)
        self.active = self.pokemon.column("active")

    def _read(self, low: Tensor, sides: Tensor, moves: Tensor) -> tuple[list[Tensor], Tensor]:
        """As `EntityNetwork._read`: the teams, the moves, who is active; the moves themselves."""
        pooled = [part.flatten(1) for part in (*mean_and_max(sides), *mean_and_max(moves))]
        if self.active >= 0:
            active = self.pokemon(low)[:, :, self.active].unflatten(1, (2, 1, TEAM))
            pooled.append((active @ sides).flatten(1))
        return pooled, moves
