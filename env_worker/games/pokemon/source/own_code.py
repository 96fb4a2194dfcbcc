"""Observation and reward of one's own: `module:Class` and `module:function` of the user's, which read poke-env's
`Battle` of a seat.

    class MyObservation:
        size = 12                                   # floats that embed_battle returns
        names = ("speed", ...)                      # optional: one for each of them

        def embed_battle(self, battle) -> Sequence[float]: ...     # (self, battle, slot): which slot decides, 0 or 1

    def my_reward(battle, before, seat, parts) -> float: ...     # declares those that it wants, by name
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray
from poke_env.battle.abstract_battle import AbstractBattle

from simul.common.config.games.pokemon import PokemonConfig
from simul.common.config.named_class import load_class
from simul.common.config.trust import NOTHING, Trust
from simul.common.errors import ConfigError, EnvError
from simul.common.protocol.specs import GameSpec, Slice
from simul.common.runtime.error_place import describe_error, place_of
from simul.common.runtime.finite import describe_not_finite
from simul.env_worker.games.base.checks import MOST_REWARD
from simul.env_worker.games.pokemon.formats.spec import is_doubles, pokemon_spec
from simul.env_worker.games.pokemon.source.rewards import PARTS
from simul.env_worker.games.pokemon.tables import doubles_layout

CALLERS = frozenset({__file__})
MOST_NUMBERS = 65_536  # of one observation
SLICE = "user"  # of the observation's layout
GIVEN = ("battle", "before", "seat", "parts")  # what a reward's function may ask for


class OwnCodeError(EnvError):
    """The user's code, or poke-env's `Battle` that it reads, failed in one battle. Caught by the source, which aborts
    it. The sentence names file and line."""


class OwnObservation:
    """`pokemon.observation`. One object serves all battles of a process.

    Attributes:
        size: numbers of the vector.
        names: of each, or none.
        beside: True = the vector follows the built-in row, False = it stands alone.
    """

    def __init__(self, name: str, trust: Trust, *, beside: bool, doubles: bool) -> None:
        """Raises ConfigError where `name` cannot be loaded, or declares no observation."""
        made = load_class(name, trust=trust)
        if not isinstance(made, type):
            raise ConfigError(
                f"pokemon.observation: {name} is a {type(made).__name__}; expected a class with `size` and "
                "`embed_battle(self, battle)`."
            )
        self.name = name
        self.beside = beside
        self._place = _place(made)
        right = [part.start for part in doubles_layout.slices() if part.name == "global.right"]
        self._right = right[0] if doubles else None  # of the built-in row: 1.0 = the right slot decides
        try:
            self._user: Any = made()
            size, names = getattr(self._user, "size", None), getattr(self._user, "names", None)
            listed = None if names is None else tuple(names)
        except (Exception, SystemExit) as error:
            place = "" if place_of(error, CALLERS) else f"{self._place}: "
            raise ConfigError(
                f"pokemon.observation: {name} failed: {place}{describe_error(error, CALLERS)}."
            ) from error
        self.size = self._checked_size(size)
        self.names = self._checked_names(listed)
        self._wants_slot = self._check_embed()

    def spec(self, builtin: GameSpec) -> GameSpec:
        """The spec of the game with this observation; its numbers are float32."""
        start = builtin.observation_size if self.beside else 0
        meaning = "of the user's"  # not by its class's name, which is a part of no checkpoint
        mine = [
            Slice(f"{SLICE}.{name}", start + at, 1, low=-1.0, meaning=meaning) for at, name in enumerate(self.names)
        ] or [Slice(SLICE, start, self.size, low=-1.0, meaning=meaning)]
        labels = (
            (builtin.opponent_labels, builtin.opponent_classes) if self.beside else (0, 0)
        )  # of the layout's blocks
        return msgspec.structs.replace(
            builtin, observation_size=start + self.size, observation_dtype="float32",
            layout=(*(builtin.layout if self.beside else ()), *mine),
            opponent_labels=labels[0], opponent_classes=labels[1],
        )  # fmt: skip

    def observe(self, builtin: NDArray[np.float16], battle: AbstractBattle) -> NDArray[np.float32]:
        """float32 [D]: what is sent of a decision. `builtin`: the host's row. Raises OwnCodeError."""
        given = {"slot": 0 if self._right is None else int(builtin[self._right])} if self._wants_slot else {}
        try:
            said = self._user.embed_battle(battle, **given)
        except (Exception, SystemExit) as error:
            raise OwnCodeError(describe_error(error, CALLERS)) from error
        try:
            with np.errstate(over="ignore"):
                vector = np.asarray(said, np.float32)
        except (TypeError, ValueError, OverflowError):
            raise OwnCodeError(
                f"{self._place}: embed_battle returned {said!r:.80}; expected {self.size} numbers"
            ) from None
        if vector.shape != (self.size,):
            raise OwnCodeError(
                f"{self._place}: embed_battle returned the shape {vector.shape}; expected ({self.size},), the `size` "
                f"of {self.name}"
            )
        if not np.isfinite(vector).all():
            raise OwnCodeError(f"{self._place}: embed_battle of {self.name}: {self._describe_not_finite(vector)}")
        return np.concatenate((builtin, vector), dtype=np.float32) if self.beside else vector

    def _describe_not_finite(self, vector: NDArray[np.float32]) -> str:
        first = int(np.flatnonzero(~np.isfinite(vector))[0])
        named = f" ({self.names[first]})" if self.names else ""
        return describe_not_finite(vector) + named

    def _check_embed(self) -> bool:
        """Whether embed_battle asks for `slot`. Raises ConfigError where it cannot be called with a battle."""
        embed: Any = getattr(self._user, "embed_battle", None)
        expected = f"`def embed_battle(self, battle)` that returns {self.size} numbers"
        if not callable(embed):
            raise ConfigError(
                f"pokemon.observation: {self.name} has no embed_battle ({self._place}); expected {expected}."
            )
        signature = inspect.signature(embed)
        wants_slot = "slot" in signature.parameters
        try:
            signature.bind(None, **({"slot": 0} if wants_slot else {}))
        except TypeError as error:
            raise ConfigError(
                f"pokemon.observation: {self.name}.embed_battle{signature} ({self._place}): {error}; "
                f"expected {expected}."
            ) from None
        if inspect.iscoroutinefunction(embed):
            raise ConfigError(
                f"pokemon.observation: {self.name}.embed_battle is a coroutine ({self._place}); expected {expected}."
            )
        return wants_slot

    def _checked_size(self, size: Any) -> int:
        if isinstance(size, bool) or not isinstance(size, int | np.integer) or not 1 <= size <= MOST_NUMBERS:
            raise ConfigError(
                f"pokemon.observation: {self.name}.size is {size!r} ({self._place}); expected how many numbers "
                f"embed_battle returns, 1 to {MOST_NUMBERS}."
            )
        return int(size)

    def _checked_names(self, found: tuple[Any, ...] | None) -> tuple[str, ...]:
        if found is None:
            return ()
        if len(found) != self.size or len(set(found)) != self.size or not all(isinstance(n, str) and n for n in found):
            raise ConfigError(
                f"pokemon.observation: {self.name}.names has {len(found)} entries ({self._place}); expected "
                f"{self.size} different names, one for each number, or none at all."
            )
        return found


