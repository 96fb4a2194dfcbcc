"""Who plays in an evaluation, and by which configuration: checkpoints, bots, and their searches, before any process."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from simul.common.config.game_description import TABLE_PLAYER, Game
from simul.common.config.games import GAMES, game_called
from simul.common.config.loader import load_config, load_game
from simul.common.config.matchups import Contestant, distinct_labels
from simul.common.config.opponents import SCRIPTED, is_own, opponent_kind
from simul.common.config.schema import Config, OpponentsConfig
from simul.common.config.search import SearchConfig
from simul.common.config.trust import NOTHING, MarkedValue, Trust, programs_of, values_to_trust
from simul.common.errors import ConfigError
from simul.common.protocol.messages import LEARNER_POLICY
from simul.common.protocol.specs import GameSpec
from simul.common.runtime.installation import CONFIGS
from simul.launch.supervisor.checkpoint_files import checkpoint_labels, config_of, networks_of, newest_checkpoint

MOST_PLIES = 1000
LONGEST_NAME = 300  # characters of an engine with its arguments
OF_WORLDS = ("worlds", "candidates")  # settings of the search of policies that were trained without one
OF_ALL = ("outcome", "requests_in_flight", "return_scale", "symmetries")  # settings of the search of a whole worker


class Contestants(NamedTuple):
    """Who plays: the checkpoints in the order in which they were named, then the bots.

    Attributes:
        config: of the first checkpoint, else of the game of the bots; it has no opponents but these bots.
        networks: what the checkpoints name as networks; all of it is trusted.
        served: checkpoints by policy name; the first is `learner`.
    """

    config: Config
    networks: frozenset[MarkedValue]
    served: dict[str, Path]
    listed: list[Contestant]

    def searched(self) -> dict[str, str]:
        """Policies that search drawn worlds, by label."""
        return {
            each.label: each.policy
            for each in self.listed
            if each.policy and (each.search or self.config.search).worlds
        }

    def with_engines_named(self, *, folders: bool = False) -> Contestants:
        """Players that are programs have these as labels, with the arguments, and their folder where it is wanted."""
        programs = programs_of(self.config)
        names = {bot: line if folders else re.sub(r"^\S*/", "", line) for bot, line in programs.items() if line}
        labels = distinct_labels([names.get(each.bot, each.label)[:LONGEST_NAME] for each in self.listed])
        listed = [msgspec.structs.replace(each, label=label) for each, label in zip(self.listed, labels)]
        return self._replace(listed=listed)


class Conditions(NamedTuple):
    """Under which they play.

    Attributes:
        config: with the openings that were asked for.
        seats: of the game.
        mirrored: each game is played from every seat.
    """

    config: Config
    seats: int
    mirrored: bool


def find_contestants(
    checkpoints: Sequence[Path], opponents: Sequence[str], *, game: str = "", overrides: Sequence[str] = (),
    searches: Sequence[Sequence[str]] = (), trust: Trust = NOTHING, names: Sequence[str] = (),
) -> Contestants:  # fmt: skip
    """Arguments as of `evaluate`. `names`: of the checkpoints, in place of `checkpoint_labels`. Raises ConfigError."""
    folders = [newest_checkpoint(checkpoint) for checkpoint in checkpoints]
    config = config_of(folders[0], overrides, trust) if folders else _config_of_bots(game, opponents, overrides)
    networks = networks_of(folders, trust.and_also(values_to_trust(config)))
    bots = _check_game(config, len(folders), opponents, game)
    config = _with_opponents(config, bots)
    served = {LEARNER_POLICY if not index else f"eval/{index}": folder for index, folder in enumerate(folders)}
    labels = distinct_labels([*(names or checkpoint_labels(folders, searches)), *bots])
    words = [*searches, *[()] * (len(folders) - len(searches))]
    own = [_own_settings(config, folder, overrides, each, trust) for folder, each in zip(folders, words, strict=True)]
    listed = [
        *(
            Contestant(label, policy, search=settings[0], points_of_value=settings[1])
            for label, policy, settings in zip(labels, served, own)
        ),
        *(Contestant(label, bot=bot) for label, bot in zip(labels[len(folders) :], bots)),
    ]
    return Contestants(config, networks, served, listed)


def _with_opponents(config: Config, bots: Sequence[str]) -> Config:
    """With `bots` as the only opponents: the game refuses those that it cannot have, and runs no others."""
    evaluation = msgspec.structs.replace(config.evaluation, every_decisions=0, opponents=tuple(dict.fromkeys(bots)))
    opponents = OpponentsConfig(limit_sec=config.opponents.limit_sec)
    return msgspec.structs.replace(config, opponents=opponents, evaluation=evaluation)


def _config_of_bots(name: str, opponents: Sequence[str], overrides: Sequence[str]) -> Config:
    """The configuration of the game `name`, or the shipped one of the first game that has all of `opponents`.

    Raises ConfigError.
    """
    with_bots = {name: game for name, game in GAMES.items() if game.pairings and game.scripted}
    config = load_game(name, overrides) if name else None  # first: a misspelt name is the fault to tell
    if config is not None and config.game_section.seats() == 1:
        raise ConfigError(f"The game {config.game_title} has one seat and no opponents; name one --checkpoint.")
    bots = opponents if config is not None else [opponent_kind(opponent, SCRIPTED) for opponent in opponents]
    if len(bots) < 2:
        raise ConfigError(f"Name a --checkpoint. Bots play without one, two of them or more: {_bots_of(with_bots)}.")
    if config is not None:
        return config
    if own := [bot for bot in bots if is_own(bot)]:
        raise ConfigError(f"Name the game that {own[0]} plays: simul eval GAME --opponent {' --opponent '.join(bots)}.")
    for game in with_bots.values():
        if set(bots) <= set(game.scripted):
            return load_config(CONFIGS / f"{game.configuration}.yaml", overrides)
    raise ConfigError(f"No game has all of the opponents {', '.join(bots)}: {_bots_of(with_bots)}.")


def _bots_of(games: Mapping[str, Game]) -> str:
    return "; ".join(f"{name}: --opponent {' --opponent '.join(game.scripted)}" for name, game in games.items())


def _check_game(config: Config, checkpoints: int, opponents: Sequence[str], named: str) -> list[str]:
    """The kinds of `opponents`. Raises ConfigError. `named`: the game on the command line, empty for none."""
    game = game_called(config.game)
    if checkpoints and named not in ("", config.game, game.configuration):
        raise ConfigError(f"The checkpoint is of the game {config.game}, not {named}. Leave {named} out.")
    if not game.pairings and (opponents or checkpoints > 1):
        raise ConfigError(
            f"The game {config.game_title} has no opponents; leave --opponent out, and name one --checkpoint."
        )
    if game.pairings and game.seats and checkpoints == 1 and not opponents:
        raise ConfigError(f"Name an opponent, or a second --checkpoint: --opponent {', '.join(game.scripted)}.")
    return [opponent_kind(name, game.scripted) for name in opponents]


def _own_settings(
    config: Config, checkpoint: Path, overrides: Sequence[str], settings: Sequence[str], trust: Trust
) -> tuple[SearchConfig | None, float | None]:
    """`search` and `points_of_value` of the checkpoint as a contestant, with `settings`. Raises ConfigError."""
    algorithm = config.learner.algorithm
    for setting in settings:
        key = setting.partition("=")[0]
        if key in OF_ALL:
            raise ConfigError(f"#{setting}: all contestants have one {key}; use --set search.{setting}.")
        if (key in OF_WORLDS) == (algorithm == "alphazero"):
            wanted = "simulations=64, say" if algorithm == "alphazero" else "worlds=60 and candidates=4, say"
            raise ConfigError(
                f"#{setting}: the first checkpoint was trained with the algorithm {algorithm}, whose policies have no "
                f"such setting of a search. Leave it out, or set {wanted}."
            )
    own = config_of(checkpoint, [*overrides, *(f"search.{setting}" for setting in settings)], trust)
    search = msgspec.structs.replace(own.search, **{key: getattr(config.search, key) for key in OF_ALL})
    points = own.points_of_value
    return None if search == config.search else search, None if points == config.points_of_value else points


def find_conditions(
    contestants: Contestants, spec: GameSpec, *, mirror: bool, duplicate: bool = False, openings: int | None = None
) -> Conditions:
    """Arguments as of `evaluate`. Raises ConfigError where the game has no such conditions."""
    config, count = contestants.config, len(contestants.listed)
    seats = config.game_section.seats() or spec.seats
    if seats == 1 and count > 1:
        raise ConfigError(f"The game {spec.name} has one seat and no opponents; name one --checkpoint.")
    mirrored = mirror and config.game_section.draws_seeds()
    _check_seats(config, seats, duplicate=duplicate, mirrored=mirrored)
    return Conditions(_with_openings(config, openings, seats, count), seats, mirrored)


def _with_openings(config: Config, plies: int | None, seats: int, contestants: int) -> Config:
    """With `plies` of `--openings`. Raises ConfigError where the game begins with none."""
    if plies is None:
        return config
    if plies > MOST_PLIES:
        raise ConfigError(f"--openings: expected at most {MOST_PLIES} plies, got {plies}.")
    if plies and (game_called(config.game).player != TABLE_PLAYER or seats == 1 or contestants < 2):
        raise ConfigError(
            f"--openings: only games of a table begin with drawn plies, and only with two contestants or more; this is "
            f"{config.game_title} with {contestants}. Leave --openings out."
        )
    evaluation = msgspec.structs.replace(config.evaluation, openings=plies)
    return msgspec.structs.replace(config, evaluation=evaluation)


def _check_seats(config: Config, seats: int, *, duplicate: bool, mirrored: bool) -> None:
    """Raises ConfigError where games of one seat, or with chance of others, are to be played from every seat."""
    if duplicate and (seats == 1 or not mirrored):
        why = "has one seat" if seats == 1 else "is dealt by a server"
        raise ConfigError(f"The game {config.game_title} {why}: nothing can be dealt again; leave --duplicate out.")
