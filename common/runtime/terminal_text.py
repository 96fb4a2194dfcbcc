"""Text of others on a terminal: escape sequences, controls and marks of direction are shown, not carried out."""

from __future__ import annotations


def printable(text: str, keep: str = "") -> str:
    r"""`text` with escapes such as `\x1b` for all that is not printable: controls, marks of direction, surrogates.

    `keep`: characters that stay, such as a newline where the text has several lines.
    """
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() or each in keep else _escaped(each) for each in text)


def _escaped(letter: str) -> str:
    return letter.encode("unicode_escape").decode()
