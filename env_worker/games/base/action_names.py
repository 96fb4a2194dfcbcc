"""Actions by their names, as a person at a terminal writes them."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Mapping

MOST_LISTED = 60
_NEAR = 3  # names that an error suggests
_LONGEST = 60  # characters of a person's text in an error


def action_of_name(names: Mapping[int, str], text: str) -> int:
    """The action with this name, else the only one whose name has `text` as a part of whole words.

    Raises ValueError with a sentence.
    """
    wanted = _plain(text)
    found = [action for action, name in names.items() if _plain(name) == wanted]
    if not found and wanted:
        part = re.compile(rf"(?<!\w){re.escape(wanted)}(?!\w)")
        found = [action for action, name in names.items() if part.search(_plain(name))]
    if len(found) == 1:
        return found[0]
    if found:
        raise ValueError(f"{shortened(text)} may be {_some([names[action] for action in found])}; write one of them")
    near = difflib.get_close_matches(wanted, [_plain(name) for name in names.values()], _NEAR, 0.3)
    close = [name for name in names.values() if _plain(name) in near] or list(names.values())
    raise ValueError(f"there is no legal action {shortened(text)}; expected one such as {_some(close)}")


def listed_names(names: Mapping[int, str], about: str) -> str:
    """Names that have `about` in them, a line each, MOST_LISTED at most."""
    found = [name for name in names.values() if _plain(about) in _plain(name)]
    if not found:
        return f"none of the {len(names)} legal actions has {shortened(about)} in its name"
    lines = found[:MOST_LISTED]
    if len(found) > MOST_LISTED:
        lines.append(f"... {len(found) - MOST_LISTED} more of {len(found)}; `list TEXT` shows those with TEXT in them")
    return "\n".join(lines)


def help_of_names(names: Mapping[int, str]) -> str:
    """How an action is written, in a line, with some that can be written as they stand."""
    times = Counter(_plain(name) for name in names.values())
    known = [name for name in names.values() if times[_plain(name)] == 1 and len(name) <= _LONGEST]
    such_as = f", such as {_some(known)}" if known else ""
    return f"Write an action by its name, or a part of it{such_as}; `list` shows the legal ones, {len(names)} now."


def shortened(text: str) -> str:
    """A person's text in quotes, for an error."""
    text = text.strip()
    return repr(text if len(text) <= _LONGEST else f"{text[:_LONGEST]}...")


def _plain(name: str) -> str:
    return " ".join(name.casefold().split())


def _some(names: list[str]) -> str:
    return ", ".join(names[:_NEAR]) + (", ..." if len(names) > _NEAR else "")
