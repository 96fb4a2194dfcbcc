"""Options of networks that name one of a few things."""

from __future__ import annotations

from collections.abc import Iterable

from simul.common.errors import ConfigError, did_you_mean


def check_choice(option: str, value: object, choices: Iterable[str]) -> None:
    """Raises ConfigError, with the nearest name, where `value` is none of `choices`."""
    known = tuple(choices)
    if value in known:
        return
    raise ConfigError(f"{option}: expected one of {', '.join(known)}, got {value!r}{did_you_mean(value, known)}")
