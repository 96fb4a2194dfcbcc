"""`python -m benchmarks.strength.losses REPLAYS NAME`: what the battles that NAME lost look like beside those it won.

    simul eval --checkpoint RUN --opponent simple_heuristics --games 1000 --replays DIR --replay-player none
    python -m benchmarks.strength.losses DIR NAME

NAME is the player's, as in the file names before `-vs-`. Every figure is a mean a battle, of both sides.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.harness.report import markdown_table

HAZARDS = ("Stealth Rock", "Spikes", "G-Max Steelsurge", "Sticky Web", "Toxic Spikes")
STATUS = ("psn", "tox", "brn", "Leech Seed", "Salt Cure")
LOST_TURN = ("slp", "par", "frz", "flinch", "recharge")


@dataclass
class Side:
    """What happened to one side of a battle."""

    counts: Counter[str] = field(default_factory=Counter)
    boosts: int = 0  # sum of the positive ones of its active Pokémon
    moved: bool = False  # its active Pokémon, or a switch of its own, in this turn
    entered: bool = False  # in this turn, by a choice
    hurt_by: str = ""  # cause of the last damage


class Reader:
    """Reads the log of a singles battle, line by line."""

    def __init__(self) -> None:
        self.sides = {"p1": Side(), "p2": Side()}
        self.names: dict[str, str] = {}
        self.winner = ""
        self.turn = 0
        self._critical = self._effective = False
        self._forced: set[str] = set()

    def read(self, lines: Iterable[str]) -> Reader:
        """Take all lines."""
        for line in lines:
            parts = line.rstrip("\n").split("|")[1:]
            if parts and (take := getattr(self, f"_on_{parts[0].strip('-')}", None)):
                take(parts[1:])
        return self

    def _on_player(self, parts: list[str]) -> None:
        if len(parts) > 1 and parts[1]:
            self.names[parts[0]] = parts[1]

    def _on_win(self, parts: list[str]) -> None:
        self.winner = parts[0]

    def _on_turn(self, parts: list[str]) -> None:
        self.turn = int(parts[0])
        for side in self.sides.values():
            side.moved = side.entered = False
            side.counts["turns"] += 1
        self._forced.clear()

    def _on_switch(self, parts: list[str]) -> None:
        key = parts[0][:2]
        side = self.sides[key]
        side.boosts = 0
        if self.turn and key not in self._forced:
            side.entered = side.moved = True
            side.counts["switches"] += 1
        self._forced.discard(key)

    def _on_drag(self, parts: list[str]) -> None:
        self.sides[parts[0][:2]].boosts = 0

    def _on_move(self, parts: list[str]) -> None:
        side = self.sides[parts[0][:2]]
        side.moved = True
        side.counts["moves"] += 1
        self._critical = self._effective = False

    def _on_cant(self, parts: list[str]) -> None:
        side = self.sides[parts[0][:2]]
        side.moved = True
        if parts[1] in LOST_TURN:
            side.counts["turns lost to status or flinch"] += 1

    def _on_crit(self, parts: list[str]) -> None:
        self._critical = True

    def _on_supereffective(self, parts: list[str]) -> None:
        self._effective = True

    def _on_resisted(self, parts: list[str]) -> None:
        self._other(parts[0]).counts["moves resisted"] += 1

    def _on_immune(self, parts: list[str]) -> None:
        self._other(parts[0]).counts["moves without effect"] += 1

    def _on_fail(self, parts: list[str]) -> None:
        self.sides[parts[0][:2]].counts["moves failed"] += 1

    def _on_miss(self, parts: list[str]) -> None:
        self.sides[parts[0][:2]].counts["moves missed"] += 1

    def _on_terastallize(self, parts: list[str]) -> None:
        self.sides[parts[0][:2]].counts["terastallized"] += 1

    def _on_status(self, parts: list[str]) -> None:
        self.sides[parts[0][:2]].counts["statuses taken"] += 1

    def _on_boost(self, parts: list[str]) -> None:
        self.sides[parts[0][:2]].boosts += int(parts[2])

    def _on_sidestart(self, parts: list[str]) -> None:
        if any(hazard in parts[1] for hazard in HAZARDS):
            self.sides[parts[0][:2]].counts["hazards on its side"] += 1

    def _on_damage(self, parts: list[str]) -> None:
        side = self.sides[parts[0][:2]]
        source = next((part for part in parts[2:] if part.startswith("[from]")), "")
        cause = source.removeprefix("[from]").strip().removeprefix("move:").strip()
        side.hurt_by = (
            "hazards" if cause in HAZARDS else "status" if cause in STATUS else "other" if cause else "a move"
        )

    def _on_faint(self, parts: list[str]) -> None:
        key = parts[0][:2]
        side, other = self.sides[key], self._other(key)
        side.counts["fainted"] += 1
        side.counts[f"fainted by {side.hurt_by or 'other'}"] += 1
        if side.hurt_by == "a move":
            side.counts["fainted before it could move"] += not side.moved
            side.counts["fainted in the turn it was sent in"] += side.entered
            side.counts["fainted by a critical hit"] += self._critical
            side.counts["fainted by a super effective hit"] += self._effective
            side.counts["fainted by one with boosts of +2 or more"] += other.boosts >= 2
        self._forced.add(key)

    def _other(self, ident: str) -> Side:
        return self.sides["p2" if ident.startswith("p1") else "p1"]


def summed(folder: Path, name: str) -> Mapping[tuple[str, str], tuple[Counter[str], int]]:
    """Sums, and number of battles, by (lost or won, own or foe)."""
    found: dict[tuple[str, str], tuple[Counter[str], int]] = {}
    for file in sorted(folder.glob("*.log")):
        battle = Reader().read(file.read_text().splitlines())
        own = next((key for key, player in battle.names.items() if player.startswith(name)), "")
        if not own or not battle.winner:
            continue
        result = "won" if battle.winner == battle.names[own] else "lost"
        for key, side in battle.sides.items():
            who = "own" if key == own else "foe"
            counts, battles = found.get((result, who), (Counter[str](), 0))
            found[result, who] = (counts + side.counts, battles + 1)
    return found


def main() -> int:
    """Exit code 0; 2 where no battle of NAME was lost."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="of the logs")
    parser.add_argument("name", help="of the player")
    options = parser.parse_args()
    found = summed(options.folder, options.name)
    columns = [(result, who) for result in ("lost", "won") for who in ("own", "foe")]
    if any(column not in found for column in columns):
        sys.stderr.write(f"There are no lost and won battles of {options.name} in {options.folder}.\n")
        return 2
    what = sorted({name for counts, _ in found.values() for name in counts})
    rows = [[name, *(f"{found[key][0][name] / found[key][1]:.2f}" for key in columns)] for name in what]
    heads = [f"{result} ({found[result, 'own'][1]}), {who}" for result, who in columns]
    sys.stdout.write(markdown_table(["a battle", *heads], rows) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
