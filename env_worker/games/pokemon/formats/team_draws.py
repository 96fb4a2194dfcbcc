"""The teams of each battle, from lists that were read or from a Teambuilder of the user's."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from simul.common.config.games.pokemon import PokemonConfig
from simul.common.config.named_class import load_class
from simul.common.config.opponents import is_own
from simul.common.config.trust import NOTHING, Trust
from simul.common.errors import ConfigError, FailingEnvError
from simul.common.runtime.error_place import describe_error
from simul.env_worker.games.pokemon.formats.teams import TeamText, legal_teams, read_teams
from simul.env_worker.games.pokemon.host.backend import BattleBackend
from simul.env_worker.games.pokemon.host.node_host import NodeHost
from simul.env_worker.games.pokemon.install.node import find_node

KEPT = 4096  # teams of a Teambuilder that are known to be legal
_CALLERS = frozenset({__file__})
Pair = tuple[str, str]


class TeamSource(Protocol):
    """One setting's teams."""

    def draw(self, rng: random.Random) -> str:
        """A legal team, packed."""

    def close(self) -> None:
        """End what it started."""


class TeamList:
    """Teams that were read from files. Equal generators draw equally."""

    def __init__(self, packed: Sequence[str]) -> None:
        self._packed = packed

    def draw(self, rng: random.Random) -> str:
        return rng.choice(self._packed)

    def close(self) -> None:
        """There is nothing to end."""


class OwnTeambuilder:
    """A Teambuilder of the user's, asked for a team before each battle; it draws by itself, without our seeds.

    Each team is validated when it is first seen: the first one by `host`, the others by a simulator of their own,
    which does not make them wait behind battles.

    Args:
        key: of the configuration.
        name: its module:Class.
    """

    def __init__(self, key: str, name: str, config: PokemonConfig, host: BattleBackend, trust: Trust) -> None:
        self._key, self._name = key, name
        self._config = config
        self._validator: NodeHost | None = None
        self._builder = self._built(load_class(name, "Teambuilder", trust=trust))
        self._first = self._yielded()
        self._legal = {self._first: self._packed(host, self._first)}

    def draw(self, rng: random.Random) -> str:
        """Raises FailingEnvError where the Teambuilder raises, or its team is not legal: that ends the run."""
        try:
            return self._next()
        except ConfigError as error:
            raise FailingEnvError(str(error)) from error

    def close(self) -> None:
        validator, self._validator = self._validator, None
        if validator is not None:
            validator.close()

    def _next(self) -> str:
        text, self._first = self._first or self._yielded(), ""
        packed = self._legal.get(text)
        if packed is None:
            if len(self._legal) >= KEPT:
                self._legal.clear()
            packed = self._legal[text] = self._validated(text)
        return packed

    def _built(self, builder_class: Any) -> Any:
        try:
            builder = builder_class()
        except Exception as error:
            what = describe_error(error, _CALLERS)
            raise ConfigError(
                f"{self._key}: {self._name} cannot be built: {what}. It is called without arguments."
            ) from error
        if not callable(getattr(builder, "yield_team", None)):
            raise ConfigError(
                f"{self._key}: {self._name} has no method yield_team; expected a Teambuilder of poke-env's, or the "
                "path of a file or folder of teams."
            )
        return builder

    def _yielded(self) -> str:
        try:
            team = self._builder.yield_team()
        except Exception as error:
            raise ConfigError(
                f"{self._key}: {self._name} raised in yield_team: {describe_error(error, _CALLERS)}."
            ) from error
        if not isinstance(team, str) or not team.strip():
            found = repr(team) if isinstance(team, str) else f"a {type(team).__name__}"
            raise ConfigError(
                f"{self._key}: yield_team of {self._name} returned {found}; expected a team as text, packed "
                "(Teambuilder.join_team) or as Showdown exports it."
            )
        return team

    def _packed(self, host: BattleBackend, text: str) -> str:
        return legal_teams(host, self._config.format, [TeamText(self._name, text)], self._key)[0]

    def _validated(self, text: str) -> str:
        if self._validator is None:
            self._validator = NodeHost(find_node().path, accelerate=self._config.accelerate)
            self._validator.start()
        return self._packed(self._validator, text)


class TeamDraws:
    """The two teams of each battle.

    `teams` are the learner's, `opponents` the others'; without `opponents` everybody draws from `teams`.
    """

    def __init__(self, teams: TeamSource, opponents: TeamSource | None = None) -> None:
        self._teams = teams
        self._opponents = opponents
        self._mirrored: dict[tuple[int, int], Pair] = {}  # of pairs whose other battle is still to come

    @classmethod
    def opened(cls, config: PokemonConfig, host: BattleBackend, trust: Trust = NOTHING) -> TeamDraws | None:
        """As configured, all legal so far; None for a format that draws teams itself. Raises ConfigError."""
        teams = open_teams(config, host, trust)
        opponents = None
        if config.opponent_teams:
            opponents = _opened("pokemon.opponent_teams", config.opponent_teams, config, host, trust)
        return None if teams is None else cls(teams, opponents)

    def draw(
        self, rng: random.Random, of_learner: tuple[bool, bool], mirror: tuple[int, int] | None = None
    ) -> tuple[str, str]:
        """The teams at p1 and p2. The two battles of a mirrored pair have the same ones.

        With two lists a mirrored pair's teams go with the contestants, which change seats; with one they stay at the
        seats, so that each contestant plays both.
        """
        turned = self._opponents is not None and of_learner == (False, True)  # the learner's team is drawn first
        drawn = self._mirrored.pop(mirror, None) if mirror is not None else None
        if drawn is None:
            first, second = reversed(of_learner) if turned else of_learner
            drawn = self._source(of_learner=first).draw(rng), self._source(of_learner=second).draw(rng)
            if mirror is not None:
                self._mirrored[mirror] = drawn
        return (drawn[1], drawn[0]) if turned else drawn

    def close(self) -> None:
        """End what the two started."""
        for source in (self._teams, self._opponents):
            if source is not None:
                source.close()

    def _source(self, *, of_learner: bool) -> TeamSource:
        return self._teams if of_learner or self._opponents is None else self._opponents


def open_teams(config: PokemonConfig, host: BattleBackend, trust: Trust) -> TeamSource | None:
    """The learner's teams; None for a format that draws them. Raises ConfigError."""
    return _opened("pokemon.teams", config.teams, config, host, trust)


def names_class(value: str) -> bool:
    """Whether a setting names a class; a path that exists is a path, even with a colon in it."""
    return is_own(value) and not Path(value).exists()


def check_battles(config: PokemonConfig, trust: Trust = NOTHING) -> None:
    """Start a simulator and check that the configured battles can be played. Raises ConfigError."""
    host = NodeHost(find_node().path, accelerate=config.accelerate)
    host.start()
    try:
        TeamDraws.opened(config, host, trust)
    finally:
        host.close()


def _opened(key: str, value: str, config: PokemonConfig, host: BattleBackend, trust: Trust) -> TeamSource | None:
    if names_class(value):
        return OwnTeambuilder(key, value, config, host, trust)
    packed = legal_teams(host, config.format, read_teams(value, key), key)
    return TeamList(packed) if packed else None
