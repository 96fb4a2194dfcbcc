"""Texts of a run's files, cut to what the page shows: a file may hold a text of any length."""

from __future__ import annotations

TEXT_LETTERS = 500
LABEL_LETTERS = 100


def short_text(text: str) -> str:
    """A sentence, or a name that stands alone."""
    return _cut(text, TEXT_LETTERS)


def short_label(text: str) -> str:
    """A label of a table."""
    return _cut(text, LABEL_LETTERS)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}..."
