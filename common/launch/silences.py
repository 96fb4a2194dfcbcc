"""Sentences about processes that say nothing. Rare ones: on a loaded machine reports are late all the time. Pure."""

from __future__ import annotations

TOLD_AFTER_SEC = 10.0  # what is shorter stands in the table of processes, and pushes no other event out
TOLD_EVERY_SEC = 60.0  # of one process, so seldom


class Silences:
    """Who was said to be silent, and what is left to say."""

    def __init__(self) -> None:
        self._silent_since: dict[str, float] = {}  # of which was said that they are silent
        self._told_at: dict[str, float] = {}
        self._sentences: list[str] = []

    def note(self, name: str, silent_sec: float | None, now: float) -> None:
        """The process `name` said nothing for so long; None for one that is dead, or need not speak yet."""
        if silent_sec is None:
            self._silent_since.pop(name, None)
        elif name in self._silent_since:
            if silent_sec < TOLD_AFTER_SEC:
                lasted_sec = now - silent_sec - self._silent_since.pop(name)
                self._sentences.append(f"{name} speaks again, after {lasted_sec:.0f} s")
        elif silent_sec >= TOLD_AFTER_SEC and now - self._told_at.get(name, -TOLD_EVERY_SEC) >= TOLD_EVERY_SEC:
            self._silent_since[name] = now - silent_sec
            self._told_at[name] = now
            why = "it hangs, or the machine is overloaded"
            self._sentences.append(f"{name} says nothing for {silent_sec:.0f} s: {why}")

    def take(self) -> list[str]:
        """Sentences since the last call."""
        sentences, self._sentences = self._sentences, []
        return sentences
