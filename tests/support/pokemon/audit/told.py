"""What one seat has been told of its foes, from the lines that it was sent; the audit's own reading of them."""

from __future__ import annotations

import copy
import re
from collections import defaultdict
from dataclasses import dataclass, field

from poke_env.data import to_id_str

TAG = re.compile(r"\[(from|of)\] ?(.*)")
ACTING = {"-activate", "-start", "cant"}  # their first part names what acts
CAUSED = ACTING | {"-damage", "-fail", "-fieldstart", "-formechange", "-heal", "-setboost", "-status", "-weather"}
CAUSED |= {"-block", "-clearboost", "-copyboost"}
MOVING = {"hospitality", "lingeringaroma", "mummy", "symbiosis", "wanderingspirit"}  # their lines name two Pokemon
USED_UP = re.compile(r"Berry|Herb|Gem$")


@dataclass
class Facts:
    """Of one foe, by its name in the lines.

    Attributes:
        words: ids of all that lines which name it say.
        ability, item: as a line gave it last, also as a cause of something else, "" for none; None: never.
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
        self._out = ""  # who came in last
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
            if any(named) or parts[:1] == [""]:
                self._lent = None
                self._take(kind, parts, tags, [name for name in named if name])

    def _name(self, text: str) -> str:
        found = self._ident.fullmatch(text)
        return found[1] if found else ""

    def _take(self, kind: str, parts: list[str], tags: dict[str, str], named: list[str]) -> None:
        said = {to_id_str(part.rpartition(": ")[2].removeprefix("[ability] ")) for part in (*parts[1:], *tags.values())}
        for name in named:
            self._facts[name].words |= said | ({"transform"} if kind == "-transform" else set())
        subject, cause = self._name(parts[0]), tags.get("from", "")
        robbed = self._name(tags.get("of", ""))
        if kind in ("switch", "drag", "replace") and subject:
            self._out = subject
        if kind == "-item" and not parts[0] and not robbed:
            subject = self._out  # Frisk of gens 4 and 5 names nobody
        if kind == "-item" and robbed and robbed != subject and cause != "ability: Frisk":
            self._facts[robbed].item = ""
        if kind == "-activate" and parts[1:2] == ["ability: Symbiosis"] and subject and robbed:
            self._facts[subject].item, self._facts[robbed].item = "", to_id_str(parts[2])
        if not subject:
            self._take_cause(kind, parts, tags)
            return
        facts, what = self._facts[subject], to_id_str(parts[1].rpartition(": ")[2]) if len(parts) > 1 else ""
        self._take_cause(kind, parts, tags)
        if kind == "-ability":
            facts.ability = what
        elif kind in ("-item", "-enditem"):
            facts.item = what if kind == "-item" else ""
        elif kind in ("-mega", "-burst", "-primal") and (stone := parts[-1 if kind == "-primal" else 2]):
            facts.item = to_id_str(stone)
        elif kind == "-activate" and what == "symbiosis" and robbed:
            self._facts[robbed].item, facts.item = to_id_str(parts[2]), ""
        elif kind == "-activate" and what == "leppaberry":
            if (fed := to_id_str(parts[2])) not in facts.moves:
                facts.moves.append(fed)
        elif kind == "-transform":
            facts.called.add("transform")
        elif kind == "move":
            if not cause and what not in facts.moves:
                facts.moves.append(what)
            elif cause:
                facts.called.add(what)

    def _take_cause(self, kind: str, parts: list[str], tags: dict[str, str]) -> None:
        """What a line names as its cause, or as what acts; of whom `[of]` says, but for what heals."""
        acts = parts[1] if kind in ACTING and len(parts) > 1 else ""
        cause, owner = acts or tags.get("from", ""), parts[0]
        if kind in CAUSED and kind != "-heal" and not acts.startswith("ability: "):
            cause, owner = tags.get("from", ""), tags.get("of", "") or parts[0]
        if kind == "-block" and len(parts) > 1:  # names what protects, and whose it is where it is another one's
            cause, owner = parts[1], tags.get("of", "") or parts[0]
        name, (sort, _, what) = self._name(owner), cause.partition(": ")
        if not name or kind not in CAUSED:
            return
        if sort == "ability" and to_id_str(what) not in MOVING:
            self._facts[name].ability = to_id_str(what)
        elif sort == "item" and not USED_UP.search(what):
            self._facts[name].item = to_id_str(what)
