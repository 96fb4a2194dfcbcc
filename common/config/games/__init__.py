"""The built-in games: the one table of them. A new game needs a file beside this one and a line in `GamesConfig`."""

from __future__ import annotations

from collections.abc import Mapping

from simul.common.config.game_description import Game, GameSection
from simul.common.config.games.blokus import BlokusConfig
from simul.common.config.games.gymnasium import GymnasiumConfig
from simul.common.config.games.ofc import OfcConfig
from simul.common.config.games.openspiel import OpenSpielConfig
from simul.common.config.games.pettingzoo import PettingZooConfig
from simul.common.config.games.pokemon import PokemonConfig
from simul.common.config.section import RunConfig


class GamesConfig(RunConfig, frozen=True):
    """A section for each built-in game, named as `game` selects it and as its folder in env_worker/games/ is called."""

    pokemon: PokemonConfig = PokemonConfig()
    gymnasium: GymnasiumConfig = GymnasiumConfig()
    openspiel: OpenSpielConfig = OpenSpielConfig()
    pettingzoo: PettingZooConfig = PettingZooConfig()
    ofc: OfcConfig = OfcConfig()
    blokus: BlokusConfig = BlokusConfig()

    @property
    def game_section(self) -> GameSection:
        """The section of the configured game; for a game of one's own, which has none, the base of all."""
        section: GameSection = getattr(self, self.game) if self.game in GAMES else GameSection()
        return section

    @property
    def game_title(self) -> str:
        """The game as it is named on a command line: `openspiel:tic_tac_toe`, `gymnasium:CartPole-v1`, `ofc`."""
        section = self.game_section
        variant = section.description.variant
        return f"{self.game}:{getattr(section, variant)}" if variant else self.game


def game_called(name: str) -> Game:
    """The description of the game that `game: name` selects; a game of one's own has a default one."""
    return GAMES.get(name, GameSection.description)


GAMES: Mapping[str, Game] = {
    name: section.description
    for name in GamesConfig.__struct_fields__
    if isinstance(section := getattr(GamesConfig(), name), GameSection)
}