class OwnReward:
    """`pokemon.reward`.

    Attributes:
        name: of the part in figures and curves: the function's.
        wants_before: True = the battle is copied at every decision.
    """

    def __init__(self, name: str, trust: Trust) -> None:
        """Raises ConfigError where `name` cannot be loaded, or is no function of what is given."""
        made = load_class(name, "function", trust=trust)
        if isinstance(made, type):
            raise ConfigError(
                f"pokemon.reward: {name} is a class; expected a function such as "
                f"`def {name.rpartition(':')[2].lower()}(battle, before, seat, parts)` that returns a number."
            )
        self.name = name.rpartition(":")[2].rpartition(".")[2]
        self._place = _place(made)
        if self.name in PARTS:
            raise ConfigError(
                f"pokemon.reward: {name} is named as a part of pokemon.rewards, {self.name}, under which figures and "
                "curves show that one; give the function another name."
            )
        self._function: Callable[..., Any] = made
        self._wants = self._wanted(name)
        self.wants_before = "before" in self._wants

    def pay(
        self, battle: AbstractBattle, before: AbstractBattle | None, seat: int, parts: Mapping[str, float]
    ) -> float:  # fmt: skip
        """What a seat earned since its last decision. Raises OwnCodeError."""
        given = dict(zip(GIVEN, (battle, before, seat, parts)))
        try:
            said = self._function(**{name: given[name] for name in self._wants})
        except (Exception, SystemExit) as error:
            raise OwnCodeError(describe_error(error, CALLERS)) from error
        try:
            reward = float(said)
        except (TypeError, ValueError, OverflowError):
            raise OwnCodeError(f"{self._place}: {self.name} returned {said!r:.80}; expected a number") from None
        if not abs(reward) <= MOST_REWARD:  # also NaN
            raise OwnCodeError(
                f"{self._place}: {self.name} returned {reward:g}; expected a finite number, at most {MOST_REWARD:.2g}"
            )
        return reward

    def _wanted(self, name: str) -> tuple[str, ...]:
        try:
            parameters = inspect.signature(self._function).parameters.values()
        except (TypeError, ValueError):  # a builtin
            return GIVEN[:1]
        if any(each.kind is each.VAR_KEYWORD for each in parameters):
            return GIVEN
        if any(each.kind is each.POSITIONAL_ONLY for each in parameters) or inspect.iscoroutinefunction(self._function):
            raise ConfigError(
                f"pokemon.reward: {name} ({self._place}) is a coroutine, or has parameters that cannot be given by "
                f"name; expected a function of any of {', '.join(GIVEN)}, such as `def {self.name}(battle)`."
            )
        unknown = [each.name for each in parameters if each.name not in GIVEN and each.default is each.empty]
        if unknown:
            raise ConfigError(
                f"pokemon.reward: {name} asks for {', '.join(unknown)} ({self._place}); expected any of "
                f"{', '.join(GIVEN)}, by these names."
            )
        return tuple(each.name for each in parameters if each.name in GIVEN)


