"""A game whose person sits at another program."""

from __future__ import annotations

import io

import msgspec
import pytest

from examples.custom_game import TicTacToe
from simul.env_worker.games.base.replays import RecordedGame
from simul.env_worker.terminal.game_loop import GameLoop
from simul.env_worker.terminal.piped_screen import PipedScreen
from simul.env_worker.terminal.players import BotPlayer, Person


class First:
    def choose(self, game, seat, draw) -> int:
        return int(game.legal_actions(seat)[0])


def test_a_game_by_lines(monkeypatch):
    game = TicTacToe()
    lines = [game.action_name(0, 8), "undo", "nonsense", game.action_name(0, 4), "resign"]
    output = io.StringIO()
    screen = PipedScreen(game, 0, io.StringIO("".join(f"{line}\n" for line in lines)), output)
    monkeypatch.setattr(game, "svg", lambda seat=None: f"<svg>{seat}</svg>")
    players = [Person(screen, None), BotPlayer("first", First())]
    GameLoop(RecordedGame(game, 1), players, screen, 0).run()
    events = [msgspec.json.decode(line) for line in output.getvalue().splitlines()]
    asked = [event for event in events if event["kind"] == "ask"]
    assert [event["count"] for event in asked] == [9, 7, 9, 9, 7]
    assert asked[0]["legal"] == [game.action_name(0, action) for action in range(9)]
    assert {event["svg"] for event in events if event["kind"] == "position"} == {"<svg>0</svg>"}, (
        "as the person sees it"
    )
    said = [event["text"] for event in events if event["kind"] == "say"]
    assert any("took back" in text for text in said)
    assert any("nonsense" in text for text in said)
    assert "You resigned" in said[-1]


def test_a_program_that_ended_leaves_the_game():
    game = TicTacToe()
    game.reset(1)
    screen = PipedScreen(game, 0, io.StringIO(""), io.StringIO())
    with pytest.raises(EOFError):
        screen.ask("seat 0")
