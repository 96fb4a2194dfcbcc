"""What the rest of the system must know about a game without importing its code. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from simul.common.config.section import Rule, Section

TABLE_PLAYER = "simul.env_worker.terminal"  # plays any TurnGame, behind `simul play` and `simul watch`
FROZEN = "frozen"  # the policy of `opponents.checkpoint`, and its folder in checkpoints/
POLICIES = ("self_play", "past", FROZEN)  # opponents that a policy plays; all others are scripted
PAST_SELVES = "past/"  # prefix of the policies that are past selves


@dataclass(frozen=True, kw_only=True)
class Game:
    """A game as validation, launcher and view see it. The defaults are those of a single-player game.

    Attributes:
        configuration: a shipped configuration that plays it, by name.
        seats: players of one env; the game's spec says the same. 0: only the spec says it.
        opponents: kinds that the section `opponents` may give a share to.
        short_names: of scripted opponents, short to full.
        networks: built-in networks made for this game's observation, beside those for any: name -> what it reads.
        episodes: what its episodes are called, plural.
        learner_preset: defaults of the section `learner`, a name of `simul.common.config.learner_presets`.
        variant: key of its section whose value follows the slash in the spec's name; "": the name has no slash.
        pairings: True if its source plays the pairings of an evaluation (`simul.common.config.matchups`).
        replays: True if its source writes replays.
        search: True if its workers can play by search and send samples, which `alphazero` learns from.
        player: module of the process behind `simul play`; "": the game cannot be played so.
        checks: module that prints the game's findings for `simul doctor`, each as a line of JSON; "": there are none.
        packages: distributions whose versions a run's summary states.
        data: what else goes into a policy that learns it, with its licence, for the card of an entry of a zoo.
        least_workers: env workers of `workers.count: auto`, also on a machine with fewer cores.
        worker_mib: memory of an env worker and what it starts, for the same.
        in_every_fingerprint: True if its section and opponents count in the fingerprint of every configuration. Later
            games leave it out, so that adding one changes no fingerprint.
        beside_play: keys of its section that change nothing about who wins: rewards, processes, how games are sent.
    """

    configuration: str = ""
    seats: int = 1
    opponents: tuple[str, ...] = POLICIES[:1]
    short_names: Mapping[str, str] = field(default_factory=dict)
    networks: Mapping[str, str] = field(default_factory=dict)
    episodes: str = "episodes"
    learner_preset: str = "small games"
    variant: str = ""
    pairings: bool = False
    replays: bool = False
    search: bool = False
    player: str = ""
    checks: str = ""
    packages: tuple[str, ...] = ()
    data: str = ""
    least_workers: int = 1
    worker_mib: int = 400
    in_every_fingerprint: bool = False
    beside_play: tuple[str, ...] = ()

    @property
    def scripted(self) -> tuple[str, ...]:
        """Its opponents that need no network."""
        return tuple(kind for kind in self.opponents if kind not in POLICIES)


class GameSection(Section, frozen=True):
    """Base of a game's own section. This class itself stands for a game of one's own, which has no section."""

    description: ClassVar[Game] = Game(
        opponents=(*POLICIES, "random"), seats=0, pairings=True, replays=True, search=True, player=TABLE_PLAYER
    )  # fmt: skip

    def seats(self) -> int:
        """Players of one env, as configured; 0: only the game's spec says it."""
        return self.description.seats

    def broken_rules(self) -> Iterator[Rule]:
        """Rules over several keys of this section that it breaks; each sentence gives the reason."""
        yield from ()

    def network_problem(self, network: str) -> str:
        """Why the built-in network of this name cannot read the game as it is configured; "" where it can."""
        return ""

    def label_problem(self) -> str:
        """Why its workers, as configured, do not know what the opponent does; "" where they know it, if the game has
        labels of it at all.
        """
        return ""

    def returns_problem(self) -> str:
        """Why a return is not the outcome of a game (1 won, 0 tied, -1 lost), as a clause; "" where it may be."""
        return ""

    def draws_seeds(self) -> bool:
        """True if the workers draw the seeds of all chance, so that a game can be played again with exchanged seats."""
        return True
