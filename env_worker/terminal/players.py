"""Who plays a seat: a person, a policy, or a scripted player."""

from __future__ import annotations

import random
from typing import Protocol

from simul.env_worker.games.base.replays import RecordedGame
from simul.env_worker.games.base.turn_game import Player, TurnGame
from simul.env_worker.terminal.advice import Advisor
from simul.env_worker.terminal.screen import Screen

COMMANDS = """\
list [TEXT]  what fits now      hint  what the policy would do      undo [N]  take back your last N actions
board        the position       help  these lines                   resign, quit"""


class TakenBack(Exception):
    """The person takes actions back. Caught by the game's loop."""

    def __init__(self, actions: int) -> None:
        super().__init__(actions)
        self.actions = actions


class Left(Exception):
    """The person ends the game before its end. Caught by the game's loop."""

    def __init__(self, resigned: bool) -> None:
        super().__init__(resigned)
        self.resigned = resigned


class TerminalPlayer(Protocol):
    """Chooses the actions of a seat. `name` tells people who it is."""

    name: str

    def choose(self, played: RecordedGame, seat: int) -> int:
        """A legal action."""


class BotPlayer:
    """A scripted player of the game. What it draws at a turn depends on the game's seed and the turn only."""

    def __init__(self, name: str, player: Player) -> None:
        self.name = name
        self._player = player

    def choose(self, played: RecordedGame, seat: int) -> int:
        """As the player does."""
        draw = random.Random(f"{played.seed}/{len(played.turns)}/{seat}")
        return self._player.choose(played.game, seat, draw)

    def close(self) -> None:
        """Close what holds a process."""
        if callable(close := getattr(self._player, "close", None)):
            close()


class PolicyPlayer:
    """A policy. `screen`: where it says what it thinks; None: nowhere."""

    def __init__(self, name: str, advisor: Advisor, screen: Screen | None = None) -> None:
        self.name = name
        self._advisor = advisor
        self._screen = screen

    def choose(self, played: RecordedGame, seat: int) -> int:
        """What the policy plays."""
        advice = self._advisor.advise(played)
        if self._screen is not None:
            self._screen.say(f"seat {seat} ({self.name}) considers\n{advice.text(played.game, seat)}", "dim")
        return advice.action


class Person:
    """A person at the screen. `advisor`: of the hints; None: there are none."""

    name = "you"

    def __init__(self, screen: Screen, advisor: Advisor | None) -> None:
        self._screen = screen
        self._advisor = advisor
        self._helped = ""

    def choose(self, played: RecordedGame, seat: int) -> int:
        """What the person writes. Raises TakenBack, Left."""
        game, screen = played.game, self._screen
        screen.position(game.render(seat))
        if self._advisor is not None and self._advisor.follows:
            self._advisor.advise(played)
        if not self._helped:
            screen.say(COMMANDS, "dim")
        if (wording := game.action_help(seat)) != self._helped:
            screen.say(wording, "dim")
            self._helped = wording
        while True:
            try:
                text = screen.ask(f"seat {seat}").strip()
            except EOFError:
                raise Left(resigned=False) from None
            if (action := self._obey(text, played, seat)) is not None:
                return action

    def _obey(self, text: str, played: RecordedGame, seat: int) -> int | None:
        """The action that `text` means; None where it was a command or a mistake, which is answered."""
        game, screen = played.game, self._screen
        command, _, rest = text.partition(" ")
        command, rest = command.lower(), rest.strip()
        if command in ("help", "?"):
            screen.say(f"{COMMANDS}\n{game.action_help(seat)}")
        elif command == "list":
            screen.say(game.list_actions(seat, rest))
        elif command == "board" and not rest:
            screen.position(game.render(seat))
        elif command == "hint" and not rest:
            screen.say(self._hint(played, seat))
        elif command == "undo":
            self._take_back(rest, played, seat)
        elif command in ("resign", "quit", "exit") and not rest:
            raise Left(resigned=command == "resign")
        elif text:
            try:
                return game.parse_action(seat, text)
            except ValueError as error:
                screen.say(f"{error}.", "red")
        return None

    def _hint(self, played: RecordedGame, seat: int) -> str:
        if self._advisor is None:
            return "Hints come from a policy: start with --checkpoint."
        try:
            return self._advisor.advise(played).text(played.game, seat)
        except NotImplementedError as error:  # a game that draws worlds of some positions only
            return f"There is no hint here: {error}."

    def _take_back(self, rest: str, played: RecordedGame, seat: int) -> None:
        """Raises TakenBack where there is something to take back."""
        own = sum(any(move.seat == seat for move in turn) for turn in played.turns)
        if rest and not (rest.isdecimal() and len(rest) < 10 and int(rest) > 0):
            self._screen.say(f"expected undo, or undo N with N at least 1; got {rest[:20]!r}.", "red")
        elif not own:
            self._screen.say("There is nothing to take back: this is your first action.")
        else:
            raise TakenBack(min(int(rest or 1), own))


def describe_action(game: TurnGame, seat: int, action: int, everything: bool) -> str:
    """An action in words; `everything`: also what other seats do not see. Empty: nothing is seen."""
    return game.action_name(seat, action) if everything else game.shown_action(seat, action)
