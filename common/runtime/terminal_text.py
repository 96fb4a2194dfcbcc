"""Text of others on a terminal: escape sequences, controls and marks of direction are shown, not carried out."""

from __future__ import annotations

import json
import sys

LINES = "\n\t"  # for `keep`


def printable(text: str, keep: str = "") -> str:
    r"""`text` with all that is not printable as JSON escapes it, such as `\u001b`; JSON stays the same JSON.

    Not printable are controls, marks of direction, invisible characters, line separators and lone surrogates.

    `keep`: characters that stay, such as LINES where the text has several lines.
    """
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() or each in keep else json.dumps(each)[1:-1] for each in text)


def print_text(text: str) -> None:
    """Write lines to standard output, and flush it. Raises OSError."""
    sys.stdout.write(printable(text, LINES) + "\n")
    sys.stdout.flush()
