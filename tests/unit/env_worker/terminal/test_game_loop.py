"""A person at a table: commands, mistakes, undo, the end; and games that are only watched."""

from __future__ import annotations

import io
import random

import pytest

from examples.custom_game import TicTacToe
from simul.env_worker.games.base.players import RandomPlayer
from simul.env_worker.games.base.replays import Move, RecordedGame
from simul.env_worker.games.base.turn_game import CHANCE, IllegalActionError
from simul.env_worker.terminal.advice import Advice
from simul.env_worker.terminal.game_loop import GameLoop, ReplayLoop, check_turn, result_text
from simul.env_worker.terminal.players import BotPlayer, Person, PolicyPlayer
from simul.env_worker.terminal.screen import Screen
from tests.support.turn_games import Always, HighCard


class Shown(TicTacToe):
    """With a board that people read."""

    styles = {"x": "red", "o": "blue"}

    def render(self, seat=None):
        marks = "".join(".xo"[owner + 1] for owner in self.owner)
        return "\n".join(marks[row : row + 3] for row in (0, 3, 6))


class FirstFree:
    """Takes the first free square, as a policy does."""

    name = "first"
    follows = True

    def __init__(self):
        self.asked = []

    def choose(self, game, seat, draw):
        return int(game.legal_actions(seat)[0])

    def advise(self, played):
        game = played.game
        (seat,) = game.acting()
        self.asked.append(len(played.turns))
        legal = game.legal_actions(seat).tolist()
        return Advice(legal[0], [(action, 1 / len(legal)) for action in legal], 0.25)


def played_out(lines, *, seat=0, game=None, advisor=None, opponent=None, seed=1):
    """What the screen showed, and the game."""
    game = game or Shown()
    played, output = RecordedGame(game, seed), io.StringIO()
    screen = Screen(game.styles, io.StringIO("".join(f"{line}\n" for line in lines)), output)
    players = [BotPlayer("first", opponent or FirstFree()) for _ in range(game.spec.seats)]
    players[seat] = Person(screen, advisor)
    GameLoop(played, players, screen, seat).run()
    return output.getvalue(), played


def test_a_game_to_its_end():
    shown, played = played_out(["4", "2", "6"])
    assert [[(move.seat, move.action) for move in turn] for turn in played.turns] == [
        [(0, 4)], [(1, 0)], [(0, 2)], [(1, 1)], [(0, 6)]
    ]  # fmt: skip
    assert "seat 1 (first): 0\n" in shown
    assert "\noox\n.x.\nx..\n" in shown
    assert shown.rstrip().endswith("The game is over: seat 0 (you) +1, seat 1 (first) -1.\nYou win.")
    assert "\x1b" not in shown, "no terminal, no escape codes"


def test_mistakes_are_answered_and_cost_nothing():
    shown, played = played_out(["", "9", "centre", "4", "4", "quit"])
    assert shown.count("there is no legal action '9'; expected one such as") == 1
    assert "there is no legal action 'centre'" in shown
    assert "there is no legal action '4'" in shown
    assert len(played.turns) == 2
    assert "You left the game after 2 turns." in shown


def test_commands():
    shown, _ = played_out(["list", "list 3", "board", "help", "?", "hint", "undo", "undo x", "undo 0", "quit"])
    assert "\n0\n1\n2\n3\n4\n5\n6\n7\n8\nseat 0> list 3\n3\nseat 0> board\n" in shown
    assert shown.count("...\n...\n...") == 2
    assert shown.count("take back your last N actions") == 3
    assert "Hints come from a policy: start with --checkpoint." in shown
    assert "There is nothing to take back: this is your first action." in shown
    assert shown.count("expected undo, or undo N with N at least 1; got") == 2


def test_undo_returns_to_the_persons_last_decision():
    shown, played = played_out(["4", "8", "undo", "2", "undo 2", "5", "quit"])
    assert "took back 2 turns\n\no..\n.x.\n...\n" in shown
    assert "took back 4 turns\n\n...\n...\n...\n" in shown
    assert [turn[0].action for turn in played.turns] == [5, 0]


def test_undo_of_more_than_there_is_goes_to_the_begin():
    shown, played = played_out(["4", "8", "undo 99", "quit"])
    assert "took back 4 turns" in shown
    assert played.turns == []


def test_undo_at_the_second_seat_keeps_what_came_before():
    _, played = played_out(["4", "undo", "8", "quit"], seat=1)
    assert [turn[0].action for turn in played.turns] == [0, 8, 1]


def test_what_others_draw_is_the_same_again():
    for _ in range(5):
        first, _ = played_out(["4", "quit"], opponent=RandomPlayer(), seed=9)
        again, _ = played_out(["4", "undo", "4", "undo", "4", "quit"], opponent=RandomPlayer(), seed=9)
        told = [line for line in again.splitlines() if line.startswith("seat 1 (first): ")]
        assert told == 3 * [line for line in first.splitlines() if line.startswith("seat 1 (first): ")]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("resign", "You resigned; seat 1 (first) wins after 2 turns."),
        ("quit", "You left the game after 2 turns."),
        ("EXIT", "You left the game after 2 turns."),
    ],
)
def test_resign_and_quit(line, says):
    shown, _ = played_out(["4", line, "5"])
    assert says in shown
    assert "The game is over" not in shown


def test_the_end_of_the_input_leaves_the_game():
    shown, played = played_out(["4"])
    assert shown.endswith("seat 0> \nYou left the game after 2 turns.\n")
    assert len(played.turns) == 2


