"""Counts the sequences of actions of a game without chance: `python -m simul.env_worker.perft GAME DEPTH`.

The name is that of the chess programs' performance test of move generation, which counts alike.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from itertools import product
from math import prod

from simul.common.config.loader import load_game
from simul.common.config.schema import Config
from simul.common.config.trust import EVERYTHING
from simul.common.errors import ConfigError, SimulError
from simul.common.runtime.terminal_text import LINES, print_text, printable
from simul.env_worker.games.base.build import check_turn_game, failures_as_sentences
from simul.env_worker.games.base.turn_game import CHANCE, TurnGame
from simul.env_worker.games.loading import turn_game


def count_sequences(game: TurnGame, depth: int) -> int:
    """How many sequences of `depth` actions, at least 1, `game` has from here; seats that act at once take one action.

    The last actions are counted, not taken. Shorter games do not count. Raises ConfigError before a chance event.
    """
    acting = game.acting()
    if CHANCE in acting:
        raise ConfigError(f"The game {game.spec.name} has chance events; perft counts games without chance.")
    if not acting:
        return 0
    if depth == 1:
        return prod(game.count_legal(seat) for seat in acting)
    return sum(count_sequences(after, depth - 1) for after in _positions_after(game))


def _positions_after(game: TurnGame) -> Iterator[TurnGame]:
    """After every action, or joint action of the seats that act at once."""
    acting = game.acting()
    for actions in product(*(game.legal_actions(seat).tolist() for seat in acting)):
        after = game.clone()
        after.apply(dict(zip(acting, actions, strict=True)))
        yield after


def main() -> int:
    """Print a line `depth count` for every depth. Exit code 0; 2: a sentence says what to change."""
    parser = argparse.ArgumentParser(prog="python -m simul.env_worker.perft")
    parser.add_argument("game", help="a game, a configuration, or module:Class of a simul.TurnGame")
    parser.add_argument("depth", type=int)
    parser.add_argument("--set", dest="overrides", action="append", default=[], metavar="K=V")
    options = parser.parse_args()
    try:
        _print_counts(load_game(options.game, options.overrides), options.depth)
    except SimulError as error:
        sys.stderr.write(printable(f"simul: {error}\n", LINES))
        return 2
    except KeyboardInterrupt:
        return 130
    return 0


def _print_counts(config: Config, depth: int) -> None:
    if depth < 1:
        raise ConfigError(f"DEPTH is the number of actions of a sequence, at least 1; got {depth}.")
    make_game = turn_game(config, EVERYTHING)  # the command line names it
    check_turn_game(make_game, config)
    with failures_as_sentences(config.game):
        game = make_game()
        game.reset(0)
        for each in range(1, depth + 1):
            print_text(f"{each} {count_sequences(game, each)}")


if __name__ == "__main__":
    sys.exit(main())
