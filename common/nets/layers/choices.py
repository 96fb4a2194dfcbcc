"""Options of networks that name one of a few things."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from simul.common.errors import ConfigError


def check_choice(option: str, value: object, choices: Iterable[str]) -> None:
    """Raises ConfigError, with the nearest name, where `value` is none of `choices`."""
    known = tuple(choices)
    if value in known:
        return
    close = difflib.get_close_matches(str(value), known, 1)
    hint = f"; did you mean {close[0]}?" if close else ""
    raise ConfigError(f"{option}: expected one of {', '.join(known)}, got {value!r}{hint}")
