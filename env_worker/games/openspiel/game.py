"""OpenSpiel for the worker: the source and the spec of a registered game."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from simul.common.config.schema import Config
from simul.common.config.trust import NOTHING, Trust
from simul.common.errors import ConfigError, did_you_mean
from simul.common.protocol.specs import GameSpec
from simul.common.runtime.extras import install_extra
from simul.common.runtime.terminal_text import LINES, printable
from simul.env_worker.games.base.build import check_turn_game, turn_game_source
from simul.env_worker.games.base.source import TurnGameSource
from simul.env_worker.games.base.turn_game import TurnGame
from simul.env_worker.source import SourceOptions

MOST_STDERR = 65_536  # bytes


def build(config: Config, options: SourceOptions, trust: Trust = NOTHING) -> TurnGameSource:
    """The source of `openspiel.name`, checked, not yet started. Raises ConfigError."""
    return turn_game_source(game_builder(config), config, options, reward_scale=config.openspiel.reward_scale)


def spec(config: Config, trust: Trust = NOTHING) -> GameSpec:
    """The spec of `openspiel.name`. Raises ConfigError."""
    return check_turn_game(game_builder(config), config)


def game_builder(config: Config, trust: Trust = NOTHING) -> Callable[[], TurnGame]:
    """Builds one game. Raises ConfigError."""
    try:
        import pyspiel  # noqa: F401  (asked for here, where its absence becomes a sentence)
    except ImportError as error:
        raise ConfigError(
            f"The package open_spiel is not installed ({error}). Run: {install_extra('openspiel')}"
        ) from error
    from simul.env_worker.games.openspiel.adapter import OpenSpielGame

    game = load_game(config.openspiel.name, config.openspiel.parameters)
    return lambda: OpenSpielGame(game, config.openspiel.name)


@contextmanager
def _native_stderr_cleaned() -> Iterator[None]:
    """OpenSpiel's C++ writes parameters, which may be text of others, to stderr itself: they are made printable."""
    sys.stderr.flush()
    with tempfile.TemporaryFile() as written:
        own = os.dup(2)
        try:
            os.dup2(written.fileno(), 2)
            yield
        finally:
            os.dup2(own, 2)
            os.close(own)
            written.seek(0)
            sys.stderr.write(printable(written.read(MOST_STDERR).decode(errors="replace"), LINES))


def load_game(name: str, parameters: dict[str, Any]) -> Any:
    """A game that can be hosted. Raises ConfigError."""
    import pyspiel

    known = pyspiel.registered_names()
    if name not in known:
        hint = did_you_mean(name, known) or "."
        raise ConfigError(f"OpenSpiel knows no game {name!r}{hint} It has {len(known)} games, tic_tac_toe among them.")
    try:
        with _native_stderr_cleaned():
            game = pyspiel.load_game(name, parameters)
    except (pyspiel.SpielError, TypeError) as error:
        text = " ".join(str(error).split())[:300]
        raise ConfigError(f"openspiel.parameters do not fit the game {name}: {text}") from error
    kind, dynamics = game.get_type(), pyspiel.GameType.Dynamics
    refused = {dynamics.SIMULTANEOUS: "simultaneous moves", dynamics.MEAN_FIELD: "a mean field"}
    if what := refused.get(kind.dynamics):
        raise ConfigError(
            f"The OpenSpiel game {name} has {what}; expected a sequential game. OpenSpiel's "
            "turn_based_simultaneous_game makes sequential games of simultaneous ones."
            if kind.dynamics == dynamics.SIMULTANEOUS
            else f"The OpenSpiel game {name} has {what}; expected a sequential game."
        )
    if not (kind.provides_information_state_tensor or kind.provides_observation_tensor):
        raise ConfigError(f"The OpenSpiel game {name} offers no tensor that a network could read; choose another game.")
    return game
