"""A replay as frames, for the page."""

from __future__ import annotations

import sys

import msgspec

from examples.custom_game import TicTacToe
from simul.env_worker.games.base.replays import RecordedGame, ReplayFolder
from simul.env_worker.terminal import __main__ as terminal
from simul.env_worker.terminal import frames
from simul.env_worker.terminal.frames import Frame, FrameScreen


def test_every_position_with_what_came_after_it(tmp_path, capsys, monkeypatch):
    played = RecordedGame(TicTacToe(), 1)
    for seat, action in enumerate((0, 4)):
        played.apply({seat: action})
    folder = ReplayFolder(tmp_path, {"game": "examples.custom_game:TicTacToe"}, pictures=False)
    drawn = [(msgspec.structs.replace(played.turns[0][0], drawn=True),), played.turns[1]]
    path = folder.save(played.game, 0, 1, ["a", "b"], drawn)
    monkeypatch.setattr(frames, "limit_process", lambda: None)  # of this process
    monkeypatch.setattr(terminal, "limit_process", lambda: None)
    monkeypatch.setattr(sys, "argv", ["watch", f"--replay={path}", "--frames", "--trust"])
    assert terminal.main() == 0
    shown = msgspec.json.decode(capsys.readouterr().out, type=list[Frame])
    assert len(shown) == 3
    assert shown[0].said == [
        "tic-tac-toe, seed 1: seat 0 a, seat 1 b; the first ply was drawn",
        "seat 0 (a): 0 (drawn)",
    ]
    assert shown[1].said == ["seat 1 (b): 4"]
    assert shown[0].text != shown[1].text != shown[2].text
    assert [frame.svg for frame in shown] == ["", "", ""]


def test_what_is_said_is_bounded_and_printable(monkeypatch):
    monkeypatch.setattr(frames, "MOST_BYTES", 3 * frames.MOST_SAID)
    screen = FrameScreen(TicTacToe())
    screen.say("seat 0 \x1b[31m\u202eb\nwins")
    for _ in range(5):
        screen.say("y" * 10_000)
    (frame,) = screen.frames
    assert frame.said == ["seat 0 \\u001b[31m\\u202eb\nwins", *["y" * frames.MOST_SAID] * 2]


def test_a_long_game_has_no_more_than_so_many_bytes(monkeypatch):
    monkeypatch.setattr(frames, "MOST_BYTES", 100)
    screen = FrameScreen(TicTacToe())
    for number in range(100):
        screen.position(f"\x1b[31m{number:030}\x1b[0m")
        screen.say("moved")
    assert [frame.text for frame in screen.frames] == [f"{number:030}" for number in range(3)]