def test_hints_are_the_policys_and_it_sees_every_decision():
    advisor = FirstFree()
    shown, _ = played_out(["hint", "4", "8", "undo", "quit"], advisor=advisor)
    assert " 11.1%  0\n 11.1%  1\n" in shown
    assert "value +0.250" in shown
    assert [asked for asked in advisor.asked if asked % 2] == []
    assert sorted(set(advisor.asked)) == [0, 2, 4]


def test_an_adviser_without_a_memory_is_asked_for_hints_alone_and_may_have_none():
    class NoWorlds(FirstFree):
        follows = False

        def advise(self, played):
            if not played.turns:
                raise NotImplementedError("worlds cannot be drawn of the first position")
            return super().advise(played)

    advisor = NoWorlds()
    shown, _ = played_out(["hint", "4", "5", "hint", "quit"], advisor=advisor)
    assert "There is no hint here: worlds cannot be drawn of the first position." in shown
    assert advisor.asked == [4]


def test_names_of_several_words_and_their_parts():
    game = Shown()
    game.action_name = lambda seat, action: f"square {action}"
    _, played = played_out(["square 4", "8", "quit"], game=game)
    assert [turn[0].action for turn in played.turns] == [4, 0, 8, 1]


def test_seats_that_act_at_once_and_chance():
    shown, played = played_out(["2", "1"], game=HighCard(2, rounds=2), opponent=Always(1))
    assert [[move.seat for move in turn] for turn in played.turns] == [[-1], [-1], [0, 1], [0, 1]]
    assert shown.count("seat 1 (first): 1\n") == 2
    assert "seat 0 (you): " not in shown, "the person knows what the person did"
    assert "chance" not in shown, "it may have dealt hidden cards"
    assert "  card: " in shown


def test_what_is_hidden_is_not_told():
    class Hidden(Shown):
        def shown_action(self, seat, action):
            return ""

    shown, _ = played_out(["4", "quit"], game=Hidden())
    assert "seat 1 (first) acts\n" in shown
    assert "seat 1 (first): " not in shown


def test_a_game_to_watch_shows_what_policies_think_and_pauses_after_every_turn():
    game, output, paused = Shown(), io.StringIO(), []
    played, screen = RecordedGame(game, 1), Screen(game.styles, io.StringIO(), output)
    players = [PolicyPlayer("A", FirstFree(), screen), BotPlayer("B", FirstFree())]
    GameLoop(played, players, screen, None, lambda: paused.append(len(played.turns))).run()
    shown = output.getvalue()
    assert paused == list(range(1, len(played.turns) + 1))
    assert shown.count("seat 0 (A) considers\n") == 4
    assert shown.count("value +0.250") == 4
    assert shown.rstrip().endswith("The game is over: seat 0 (A) +1, seat 1 (B) -1.")


def test_a_replay_shows_the_same_turns():
    _, first = played_out(["4", "2", "6"])
    game, output, paused = Shown(), io.StringIO(), []
    screen = Screen(game.styles, io.StringIO(), output)
    ReplayLoop(RecordedGame(game, 1), first.turns, ["ann", "bob"], screen, lambda: paused.append(1)).run()
    shown = output.getvalue()
    assert [line for line in shown.splitlines() if ": " in line][:2] == ["seat 0 (ann): 4", "seat 1 (bob): 0"]
    assert shown.rstrip().endswith("The game is over: seat 0 (ann) +1, seat 1 (bob) -1.")
    assert len(paused) == 5


def test_turns_of_chance_and_of_seats_that_act_at_once_are_checked():
    game = HighCard(2)
    game.reset(1)
    with pytest.raises(IllegalActionError, match="expected moves of chance; got moves of seat 0, seat 1"):
        check_turn(game, (Move(0, 1), Move(1, 1)))
    with pytest.raises(IllegalActionError, match=r"expected an event of chance: 0, 1, .*; got 1000"):
        check_turn(game, (Move(CHANCE, 1000),))
    for card in (1, 0):
        check_turn(game, (Move(CHANCE, card),))
        game.apply({CHANCE: card})
    check_turn(game, (Move(1, 1), Move(0, 2)))
    for turn in ((Move(0, 1),), (Move(0, 1), Move(0, 1)), (Move(0, 1), Move(1, 2))):
        with pytest.raises(IllegalActionError):
            check_turn(game, turn)


def test_events_of_chance_that_are_too_many_to_list_are_left_to_the_game():
    class Unlisted(HighCard):
        def chance_outcomes(self):
            raise NotImplementedError

    game = Unlisted(2)
    game.reset(1)
    check_turn(game, (Move(CHANCE, 1000),))


@pytest.mark.parametrize(
    ("returns", "says"),
    [
        ([1.0, -1.0], "You win."),
        ([-1.0, 1.0], "You lose."),
        ([0.0, 0.0], "A draw."),
        ([1, 1, -2], "You share the first"),
    ],
)
def test_what_a_person_made_of_it(returns, says):
    game = TicTacToe()
    game.reset(0)
    game.acting, game.returns = lambda: (), lambda: returns
    assert result_text(game, [f"seat {seat}" for seat in range(len(returns))], 0).splitlines()[-1].startswith(says)


def test_a_terminal_has_colours():
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    output = Terminal()
    game = Shown()
    game.reset(0)
    game.apply({0: 4})
    Screen(game.styles, io.StringIO(), output).position(game.render())
    assert "\x1b[31mx\x1b[0m" in output.getvalue()


def test_random_text_never_breaks_the_loop():
    draw = random.Random(1)
    lines = ["".join(draw.choices("undo 49list hint\t[/x]é\x00", k=draw.randrange(12))) for _ in range(500)]
    lines = [line for line in lines if line.strip() not in ("quit", "exit", "resign")]
    shown, _ = played_out(lines, advisor=FirstFree(), opponent=RandomPlayer())
    assert "The game is over" in shown or "You left the game" in shown
