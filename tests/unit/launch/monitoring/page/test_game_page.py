"""The page of a game that is played: who may play, and what of it is kept."""

from __future__ import annotations

import pytest

from simul.launch.monitoring.page import game_in_page, game_page, played_game
from simul.launch.monitoring.page.played_game import PlayedGame
from tests.support.waiting import wait_for
from tests.support.web_page import WebPage

TOKEN = "correct horse battery"


@pytest.fixture
def game():
    game = PlayedGame("this", [])  # a module of Python's that prints lines, none of them JSON, and ends
    yield game
    game.close()


def test_only_who_has_the_token_plays_and_only_from_the_page(game, monkeypatch):
    lines: list[str] = []
    monkeypatch.setattr(game, "send", lambda line: lines.append(line) or len(lines) == 1)
    page = WebPage(lambda access, signals: game_page.make_app(game, access, signals), TOKEN)
    own = {"origin": f"http://{page.host}"}
    try:
        assert page.ask("/")[0] == 200
        for path in ("/events", "/pictures/0.svg"):
            assert page.ask(path)[0] == 401
        assert page.ask("/line", "POST", "resign", **own)[0] == 401
        cookie = page.ask("/login", "POST", TOKEN, **own)[1]["set-cookie"].partition(";")[0]
        assert page.ask("/line", "POST", "resign", cookie=cookie)[0] == 403
        assert page.ask("/line", "POST", "x" * 2000, cookie=cookie, **own)[0] == 413
        assert page.ask("/line", cookie=cookie)[0] == 405
        assert lines == []
        assert page.ask("/line", "POST", "a1", cookie=cookie, **own)[0] == 204
        assert lines == ["a1"]
        assert page.ask("/line", "POST", "a2", cookie=cookie, **own)[0] == 409, "the game asks for no more"
        assert page.ask("/pictures/0.svg", cookie=cookie)[0] == 404
        assert b"Beautiful is better than ugly." in page.ask("/events", cookie=cookie)[2]
    finally:
        page.close()


def test_what_the_game_says_is_kept_in_order_and_bounded(monkeypatch):
    monkeypatch.setattr(played_game, "MOST_EVENTS", 4)
    game = PlayedGame("this", [])
    assert wait_for(lambda: game.exit_code is not None)
    assert game.exit_code == 0
    events, seen = game.events(0)
    assert seen > len(events) == 4
    assert events[-1] == {"kind": "end"}
    assert events[-2]["text"].startswith("Namespaces are one honking great idea")
    assert game.events(seen) == ([], seen)
    assert game.events(seen - 1) == (events[-1:], seen)
    assert not game.send("too late")
    game.close()


def test_the_sentence_of_a_game_that_did_not_begin_is_said_where_it_was_started(capsys, monkeypatch):
    monkeypatch.setattr(game_in_page, "LINGER_SEC", 0.0)
    assert game_in_page.play_in_page("json.tool", ["/no/such/file"], 0) == 2
    assert "No such file or directory" in capsys.readouterr().err


def test_a_line_in_another_encoding_is_shown_and_the_game_goes_on(tmp_path, monkeypatch):
    (tmp_path / "talks.py").write_text('import sys; sys.stdout.buffer.write(b\'{"text":"caf\\xe9"}\\nmore\\n\')')
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    game = PlayedGame("talks", [])
    assert wait_for(lambda: game.exit_code is not None)
    assert [event.get("text") for event in game.events(0)[0]] == ['{"text":"caf\ufffd"}', "more", None]
    game.close()
