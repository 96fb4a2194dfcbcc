"""An OpenSpiel game as a TurnGame."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
import pyspiel
from numpy.typing import NDArray

from simul.common.protocol.specs import GameSpec
from simul.env_worker.games.base.board_text import numbered_board
from simul.env_worker.games.base.turn_game import CHANCE, IllegalActionError, TurnGame

EMPTY = "."
BARE_BOARD = frozenset(f"{EMPTY}xo\n")  # of a text without coordinates
SEED_PARAMETERS = ("rng_seed", "seed")  # of games that draw their chance events themselves


class OpenSpielGame(TurnGame):
    """One state of a sequential game. Observations are information-state tensors where the game has them.

    Args:
        game: loaded, sequential, with tensors: see `load_game`.
        name: as configured, for the spec.
    """

    def __init__(self, game: Any, name: str) -> None:
        kind = game.get_type()
        self._game = game
        self._state = game.new_initial_state()
        self._informed = kind.provides_information_state_tensor
        self.hidden_information = kind.information != pyspiel.GameType.Information.PERFECT_INFORMATION
        self.deterministic = kind.chance_mode == pyspiel.GameType.ChanceMode.DETERMINISTIC
        self.draws_in_apply = kind.chance_mode == pyspiel.GameType.ChanceMode.SAMPLED_STOCHASTIC
        shape = game.information_state_tensor_shape() if self._informed else game.observation_tensor_shape()
        image = len(shape) == 3
        self.spec = GameSpec(
            name=f"openspiel/{name}", observation_size=int(np.prod(shape)), num_actions=game.num_distinct_actions(),
            seats=game.num_players(), observation_shape=tuple(shape) if image else (),
            observation_axes="CHW" if image else "",
        )  # fmt: skip

    def reset(self, seed: int) -> None:
        """A new state. A game that draws its own chance events is loaded again with the seed."""
        if self.draws_in_apply:
            parameters = self._game.get_parameters()
            known = self._game.get_type().parameter_specification
            parameters |= {name: seed for name in SEED_PARAMETERS if name in known}
            self._game = pyspiel.load_game(self._game.get_type().short_name, parameters)
        self._state = self._game.new_initial_state()

    def acting(self) -> Sequence[int]:
        """One seat, (CHANCE,) or ()."""
        if self._state.is_terminal():
            return ()
        return (CHANCE if self._state.is_chance_node() else self._state.current_player(),)

    def observation(self, seat: int) -> NDArray[np.float32]:
        """float32 [D]: the seat's tensor."""
        state = self._state
        tensor = state.information_state_tensor(seat) if self._informed else state.observation_tensor(seat)
        return np.array(tensor, np.float32)

    def legal_actions(self, seat: int) -> NDArray[np.intp]:
        """Ids, ascending."""
        return np.array(self._state.legal_actions(seat), np.intp)

    def apply(self, actions: Mapping[int, int]) -> None:
        """The action of the seat to move, or chance's event. Raises IllegalActionError."""
        acting = self.acting()
        if tuple(actions) != tuple(acting):
            raise IllegalActionError(f"expected an action of {list(acting)}, got actions of {list(actions)}")
        action = actions[acting[0]]
        if action not in self._state.legal_actions():
            raise IllegalActionError(f"action {action} is not legal; expected one of {self._state.legal_actions()}")
        self._state.apply_action(action)

    def returns(self) -> Sequence[float]:
        """[seats]."""
        returns: Sequence[float] = self._state.returns()
        return returns

    def chance_outcomes(self) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        """Events [K] and their probabilities [K]."""
        outcomes = self._state.chance_outcomes()
        return np.array([event for event, _ in outcomes], np.intp), np.array([p for _, p in outcomes])

    def clone(self) -> Self:
        """An independent copy of the state; the game is shared."""
        copy = object.__new__(type(self))
        copy.__dict__.update(self.__dict__)
        copy._state = self._state.clone()
        return copy

    def determinize(self, seat: int, draw: random.Random) -> Self:
        """As `TurnGame.determinize`, by the game's own resampling where a seat does not see all of it."""
        if self.draws_in_apply:
            raise NotImplementedError(f"{self.spec.name} draws its chance events itself, so they cannot be drawn anew")
        other = self.clone()
        if self.hidden_information:
            try:
                other._state = self._state.resample_from_infostate(seat, draw.random)
            except pyspiel.SpielError as error:
                raise NotImplementedError(f"{self.spec.name} cannot draw anew what a seat does not know") from error
        return other

    def action_name(self, seat: int, action: int) -> str:
        """In the game's own words."""
        return str(self._state.action_to_string(seat, action))

    def shown_action(self, seat: int, action: int) -> str:
        """Nothing in a game of hidden information: OpenSpiel does not say who sees which part of an action."""
        return "" if self.hidden_information else self.action_name(seat, action)

    def render(self, seat: int | None = None) -> str:
        """The game's own text; of a game without text for one seat, the whole position.

        A bare board, such as that of tic-tac-toe, gets the numbers of its rows and columns, and whose which mark is.
        """
        kind = self._game.get_type()
        seat = seat if self.hidden_information else None  # the text for one seat may be the list of moves
        if seat is not None and kind.provides_information_state_string:
            return str(self._state.information_state_string(seat))
        if seat is not None and kind.provides_observation_string:
            return str(self._state.observation_string(seat))
        text = str(self._state)
        rows = text.splitlines()
        bare = set(text) <= BARE_BOARD and len(rows) > 1 and len({len(row) for row in rows}) == 1
        if not bare:
            return text
        legend = ", ".join(f"{mark}: seat {seat}" for seat, mark in self._marks().items())
        return f"{numbered_board(rows)}\n{legend}" if legend else numbered_board(rows)

    def _marks(self) -> dict[int, str]:
        """The mark that each seat's first move puts on the board, by seat; of others nothing is said."""
        state, found = self._game.new_initial_state(), {}
        for _ in range(self.spec.seats):
            if state.is_terminal() or state.is_chance_node():
                break
            seat, before = state.current_player(), Counter(str(state))
            state.apply_action(state.legal_actions()[0])
            new = [mark for mark in Counter(str(state)) - before if mark != EMPTY]
            if len(new) == 1:
                found[seat] = new[0]
        return found if len(set(found.values())) == len(found) else {}
