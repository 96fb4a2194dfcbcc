"""Opponents of a game whose number of seats only its spec says: dropped or refused where it has one seat. Pure."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from simul.common.config.game_description import POLICIES
from simul.common.config.opponents import is_own
from simul.common.config.schema import NOT_KINDS, Config, OpponentsConfig
from simul.common.errors import ConfigError
from simul.common.protocol.specs import GameSpec

EVALUATION = "evaluation.opponents"
SHARES = "opponents"


def settle_opponents(config: Config, spec: GameSpec, written: Mapping[str, str]) -> tuple[Config, list[str]]:
    """The configuration with opponents that the game can have, and sentences about those that were dropped.

    A game of one seat has none: those that a shipped configuration brings are dropped.

    Args:
        written: what to leave out by dotted key, for the keys that the user wrote: see `load_config`.

    Raises:
        ConfigError: the user wrote opponents that the game cannot have, or an evaluation lacks them.
    """
    dropped = [key for key in _asked(config) if not _place(key, written)] if spec.seats == 1 else []
    if dropped:
        config = _without(config, dropped)
    check_opponents(config, spec, written)
    if not dropped:
        return config, []
    return config, [f"{spec.name} has one seat; defaults left out: {', '.join(dropped)}"]


def check_opponents(config: Config, spec: GameSpec, written: Mapping[str, str] | None = None) -> None:
    """Raise ConfigError where opponents are configured that the game cannot have, or an evaluation lacks them."""
    if spec.seats == 1 and (asked := _asked(config)):
        places = dict.fromkeys(_place(key, written or {}) or key for key in asked)
        raise ConfigError(f"The game {spec.name} has one seat and no opponents; leave out {', '.join(places)}.")
    if spec.seats > 1 and config.evaluation.every_decisions and not config.evaluation.opponents:
        raise ConfigError(
            f"The game {spec.name} has {spec.seats} seats: it is evaluated against opponents. Name some in "
            f"{EVALUATION}, such as random."
        )


def _asked(config: Config) -> list[str]:
    """Dotted keys that ask for opponents."""
    shares = config.opponents.shares()
    keys = [f"{SHARES}.{name}" for name, share in shares.items() if share and name != POLICIES[0]]
    return [*keys, *([EVALUATION] if config.evaluation.opponents else [])]


def _place(key: str, written: Mapping[str, str]) -> str:
    """What the user wrote for `key`, or for the section around it; "" for a default."""
    section, _, name = key.partition(".")
    return written.get(key) or written.get(f"{section}.classes.{name}") or written.get(section, "")


def _without(config: Config, keys: list[str]) -> Config:
    """`config` without these; where no share is left that the user wrote, the current policy plays all games."""
    evaluation, shares = config.evaluation, config.opponents.shares()
    if EVALUATION in keys:
        evaluation = msgspec.structs.replace(evaluation, opponents=())
    left = {name: share for name, share in shares.items() if f"{SHARES}.{name}" not in keys}
    if not any(share for name, share in left.items() if name != POLICIES[0]):
        left = {POLICIES[0]: 1.0}
    own = {name: share for name, share in left.items() if is_own(name)}
    named = {name: share for name, share in left.items() if name not in own}
    settings = {key: getattr(config.opponents, key) for key in NOT_KINDS}
    opponents = OpponentsConfig(**{**settings, **named, "classes": own})
    return msgspec.structs.replace(config, opponents=opponents, evaluation=evaluation)
