"""The refused rows of one message: an ERROR for each reason, but few of them however many rows are wrong."""

from __future__ import annotations

from collections.abc import Iterator

MOST_TEXTS = 16  # more replies at once would fill the queue of a client that reads


class Refusals:
    """Rows by code and text."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, str], list[int]] = {}

    def add(self, code: str, text: str, *rows: int) -> None:
        """Note refused rows."""
        if (code, text) not in self._rows and len(self._rows) >= MOST_TEXTS:
            text = f"rows of one message were refused for many reasons; {MOST_TEXTS} of them are told"
        self._rows.setdefault((code, text), []).extend(rows)

    def __iter__(self) -> Iterator[tuple[str, str, list[int]]]:
        """(code, text, rows) of each ERROR."""
        for (code, text), rows in self._rows.items():
            yield code, text, rows
