"""The decorator of the loops that numba compiles: on the first call for its types, then read from a cache on disk.

numba asks only whether the file of a function has changed. The machine code of a function also holds that of the
functions it calls, so here the cache of every function is valid for one state of all files of this folder.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

from numba import njit

P = ParamSpec("P")
R = TypeVar("R")


def sources_digest(folder: Path) -> str:
    """SHA-256 of the Python files of a folder, in hex digits."""
    digest = hashlib.sha256()
    for file in sorted(folder.glob("*.py")):
        text = file.read_bytes()
        digest.update(f"{file.name} {len(text)}\n".encode() + text)
    return digest.hexdigest()


_SOURCES = sources_digest(Path(__file__).parent)


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Compile `function`. Where no cache folder can be written, every process compiles it again."""
    try:
        kept: Any = njit(cache=True, error_model="numpy")(function)
        kept._cache._cache_file._source_stamp = _SOURCES
    except (RuntimeError, AttributeError):  # no folder for the cache; a numba that keeps the stamp elsewhere
        kept = njit(error_model="numpy")(function)
    return cast(Callable[P, R], kept)
