"""Replays of TurnGames: a JSON of the seed and the moves, which determine a game, and a picture of its end."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any, Literal

import msgspec

from simul.common.config.games import GAMES
from simul.common.config.loader import config_from_tree
from simul.common.config.schema import Config
from simul.common.config.trust import Trust, check_trust, programs_of, values_to_trust
from simul.common.errors import ConfigError
from simul.common.runtime.decode_errors import DECODE_ERRORS
from simul.common.runtime.private_files import read_regular
from simul.env_worker.games.base.turn_game import TurnGame
from simul.env_worker.replays import file_stem, make_folder

LONGEST_PLAYER = 100  # characters of a player's name
Outcome = Literal["terminated", "truncated", "unfinished"]

_SVG_BEGIN = re.compile(r"<svg\b[^>]*>")


class Move(msgspec.Struct, frozen=True, omit_defaults=True):
    """An action of a seat, or an event of CHANCE, seat -1.

    Attributes:
        name: as `TurnGame.action_name` gives it.
        drawn: of a drawn opening: the seat's player did not choose it. A field of the move, because versions without it
            refuse unknown fields of a replay and ignore those of a move.
    """

    seat: int
    action: int
    name: str = ""
    drawn: bool = False


Turn = tuple[Move, ...]  # one move, or one of each seat of those that act at once


class Replay(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """One game.

    Attributes:
        game: name of its spec.
        settings: `game` and the game's own settings, as in a configuration.
        seed: of `TurnGame.reset`.
        players: [seats].
        returns: [seats], at the end, or so far.
    """

    game: str
    settings: dict[str, Any]
    seed: int
    players: list[str]
    turns: list[Turn]
    returns: list[float]
    outcome: Outcome

    @property
    def drawn_plies(self) -> int:
        """Turns of seats that were drawn."""
        return sum(any(move.drawn for move in turn) for turn in self.turns)

    @property
    def headline(self) -> str:
        """The game, who sits where, and how much of it was drawn, in one line."""
        seats = ", ".join(f"seat {seat} {player}" for seat, player in enumerate(self.players))
        plies = self.drawn_plies
        drawn = "; the first ply was drawn" if plies == 1 else f"; the first {plies} plies were drawn" if plies else ""
        return f"{self.game}, seed {self.seed}: {seats}{drawn}"

    def config(self, trust: Trust) -> Config:
        """The configuration that builds the game again. Raises ConfigError, also where it names what is not trusted."""
        config = config_from_tree(self.settings, "the settings of the replay")
        check_trust(values_to_trust(config), trust, "The replay", way=", as in `simul watch --replay FILE --trust`")
        return config


def game_settings(config: Config) -> dict[str, Any]:
    """The settings that determine the configured game."""
    if config.game in GAMES:
        section = msgspec.to_builtins(config.game_section)
        programs = programs_of(config)  # a replay needs none
        return {
            "game": config.game,
            config.game: {key: value for key, value in section.items() if key not in programs},
        }
    return {"game": config.game, "game_options": msgspec.to_builtins(config.game_options)}


def moves_of(game: TurnGame, actions: Mapping[int, int], *, drawn: bool = False) -> Turn:
    """The moves that apply these actions, which are about to be applied. `drawn`: as a part of the opening."""
    return tuple(
        Move(seat, int(action), game.action_name(seat, int(action)), drawn) for seat, action in actions.items()
    )


def actions_of(turn: Turn) -> dict[int, int]:
    """The actions for `TurnGame.apply`."""
    return {move.seat: move.action for move in turn}


class RecordedGame:
    """A game and its moves so far, which can be taken back: the game is played again from its seed.

    Attributes:
        turns: the moves; read-only.
    """

    def __init__(self, game: TurnGame, seed: int) -> None:
        self.game = game
        self.seed = seed
        self.turns: list[Turn] = []
        game.reset(seed)

    def apply(self, actions: Mapping[int, int]) -> None:
        """As `TurnGame.apply`."""
        moves = moves_of(self.game, actions)
        self.game.apply(actions)
        self.turns.append(moves)

    def take_back(self, turns: int) -> None:
        """Return to where `turns` turns were played."""
        kept = self.turns[:turns]
        self.game.reset(self.seed)
        for turn in kept:
            self.game.apply(actions_of(turn))
        self.turns = kept

    def replay(self, settings: Mapping[str, Any], players: Sequence[str]) -> Replay:
        """The game as far as it was played."""
        return replay_of(self.game, settings, self.seed, players, self.turns)


def replay_of(
    game: TurnGame, settings: Mapping[str, Any], seed: int, players: Sequence[str], turns: Sequence[Turn]
) -> Replay:
    """The replay of a game that was played so far."""
    outcome: Outcome = "unfinished" if game.acting() else "truncated" if game.truncated() else "terminated"
    return Replay(
        game=game.spec.name, settings=dict(settings), seed=seed, players=list(players), turns=list(turns),
        returns=[float(each) for each in game.returns()], outcome=outcome,
    )  # fmt: skip


class ReplayFolder:
    """Files of the games of one process: P1-vs-P2-WORKER-NUMBER.json, and .svg or .txt, the last position under
    `Replay.headline`, which is the title of an SVG.

    Args:
        settings: see `Replay`.
        pictures: False: only JSON.

    Raises:
        ConfigError: nothing can be written there.
    """

    def __init__(self, folder: Path, settings: Mapping[str, Any], *, worker: int = 0, pictures: bool = True) -> None:
        self._folder = folder
        self._settings = settings
        self._worker = worker
        self._pictures = pictures
        make_folder(folder)

    def save(self, game: TurnGame, number: int, seed: int, players: Sequence[str], turns: Sequence[Turn]) -> Path:
        """Write the files of a game; returns the JSON's path. Raises ConfigError where they cannot be written."""
        stem = self._folder / file_stem(players, self._worker, number)
        replay = replay_of(game, self._settings, seed, players, turns)
        files = {".json": msgspec.json.encode(replay).decode() + "\n"}
        if self._pictures:
            title = f"<title>{escape(replay.headline)}</title>"
            picture = _SVG_BEGIN.sub(lambda begin: begin[0] + title, game.svg(), count=1)
            files[".svg" if picture else ".txt"] = (picture or f"{replay.headline}\n\n{game.render()}") + "\n"
        try:
            for ending, text in files.items():
                stem.with_name(stem.name + ending).write_text(text, encoding="utf-8")
        except OSError as error:
            raise ConfigError(f"The replay {stem} cannot be written: {error.strerror}.") from None
        return stem.with_name(f"{stem.name}.json")


def read_replay(path: Path) -> Replay:
    """A replay that `ReplayFolder` wrote, with the beginnings of long names of players. Raises ConfigError."""
    try:
        replay = msgspec.json.decode(read_regular(path), type=Replay)
    except OSError as error:
        raise ConfigError(f"The replay {path} cannot be read: {error.strerror}.") from None
    except DECODE_ERRORS as error:
        raise ConfigError(
            f"{path} is no replay of a table game: {error}. `simul eval --replays DIR` writes them as JSON."
        ) from None
    replay.players = [name[:LONGEST_PLAYER] for name in replay.players]  # others may have written them
    return replay
