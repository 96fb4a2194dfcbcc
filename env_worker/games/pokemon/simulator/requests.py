"""Requests put together again from what a host says of them; see sim_host/requests.mjs."""

from __future__ import annotations

from typing import Any


class Teams:
    """The team of every seat as its last request described it.

    An entry that a request does not change is the very object of the request before: nobody may change one.
    """

    def __init__(self) -> None:
        self._entries: dict[tuple[int, int], list[dict[str, Any]]] = {}

    def complete(self, battle: int, seat: int, request: dict[str, Any] | None) -> None:
        """Put whole entries into the next request of a seat; None: it was the last."""
        key = (battle, seat)
        if request is None:
            self._entries.pop(key, None)
            return
        before, side = self._entries.get(key, []), request["side"]
        side["pokemon"] = self._entries[key] = [_entry(said, before) for said in side["pokemon"]]

    def forget(self, battle: int) -> None:
        """A battle is over."""
        for seat in (0, 1):
            self._entries.pop((battle, seat), None)


def _entry(said: Any, before: list[dict[str, Any]]) -> dict[str, Any]:
    if isinstance(said, int):
        return before[said]
    if isinstance(said, list):
        k, changed = said
        return {**before[k], **changed}
    entry: dict[str, Any] = said
    return entry
