"""Late imports of tests: every process of `make test` collects every file, and runs a part of them."""

from __future__ import annotations

import importlib
from typing import Any


class _LateModule:
    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("_"):  # pytest asks everything whether it is a test, or a mock
            raise AttributeError(attribute)
        return getattr(importlib.import_module(self._name), attribute)


def late(name: str) -> Any:
    """The module `name`, which is imported when the first of its attributes is read."""
    return _LateModule(name)
