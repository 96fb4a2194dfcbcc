"""TurnGame: one running game with any number of seats, in the words of OpenSpiel's State and PettingZoo's AEC."""

from __future__ import annotations

import copy
import random
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from simul.common.protocol.specs import GameSpec
from simul.env_worker.games.base.action_names import action_of_name, help_of_names, listed_names

CHANCE = -1  # acts where the next event is drawn


class IllegalActionError(ValueError):
    """An action that the seat may not take now."""


class TurnGame(ABC):
    """One running game. An env is one object, reset for every episode:

        game.reset(seed)
        while seats := game.acting():
            game.apply({seat: choose(game.observation(seat), game.mask(seat)) for seat in seats})
        game.returns()

    The seed and the actions applied, chance's included, determine the whole game.

    Attributes:
        spec: observation layout, number of actions and seats; the same for every episode.
        hidden_information: True where a seat does not see all of the game. The algorithm `alphazero` refuses such a
            game: its search would look into what is hidden.
        draws_in_apply: True where `apply` draws from the seed, instead of leaving that to events of chance. Refused,
            too: the search would see what will be drawn.
        deterministic: True where its actions alone determine it: no chance events, and nothing drawn from the seed.
            Greedy players then repeat one game for ever, so its evaluations begin with drawn plies.
        symmetries: ways to turn an observation, numbered from 0, the identity.
        styles: for people at a terminal: regular expressions of parts of `render` -> their style, in rich's words.
    """

    spec: GameSpec
    hidden_information: bool = False
    draws_in_apply: bool = False
    deterministic: bool = False
    symmetries: int = 1
    styles: ClassVar[Mapping[str, str]] = {}

    @abstractmethod
    def reset(self, seed: int) -> None:
        """A new game. What the game draws itself comes from `seed` alone."""

    def set_progress(self, share: float) -> None:  # noqa: B027 - most games stay as they are
        """Before `reset`, in training alone: the share of the run's horizon that is learned, 0 to 1.

        For a curriculum: a game may begin easy, or pay for less than its score, and change while the policy learns.
        """

    @abstractmethod
    def acting(self) -> Sequence[int]:
        """Seats that must act now, ascending; several act at once. (CHANCE,) before a chance event, () when over."""

    @abstractmethod
    def observation(self, seat: int) -> NDArray[Any]:
        """Wire dtype [D]: what `seat` knows and nothing hidden from it. Of any seat at any time; a fresh array."""

    @abstractmethod
    def legal_actions(self, seat: int) -> NDArray[np.intp]:
        """Ids, ascending, at least one, of a seat that acts now."""

    def count_legal(self, seat: int) -> int:
        """How many `legal_actions` there are; a game overrides it where counting is faster than listing."""
        return len(self.legal_actions(seat))

    @abstractmethod
    def apply(self, actions: Mapping[int, int]) -> None:
        """One action of each acting seat, or {CHANCE: event}. Raises IllegalActionError and changes nothing."""

    @abstractmethod
    def returns(self) -> Sequence[float]:
        """[seats]: rewards of each seat since `reset`, added up."""

    def learned_returns(self) -> Sequence[float]:
        """[seats]: what is learned from, added up; `returns` unless a setting of the game makes a difference."""
        return self.returns()

    def opponent_label(self, seat: int) -> Sequence[int]:
        """[K]: what its opponents did when `seat` last acted, 0 to C - 1 each, -1 = not known; or nothing at all.

        K and C are `spec.opponent_labels` and `spec.opponent_classes`; asked only where K is not 0, before `seat` acts
        again and at the end. A network that predicts it learns from it (`learner.opponent_coefficient`).
        """
        return ()

    def ending(self, seat: int, end: Self) -> NDArray[np.uint8]:
        """[E]: what `end`, this game when it was over, tells `seat` of this position, see `GameSpec.ending_planes`.

        Asked only where the spec has one. A network that predicts it learns from it (`learner.ending_coefficient`).
        """
        raise NotImplementedError(f"{self.spec.name} does not tell how it ended")

    def truncated(self) -> bool:
        """True where the game was cut short, by a limit of moves, say; of a game that is over."""
        return False

    def seat_truncated(self, seat: int) -> bool:
        """Likewise of one seat, where some may have ended before: its final observation is bootstrapped from."""
        return self.truncated()

    def mask(self, seat: int) -> NDArray[np.uint8]:
        """uint8 [A], 1 = legal; of a seat that acts now."""
        mask = np.zeros(self.spec.num_actions, np.uint8)
        mask[self.legal_actions(seat)] = 1
        return mask

    def chance_outcomes(self) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        """Events [K] that chance may draw now and their probabilities [K]. Not of games with too many to list."""
        raise NotImplementedError(f"{self.spec.name} does not list chance outcomes")

    def draw_chance(self, draw: random.Random) -> int:
        """An event, drawn from `chance_outcomes`."""
        events, probabilities = self.chance_outcomes()
        return int(draw.choices(events.tolist(), probabilities.tolist())[0])

    def clone(self) -> Self:
        """An independent copy; its chance events are drawn alike."""
        return copy.deepcopy(self)

    def determinize(self, seat: int, draw: random.Random) -> Self:
        """A copy in which all that `seat` does not know is drawn anew: a world that it may be in (`search.worlds`).

        `seat` observes the same in it, and what it does not know, such as hidden cards and what the seed brings next,
        has no influence on it. A game overrides it, unless its actions alone determine it.
        """
        if self.hidden_information or not self.deterministic:
            raise NotImplementedError(
                f"{self.spec.name} has no determinize, which draws anew what a seat does not know"
            )
        return self.clone()

    def action_values(self, seat: int, draw: random.Random) -> NDArray[np.float64] | None:
        """float64 [K]: what each legal action of `seat`, which acts, is worth by what it knows; None: not counted.

        A game overrides it where it can count better than a search, such as at its end. `draw`: of what is sampled.
        """
        return None

    def after(self, action: int) -> Position:
        """A copy in which the one seat that acts took `action`, a legal one, and what it shows.

        A game overrides it where one compiled call does all of this.
        """
        game = self.clone()
        game.apply({self.acting()[0]: action})
        return position_of(game)

    def turn_observation(self, observation: NDArray[Any], symmetry: int) -> NDArray[Any]:
        """[D]: the observation of the position that `symmetry` makes of the one that is observed."""
        return observation

    def turn_ending(self, ending: NDArray[np.uint8], symmetry: int) -> NDArray[np.uint8]:
        """[E]: the ending as the position that `symmetry` makes has it."""
        return ending

    def turn_actions(self, symmetry: int) -> NDArray[np.intp]:
        """[A]: the id that each action has in the position that `symmetry` makes."""
        return np.arange(self.spec.num_actions)

    def figures(self) -> Mapping[str, Sequence[float]]:
        """Facts of a game that is over, [seats] each, whose means the view and the curves show."""
        return {}

    def action_name(self, seat: int, action: int) -> str:
        """The action as a person writes it."""
        return str(action)

    def shown_action(self, seat: int, action: int) -> str:
        """The action as every seat sees it; a game overrides it where part of it is hidden. Empty: nothing is seen.

        Events of chance, which may be hidden cards, are not seen by default.
        """
        return "" if seat == CHANCE else self.action_name(seat, action)

    def action_help(self, seat: int) -> str:
        """How a person writes an action of `seat` now, in a line."""
        return help_of_names(self._action_names(seat))

    def list_actions(self, seat: int, about: str = "") -> str:
        """The legal actions as lines of text, of those that `about` is a part of; what `list ABOUT` prints."""
        return listed_names(self._action_names(seat), about)

    def parse_action(self, seat: int, text: str) -> int:
        """The legal action that a person means. Raises ValueError with a sentence."""
        return action_of_name(self._action_names(seat), text)

    def _action_names(self, seat: int) -> dict[int, str]:
        return {action: self.action_name(seat, action) for action in self.legal_actions(seat).tolist()}

    def render(self, seat: int | None = None) -> str:
        """The position as text; as `seat` sees it, or with everything hidden shown."""
        return f"{self.spec.name}: {list(self.acting())} to act"

    def svg(self, seat: int | None = None) -> str:
        """The position as a picture; empty: the game has none."""
        return ""


class Position(NamedTuple):
    """A position of a game, as a search sees it.

    Attributes:
        acting: as `TurnGame.acting`.
        actions, observation: int64 [K], ascending, and wire dtype [D], of the seat that acts; without meaning where
            none, chance, or several act.
    """

    game: TurnGame
    acting: Sequence[int]
    actions: NDArray[np.int64]
    observation: NDArray[Any]


def position_of(game: TurnGame) -> Position:
    """What `game` shows now."""
    acting = game.acting()
    if len(acting) != 1 or acting[0] == CHANCE:
        return Position(game, acting, np.empty(0, np.int64), np.empty(0, game.spec.dtype()))
    actions = np.array(game.legal_actions(acting[0]), np.int64)
    return Position(game, acting, actions, game.observation(acting[0]))


class Player(Protocol):
    """A scripted opponent. It may read the game, but not what `seat` does not know, and never changes it."""

    def choose(self, game: TurnGame, seat: int, draw: random.Random) -> int:
        """One of `game.legal_actions(seat)`."""