class OwnCode(NamedTuple):
    """What a configuration names; at least one of the two."""

    observation: OwnObservation | None
    reward: OwnReward | None

    def spec(self, builtin: GameSpec) -> GameSpec:
        """The spec of the game as its policies observe it."""
        return builtin if self.observation is None else self.observation.spec(builtin)


def observed_spec(config: PokemonConfig, trust: Trust = NOTHING) -> GameSpec:
    """The spec of the configured game, with the user's observation where one is named. Raises ConfigError."""
    builtin, own = pokemon_spec(config), own_code(config, trust)
    return builtin if own is None else own.spec(builtin)


def own_code(config: PokemonConfig, trust: Trust = NOTHING) -> OwnCode | None:
    """The user's code that `config` names, None where it names none. Raises ConfigError."""
    if not config.observation and not config.reward:
        return None
    return OwnCode(
        OwnObservation(
            config.observation, trust, beside=config.builtin_observation, doubles=is_doubles(config.format)
        ) if config.observation else None,
        OwnReward(config.reward, trust) if config.reward else None,
    )  # fmt: skip


def _place(made: Any) -> str:
    """`FILE:LINE` of a class or function."""
    try:
        file, (_, line) = inspect.getsourcefile(made), inspect.getsourcelines(made)
    except (OSError, TypeError):
        return str(getattr(made, "__module__", "?"))
    return f"{str(file).removeprefix(os.getcwd() + os.sep)}:{line}"
