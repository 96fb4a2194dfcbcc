"""What one seat has been told of its foes, from the lines that it was sent; the audit's own reading of them."""

from __future__ import annotations

import copy
import re
from collections import defaultdict
from dataclasses import dataclass, field

from poke_env.data import to_id_str

TAG = re.compile(r"\[(from|of)\] ?(.*)")


@dataclass
class Facts:
    """Of one foe, by its name in the lines.

    Attributes:
        words: ids of all that lines which name it say.
        ability, item: as a line of its own gave it last, "" for none; None: never. (What is named as the cause of
            something else is among the words only.)
        moves: in the order in which it used them by itself; called: those that something else made it use.
    """

    words: set[str] = field(default_factory=set)
    ability: str | None = None
    item: str | None = None
    moves: list[str] = field(default_factory=list)
    called: set[str] = field(default_factory=set)


class Told:
    """`foe`: "p1" or "p2", the other seat."""

    def __init__(self, foe: str) -> None:
        self._ident = re.compile(rf"{foe}[abc]?: (.*)")
        self._facts: defaultdict[str, Facts] = defaultdict(Facts)
        self._lent: Told | None = None
        self.previewed = False  # team preview has shown its team

    def of(self, name: str) -> Facts:
        """What is known of the foe of that name."""
        return self._facts.get(name) or Facts()

    def copy(self) -> Told:
        """As it is now; one that hears nothing more is shared."""
        self._lent = self._lent or copy.deepcopy(self)
        return self._lent

    def hear(self, lines: str) -> None:
        for line in lines.split("\n"):
            _, kind, *parts = line.split("|") if line.startswith("|") else ("", "")
            self.previewed |= kind == "poke"
            tags = {match[1]: match[2] for part in parts if (match := TAG.match(part))}
            named = [self._name(part) for part in (*parts[:1], tags.get("of", ""), *parts[1:])]
            if any(named):
                self._lent = None
                self._take(kind, parts, tags, [name for name in named if name])

    def _name(self, text: str) -> str:
        found = self._ident.fullmatch(text)
        return found[1] if found else ""

    def _take(self, kind: str, parts: list[str], tags: dict[str, str], named: list[str]) -> None:
        said = {to_id_str(part.rpartition(": ")[2]) for part in (*parts[1:], *tags.values())}
        for name in named:
            self._facts[name].words |= said
        subject, cause = self._name(parts[0]), tags.get("from", "")
        robbed = self._name(tags.get("of", ""))
        if kind == "-item" and robbed and robbed != subject and cause != "ability: Frisk":
            self._facts[robbed].item = ""
        if not subject:
            return
        facts, what = self._facts[subject], to_id_str(parts[1].rpartition(": ")[2]) if len(parts) > 1 else ""
        if kind == "-ability":
            facts.ability = what
        elif kind in ("-item", "-enditem"):
            facts.item = what if kind == "-item" else ""
        elif kind == "-transform":
            facts.words.add("transform")
            facts.called.add("transform")
        elif kind == "move":
            if not cause and what not in facts.moves:
                facts.moves.append(what)
            elif cause:
                facts.called.add(what)
