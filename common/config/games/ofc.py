"""Open Face Chinese in the configuration: its section, and what the rest of the system knows about it."""

from __future__ import annotations

from typing import ClassVar, Literal

from simul.common.config.automatic import AUTO
from simul.common.config.game_description import POLICIES, TABLE_PLAYER, Game, GameSection
from simul.common.config.section import NonNegativeFloat, Positive, PositiveFloat

# To a network that takes any rules.
INSTEAD = "Set network.name=mlp_lstm and network.options={hidden: 256, layers: 2, memory: false}."


class OfcConfig(GameSection, frozen=True):
    """A table of Open Face Chinese, Pineapple."""

    description: ClassVar[Game] = Game(
        configuration="ofc", seats=0, opponents=(*POLICIES, "random", "rule_based", "fantasy_rules", "monte_carlo"),
        short_names={"rule": "rule_based", "fantasy": "fantasy_rules", "mc": "monte_carlo"},
        networks={"ofc": "reads the observation of Open Face Chinese"}, episodes="games", pairings=True, replays=True,
        player=TABLE_PLAYER, beside_play=("foul_cost", "final_foul_cost", "reward_scale"),
    )  # fmt: skip

    players: Literal[2, 3] = 3
    hands: Positive = 1  # regular hands of an episode; the hands in Fantasyland that follow them come on top
    fantasyland: bool = True
    stay: Literal["trips_or_quads", "full_house_too"] = "trips_or_quads"  # three of a kind on top, quads in the bottom
    progressive: bool = False  # Fantasyland deals 14 cards for queens, 15 kings, 16 aces, 17 three of a kind; else 14
    jokers: Literal[0, 1, 2] = 0
    button: Literal["random", "last"] = "random"  # of the first hand; it acts last
    stay_value: NonNegativeFloat = 10.0  # points that staying counts where a hand in Fantasyland is set
    foul_cost: NonNegativeFloat = 0.0  # points that a foul costs beside the score, in what is learned from only
    final_foul_cost: NonNegativeFloat | Literal["auto"] = AUTO  # at learner.total_decisions; auto: as foul_cost
    rollouts: Positive = 50  # of each candidate action of the opponent monte_carlo
    rollouts_by: Literal["rule_based", "fantasy_rules"] = "rule_based"  # whose estimate plays them out
    reward_scale: PositiveFloat = 0.1  # of the points that are learned from

    def seats(self) -> int:
        return self.players

    def returns_problem(self) -> str:
        return "Open Face Chinese pays points"

    def network_problem(self, network: str) -> str:
        if network != "ofc" or not self.jokers:
            return ""
        return f"ofc.jokers is {self.jokers}; the network ofc reads a deck without jokers. {INSTEAD}"
