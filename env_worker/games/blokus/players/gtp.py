"""An engine that speaks GTP in Pentobi's dialect as a player."""

from __future__ import annotations

import os
import random
import shlex
import shutil
from collections.abc import Sequence

from simul.common.config.trust import Trust
from simul.common.errors import ConfigError
from simul.env_worker.games.base.turn_game import TurnGame
from simul.env_worker.games.blokus.board import Variant, tables
from simul.env_worker.games.blokus.kernels import colour_points, legal_moves, new_state
from simul.env_worker.games.blokus.notation import PASS_NAME, action_name, parse_action
from simul.env_worker.games.blokus.players.gtp_engine import GtpEngine, GtpError
from simul.env_worker.games.blokus.turn_game import Blokus

GAME_NAMES = {
    ("duo", 2): "Blokus Duo",
    ("classic", 2): "Blokus Two-Player",
    ("classic", 3): "Blokus Three-Player",
    ("classic", 4): "Blokus",
}
PENTOBI_NEEDS = ("--nobook", "--noresign")


def engine_command(text: str) -> list[str]:
    """The words of `PATH ARGS`. Raises ConfigError where the program is missing or its arguments do not do."""
    try:
        words = shlex.split(text, posix=os.name != "nt")
    except ValueError as error:
        raise ConfigError(f"blokus.gtp is not a command line: {error}; got {text!r}") from None
    if not words:
        raise ConfigError("The opponent gtp is an engine that speaks GTP. Set blokus.gtp to its path and arguments.")
    if shutil.which(words[0]) is None:
        raise ConfigError(f"There is no program {words[0]!r}. Set blokus.gtp to the path of an engine that speaks GTP.")
    missing = [option for option in PENTOBI_NEEDS if option not in words]
    if "pentobi" in os.path.basename(words[0]).lower() and missing:
        raise ConfigError(f"Pentobi plays whole games only with {' '.join(PENTOBI_NEEDS)}; add {' '.join(missing)}.")
    return words


class GtpPlayer:
    """Plays with one engine, at one seat or several. A game is set up anew where the engine does not know it.

    The engine's rules are compared with ours: its first moves when it starts, every action it chooses, and the score of
    a game that it ends. Raises GtpError; the next game starts a new engine.
    """

    def __init__(self, command: Sequence[str], timeout_sec: float, *, trust: Trust) -> None:
        """`timeout_sec`: for the response to any command."""
        self._trust = trust
        self._command = list(command)
        self._timeout_sec = timeout_sec
        self._engine: GtpEngine | None = None
        self._known: list[tuple[int, int]] | None = None  # (colour, action) that the engine has; None: no game

    def choose(self, game: TurnGame, seat: int, draw: random.Random) -> int:
        """What the engine plays; a pass without asking it, which Pentobi's dialect does not know as a move."""
        assert isinstance(game, Blokus)
        variant = game.variant
        if variant.placements in game.legal_actions(seat):
            return variant.placements
        try:
            return self._ask(game, draw)
        except GtpError:
            self.close()
            raise

    def close(self) -> None:
        """Stop the engine."""
        if self._engine is not None:
            self._engine.close()
        self._engine = self._known = None

    def _ask(self, game: Blokus, draw: random.Random) -> int:
        engine = self._synchronised(game, draw)
        answer = engine.send(f"genmove {_colour(game.variant, game.colour)}")
        action = self._checked(game, engine, answer)
        assert self._known is not None
        self._known.append((game.colour, action))
        _check_score(game, engine, action)
        return action

    def _synchronised(self, game: Blokus, draw: random.Random) -> GtpEngine:
        """The engine, at the position of `game`."""
        engine = self._engine
        if engine is None:
            engine = self._engine = GtpEngine(self._command, self._timeout_sec, trust=self._trust)
            engine.send(f"set_game {GAME_NAMES[game.variant.name, game.variant.seats]}")
            _check_first_moves(game.variant, engine)
        known = self._known
        if known is None or game.moves[: len(known)] != known:
            engine.send(f"set_game {GAME_NAMES[game.variant.name, game.variant.seats]}")
            engine.send(f"set_random_seed {draw.getrandbits(31)}")
            known = self._known = []
        for colour, action in game.moves[len(known) :]:
            if action != game.variant.placements:
                engine.send(f"play {_colour(game.variant, colour)} {action_name(game.variant, colour, action)}")
            known.append((colour, action))
        return engine

    def _checked(self, game: Blokus, engine: GtpEngine, answer: str) -> int:
        """The action that `answer` names. Raises GtpError."""
        name = game.variant.colours[game.colour]
        if answer.lower() == "resign":
            raise engine.broken("resigned; games are played to their ends, start it with --noresign")
        try:
            action = parse_action(game.variant, game.colour, answer)
        except ValueError as error:
            raise engine.broken(f"chose {answer[:60]!r} for {name}: {error}") from None
        if action not in game.legal_actions(game.acting()[0]):
            what = "passed" if answer.lower() == PASS_NAME else f"chose {answer}"
            raise engine.broken(f"{what} for {name}, which is not legal there")
        return action


def _colour(variant: Variant, colour: int) -> str:
    return "bw"[colour] if len(variant.colours) == 2 else str(colour + 1)


def _check_first_moves(variant: Variant, engine: GtpEngine) -> None:
    """The engine's board, pieces and starts are ours: both list the same first moves."""
    built = tables(variant)
    ours = {action_name(variant, 0, int(action)) for action in legal_moves(new_state(variant), built.tree, built.rules)}
    theirs = engine.send(f"all_legal {_colour(variant, 0)}").split()
    try:
        read = {action_name(variant, 0, parse_action(variant, 0, name)) for name in theirs}
    except ValueError as error:
        raise engine.broken(f"answered all_legal with what is no move: {error}") from None
    if read != ours:
        common = len(read & ours)
        raise engine.broken(
            f"lists {len(read)} first moves of {variant.colours[0]} in {variant.name}, of which {common} are legal; "
            f"expected {len(ours)}"
        )


def _check_score(game: Blokus, engine: GtpEngine, action: int) -> None:
    """Where `action` ends the game: the engine counts the points that we count."""
    ended = game.clone()
    ended.apply({ended.acting()[0]: action})
    if ended.acting():
        return
    points = ended.points()
    if len(points) > 2:
        expected = " ".join(str(colour_points(ended.state, colour)) for colour in range(len(game.variant.colours)))
    else:
        ahead = points[0] - points[1]
        expected = f"{'B' if ahead > 0 else 'W'}+{abs(ahead)}" if ahead else "0"
    score = engine.send("final_score")
    if score.split() != expected.split():
        raise engine.broken(f"gives the final score {score!r}; expected {expected!r}")
