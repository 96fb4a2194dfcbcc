"""The numbers that a `metrics_callback` returns: checked, then part of the run's next report of its curves."""

from __future__ import annotations

import math
import re
import threading
from collections.abc import Iterator, Mapping
from numbers import Real
from typing import Any

from simul.launch.monitoring.curves.figures import CURVES

MOST_NAMES = 100  # in a run: each is a column of curves.csv for good
LARGEST = 3.4e38  # TensorBoard keeps float32
RESERVED = frozenset(("decisions", "training_sec", "time", *(curve.partition("/")[0] for curve in CURVES)))
EXPECTED = "expected a dict of numbers by name, such as {'mine/x': 1.0}, or None"
EXPECTED_NAME = "expected at most 100 letters, digits, `_`, `-`, `.`, and `/` between them, such as mine/x"
_NAME = re.compile(r"[A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)*")
_LONGEST_NAME = 100  # characters
_SHOWN = 60  # characters of a name in a sentence


class CallbackFigures:
    """Filled by the thread of the callback, read by the supervisor's loop.

    What is not as expected is left out; the first time of each kind is a sentence.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._new: dict[str, float] = {}
        self._last: dict[str, float] = {}
        self._said: set[str] = set()

    @property
    def last(self) -> dict[str, float]:
        """The newest number of every name."""
        with self._lock:
            return dict(self._last)

    def add(self, returned: object) -> list[str]:
        """What the callback returned. Sentences, without their subject, about what is left out."""
        if returned is None:
            return []
        if not isinstance(returned, Mapping):
            return self._once("type", f"returned {_type(returned)}: {EXPECTED}")
        found: dict[str, float] = {}
        problems = list(self._check(returned, found))
        with self._lock:
            self._new |= found
            self._last |= found
        return [sentence for kind, words in problems for sentence in self._once(kind, words)]

    def take(self) -> dict[str, float]:
        """What came since the last call."""
        with self._lock:
            new, self._new = self._new, {}
        return new

    def _once(self, kind: str, words: str) -> list[str]:
        if kind in self._said:
            return []
        self._said.add(kind)
        return [f"{words}. It is left out, and so are others like it; training goes on."]

    def _check(self, returned: Mapping[Any, Any], found: dict[str, float]) -> Iterator[tuple[str, str]]:
        """(kind, words) of each entry that is not as expected; the others are put into `found`."""
        for name, value in returned.items():
            shown = ascii(name)[:_SHOWN]
            if not isinstance(name, str) or len(name) > _LONGEST_NAME or not _NAME.fullmatch(name):
                yield "name", f"returned the name {shown}: {EXPECTED_NAME}"
            elif name.partition("/")[0] in RESERVED:
                yield (
                    "clash",
                    f"returned the name {shown}: {name.partition('/')[0]} is a name of Simul's; choose another",
                )
            elif isinstance(value, bool) or not isinstance(value, Real):
                yield "value", f"returned {_type(value)} for {shown}: {EXPECTED}"
            elif not _is_finite(value):
                yield "finite", f"returned a number for {shown} that is not finite, or larger than {LARGEST:g}"
            elif name not in self._last and name not in found and len(self._last.keys() | found.keys()) >= MOST_NAMES:
                yield (
                    "many",
                    f"returned the name {shown} after {MOST_NAMES} others: expected at most {MOST_NAMES} names",
                )
            else:
                found[name] = float(value)


def _type(value: object) -> str:
    return f"a value of the type {type(value).__name__[:_SHOWN]}"


def _is_finite(value: Real) -> bool:
    try:
        return math.isfinite(value) and abs(float(value)) <= LARGEST
    except OverflowError:
        return False
