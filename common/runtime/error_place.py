"""Where an exception of a user's code was raised: its file and line."""

from __future__ import annotations

import os
import site
import sysconfig
import traceback
from collections.abc import Collection, Sequence

_LIBRARIES = (
    *{*site.getsitepackages(), sysconfig.get_path("stdlib"), sysconfig.get_path("purelib")}, "<frozen ",
)  # fmt: skip


def place_of(error: BaseException, callers: Collection[str]) -> str:
    """`FILE:LINE` of the user's code that raised: its innermost line outside of libraries. Empty: a caller raised.

    Args:
        callers: paths of Simul's own files that call the user's code; their lines are left out.
    """
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename.removeprefix(os.getcwd() + os.sep)}:{error.lineno}"
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename not in callers]
    return innermost_place(frames)


def innermost_place(frames: Sequence[traceback.FrameSummary]) -> str:
    """`FILE:LINE` of the innermost of `frames` outside of libraries, else of the innermost one; "" where there is none.

    A file below the working directory is relative to it.
    """
    own = [frame for frame in frames if not is_library(frame.filename)] or frames
    if not own:
        return ""
    path, here = own[-1].filename, os.getcwd() + os.sep
    return f"{path.removeprefix(here)}:{own[-1].lineno}"


def is_library(filename: str) -> bool:
    """Whether a file belongs to Python or to an installed package."""
    return filename.startswith(_LIBRARIES)


def describe_error(error: BaseException, callers: Collection[str]) -> str:
    """`FILE:LINE: TYPE: MESSAGE`, without the place where a caller raised."""
    place = place_of(error, callers)  # comes first: the view cuts long lines
    return f"{place}: {type(error).__name__}: {error}" if place else f"{type(error).__name__}: {error}"
