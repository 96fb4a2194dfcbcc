"""Opponents of the user's own in any TurnGame: classes with `choose(game, seat, draw) -> action`."""

from __future__ import annotations

import operator
import random
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from simul.common.config.named_class import load_class
from simul.common.config.trust import Trust
from simul.common.errors import ConfigError
from simul.common.runtime.error_place import describe_error
from simul.env_worker.games.base.players import Players
from simul.env_worker.games.base.turn_game import IllegalActionError, TurnGame

CALLERS = frozenset({__file__})


class OwnPlayer:
    """A Player that `make` makes; an illegal action of it is its own error, not the game's."""

    def __init__(self, make: Callable[[], Any], name: str) -> None:
        self._name = name
        self._player = make()
        _check_chooses(self._player, name)

    def choose(self, game: TurnGame, seat: int, draw: random.Random) -> int:
        """What the player chooses. Raises IllegalActionError."""
        chosen = self._player.choose(game, seat, draw)
        legal = game.legal_actions(seat).tolist()
        if chosen not in legal:
            number = f"{len(legal)} legal actions" if len(legal) > 1 else "1 legal action"
            raise IllegalActionError(f"{self._name} chose {chosen!r:.80}; expected one of {number}, such as {legal[0]}")
        return operator.index(chosen)

    def close(self) -> None:
        """Close the player, where it can be."""
        if callable(close := getattr(self._player, "close", None)):
            close()


def own_players(names: Sequence[str], trust: Trust) -> Players:
    """The players called module:Class. Raises ConfigError."""
    found = {name: load_class(name, "player", trust=trust) for name in names}
    for name, each in found.items():
        _check_chooses(each if isinstance(each, type) else None, name)
    return {name: partial(OwnPlayer, each, name) for name, each in found.items()}


def check_own_players(names: Sequence[str], trust: Trust) -> None:
    """Make each of the players once. Raises ConfigError."""
    for name, make in own_players(names, trust).items():
        try:
            make()
        except ConfigError:
            raise
        except Exception as error:
            raise ConfigError(f"The opponent {name} cannot be made: {describe_error(error, CALLERS)}.") from error


def _check_chooses(found: Any, name: str) -> None:
    if found is not None and not callable(getattr(found, "choose", None)):
        raise ConfigError(f"The opponent {name} has no choose(game, seat, draw), which answers with a legal action.")
