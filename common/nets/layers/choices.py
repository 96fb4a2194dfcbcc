"""Options of networks that name one of a few things."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from simul.common.errors import ConfigError


def did_you_mean(value: object, known: Iterable[str]) -> str:
    """`; did you mean NAME?`, of the nearest name; empty where none is near."""
    close = difflib.get_close_matches(str(value), tuple(known), 1)
    return f"; did you mean {close[0]}?" if close else ""


def check_choice(option: str, value: object, choices: Iterable[str]) -> None:
    """Raises ConfigError, with the nearest name, where `value` is none of `choices`."""
    known = tuple(choices)
    if value in known:
        return
    raise ConfigError(f"{option}: expected one of {', '.join(known)}, got {value!r}{did_you_mean(value, known)}")
