"""A small engine that speaks GTP in Pentobi's dialect and plays at random, by the reference of the rules.

    python gtp_engine.py [--log FILE] [--fault FAULT] [--level N] [--nobook] [--noresign]

FAULT: dies, hangs, floods, garbage, illegal, no_piece, pass, resign, refuses, wrong_start, wrong_score, silent_end.
All levels play the same.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
from tests.support.blokus_reference import SIDES, Placement, Reference

VARIANTS = {"Blokus Duo": "duo", "Blokus": "classic", "Blokus Two-Player": "classic", "Blokus Three-Player": "classic"}
PLAYERS = {"Blokus Duo": 2, "Blokus": 4, "Blokus Two-Player": 2, "Blokus Three-Player": 3}


class Engine:
    """Answers commands; `fault` is what it does wrong."""

    def __init__(self, fault: str) -> None:
        self.fault = fault
        self.draw = random.Random(0)
        self.set_game("Blokus")

    def set_game(self, name: str) -> str:
        self.players = PLAYERS[name]
        self.game = Reference(VARIANTS[name])
        if self.fault == "wrong_start":
            self.game.starts = [(0, 0), (13, 13)]
        self.side = SIDES[self.game.variant]
        return ""

    def set_random_seed(self, seed: str) -> str:
        self.draw.seed(int(seed))
        return ""

    def all_legal(self, colour: str) -> str:
        return "\n".join(self.name(squares) for squares in self.game.legal(self.colour(colour)))

    def play(self, colour: str, move: str) -> str:
        self.game.turn = self.colour(colour)
        squares = frozenset((self.side - int(square[1:]), ord(square[0]) - ord("a")) for square in move.split(","))
        if squares not in self.game.legal(self.game.turn):
            raise ValueError("illegal move")
        self.game.play(squares)
        return ""

    def genmove(self, colour: str) -> str:
        wrong = {"garbage": "e99", "illegal": "a1", "no_piece": "a1,b2", "pass": "pass", "resign": "resign"}
        if self.fault == "dies":
            os._exit(3)
        if self.fault == "silent_end":
            sys.stdout.close()
            os.close(1)
            time.sleep(3600)
        if self.fault == "hangs":
            time.sleep(3600)
        if self.fault == "floods":
            sys.stdout.write("= " + "a1\n" * 100_000)
        if self.fault == "refuses":
            raise ValueError("player failed to generate a move")
        if self.fault in wrong:
            return wrong[self.fault]
        self.game.turn = self.colour(colour)
        squares = self.draw.choice(sorted(self.game.legal(self.game.turn), key=sorted))
        self.game.play(squares)
        return self.name(squares)

    def final_score(self) -> str:
        points = [self.game.points(colour) for colour in range(len(self.game.placed))]
        if self.players > 2:
            return " ".join(map(str, points)) + " "
        ahead = sum(points[0::2]) - sum(points[1::2]) + (self.fault == "wrong_score")
        return f"{'B' if ahead > 0 else 'W'}+{abs(ahead)}" if ahead else "0"

    def colour(self, name: str) -> int:
        return ["b", "w"].index(name) if self.game.variant == "duo" else int(name) - 1

    def name(self, squares: Placement) -> str:
        ordered = sorted(squares, key=lambda at: (-at[0], at[1]))
        return ",".join(f"{chr(ord('a') + column)}{self.side - row}" for row, column in ordered)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--log", default=os.devnull)
    parser.add_argument("--fault", default="")
    parser.add_argument("--level", default="")
    parser.add_argument("--nobook", action="store_true")
    parser.add_argument("--noresign", action="store_true")
    options = parser.parse_args()
    engine = Engine(options.fault)
    known = (engine.set_game, engine.set_random_seed, engine.all_legal, engine.play, engine.genmove, engine.final_score)
    with open(options.log, "a") as log:
        for line in sys.stdin:
            log.write(line)
            log.flush()
            command, _, rest = line.strip().partition(" ")
            arguments = [rest] if command == "set_game" else rest.split()
            try:
                answer = "= " + {each.__name__: each for each in known}[command](*arguments)
            except ValueError as error:
                answer = f"? {error}"
            sys.stdout.write(f"{answer}\n\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
