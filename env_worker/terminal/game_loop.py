"""One game from its first turn to its end, with people, policies and scripted players at the seats."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from simul.env_worker.games.base.replays import RecordedGame, Turn, actions_of
from simul.env_worker.games.base.turn_game import CHANCE, IllegalActionError, TurnGame
from simul.env_worker.terminal.players import Left, TakenBack, TerminalPlayer, describe_action
from simul.env_worker.terminal.screen import Screen

MOST_LISTED = 20  # legal actions in an error


class GameLoop:
    """Asks the seats that act, tells what they do, and applies it.

    Args:
        players: [seats].
        person: the seat of a person; None: only policies and scripted players, and everything hidden is shown.
        pause: called after every turn in which the person did not act.
    """

    def __init__(
        self, played: RecordedGame, players: Sequence[TerminalPlayer], screen: Screen, person: int | None,
        pause: Callable[[], None] = lambda: None,
    ) -> None:  # fmt: skip
        self._played = played
        self._players = players
        self._screen = screen
        self._person = person
        self._pause = pause

    def run(self) -> None:
        """Play until the game is over or the person leaves; show the result."""
        while acting := self._played.game.acting():
            try:
                self._turn(acting)
            except TakenBack as taken:
                self._take_back(taken.actions)
            except Left as left:
                self._screen.say(self._left(left))
                return
        self._screen.position(self._played.game.render(self._person))
        self._screen.say(result_text(self._played.game, self._names(), self._person), "bold")

    def _turn(self, acting: Sequence[int]) -> None:
        played = self._played
        if acting[0] == CHANCE:
            draw = random.Random(f"{played.seed}/{len(played.turns)}")  # the same again after moves were taken back
            actions = {CHANCE: played.game.draw_chance(draw)}
        else:
            if self._person is None:
                self._screen.position(played.game.render())
            actions = {seat: self._players[seat].choose(played, seat) for seat in acting}
        for seat, action in actions.items():
            if seat != self._person:
                words = describe_action(played.game, seat, action, self._person is None)
                self._tell(seat, words)
        played.apply(actions)
        if self._person not in acting:
            self._pause()

    def _tell(self, seat: int, words: str) -> None:
        who = "chance" if seat == CHANCE else self._names()[seat]
        if words or seat != CHANCE:
            self._screen.say(f"{who}: {words}" if words else f"{who} acts", "cyan")

    def _take_back(self, actions: int) -> None:
        """To before the person's last `actions` actions."""
        turns = self._played.turns
        own = [number for number, turn in enumerate(turns) if any(move.seat == self._person for move in turn)]
        back_to = own[-actions]
        self._screen.say(f"took back {_count(len(turns) - back_to, 'turn')}")
        self._played.take_back(back_to)

    def _names(self) -> list[str]:
        return [f"seat {seat} ({player.name})" for seat, player in enumerate(self._players)]

    def _left(self, left: Left) -> str:
        done = "You resigned" if left.resigned else "You left the game"
        if left.resigned and len(self._players) == 2 and self._person is not None:
            done += f"; {self._names()[1 - self._person]} wins"
        return f"{done} after {_count(len(self._played.turns), 'turn')}."


class ReplayLoop:
    """Shows a replay turn by turn."""

    def __init__(
        self, played: RecordedGame, turns: Sequence[Turn], names: Sequence[str], screen: Screen,
        pause: Callable[[], None],
    ) -> None:  # fmt: skip
        self._played = played
        self._turns = turns
        self._names = names
        self._screen = screen
        self._pause = pause

    def run(self) -> None:
        """To the end of the replay. Raises IllegalActionError where the game refuses a move."""
        played, screen = self._played, self._screen
        for turn in self._turns:
            check_turn(played.game, turn)
            if turn[0].seat != CHANCE:
                screen.position(played.game.render())
            for move in turn:
                who = "chance" if move.seat == CHANCE else f"seat {move.seat} ({self._names[move.seat]})"
                screen.say(f"{who}: {move.name or move.action}{' (drawn)' if move.drawn else ''}", "cyan")
            played.apply(actions_of(turn))
            self._pause()
        screen.position(played.game.render())
        names = [f"seat {seat} ({name})" for seat, name in enumerate(self._names)]
        screen.say(result_text(played.game, names, None), "bold")


def check_turn(game: TurnGame, turn: Turn) -> None:
    """Raises IllegalActionError where a turn of a file is not one that the game may take now."""
    acting, seats = list(game.acting()), sorted(move.seat for move in turn)
    if seats != acting:
        expected = "no turn, as the game is over" if not acting else f"moves of {_who(acting)}"
        raise IllegalActionError(f"expected {expected}; got {f'moves of {_who(seats)}' if seats else 'no move'}")
    for move in turn:
        legal = _legal_actions(game, move.seat)
        if legal is not None and move.action not in legal:
            some = ", ".join(map(str, legal[:MOST_LISTED])) + (", ..." if len(legal) > MOST_LISTED else "")
            what = "an event of chance" if move.seat == CHANCE else f"a legal action of seat {move.seat}"
            raise IllegalActionError(f"expected {what}: {some}; got {move.action}")


def result_text(game: TurnGame, names: Sequence[str], person: int | None) -> str:
    """Returns of all seats, the game's figures, and what a person's seat made of it."""
    returns = [float(each) for each in game.returns()]
    how = "The game goes on" if game.acting() else "The game was cut short" if game.truncated() else "The game is over"
    scores = ", ".join(f"{name} {score:+g}" for name, score in zip(names, returns, strict=True))
    lines = [f"{how}: {scores}."]
    for name, values in ({} if game.acting() else game.figures()).items():
        if any(values):
            lines.append(f"  {name}: {', '.join(f'{value:g}' for value in values)}")
    if person is not None and len(returns) > 1:
        best = max(returns)
        first = "You win." if returns.count(best) == 1 else "You share the first place."
        lines.append(first if returns[person] == best else "You lose.")
        if returns.count(best) == len(returns):
            lines[-1] = "A draw."
    return "\n".join(lines)


def _legal_actions(game: TurnGame, seat: int) -> list[int] | None:
    """None: events of chance that are too many to list."""
    try:
        legal = game.chance_outcomes()[0] if seat == CHANCE else game.legal_actions(seat)
    except NotImplementedError:
        return None
    found: list[int] = legal.tolist()
    return found


def _who(seats: Sequence[int]) -> str:
    return ", ".join("chance" if seat == CHANCE else f"seat {seat}" for seat in seats)


def _count(number: int, what: str) -> str:
    return f"{number} {what}" + ("" if number == 1 else "s")
