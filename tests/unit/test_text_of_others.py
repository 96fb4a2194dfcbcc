"""Text that a stranger wrote, on its way to a terminal: names in a replay, a game's error, a server's, a client's."""

from __future__ import annotations

import io
import sys
import types

import msgspec
import pytest
from rich.console import Console

from simul.common.protocol.codec import encode
from simul.common.protocol.messages import PROTOCOL, Error, Hello, Report
from simul.common.protocol.specs import GameSpec
from simul.env_worker.games.base.replays import RecordedGame, ReplayFolder
from simul.env_worker.terminal import __main__ as terminal
from simul.inference_server import mock_server
from simul.launch import cli
from simul.launch.commands.status import status
from simul.launch.diagnostics import connection_check
from simul.launch.monitoring.notices.notifier import Delivery, Notice, NoticeKind, NoticeSender, TokenBucket
from simul.launch.monitoring.view.display import make_display
from simul.launch.monitoring.view.figure_texts import run_line
from simul.launch.monitoring.view.output import complain
from simul.launch.processes.role_reports import RoleReports
from tests.support.recorded_run import snapshot

HOSTILE = (
    "\x1b]0;owned\a\x1b[2J\x9b31m\x1b]52;c;aGk=\a\x1b]8;;http://x\a\u202etxt\u2066\u200f\u061c\u2028\x85\r\b"
    "[red][link=http://x]y[/link]"
)
BELL = "\\u0007"
SHOWN = "\\u001b]0;owned\\u0007\\u001b[2J\\u009b31m\\u001b]52;c;aGk=\\u0007"


def check(text: str) -> None:
    """`text` shows HOSTILE, as characters that a terminal only prints; rich drops the bell (U+0007)."""
    assert "".join(letter for letter in text if not letter.isprintable() and letter != "\n") == ""
    assert SHOWN.replace(BELL, "") in text.replace("\n", "").replace(BELL, ""), text


def test_the_names_of_a_replay_in_watch(tmp_path, capsys, monkeypatch):
    from examples.custom_game import TicTacToe

    played = RecordedGame(TicTacToe(), 1)
    played.apply({0: 0})
    folder = ReplayFolder(tmp_path, {"game": "examples.custom_game:TicTacToe"}, pictures=False)
    path = folder.save(played.game, 0, 1, ["a", "b"], played.turns)
    replay = msgspec.json.decode(path.read_bytes())
    move = {**replay["turns"][0][0], "name": HOSTILE}
    path.write_bytes(msgspec.json.encode({**replay, "players": [HOSTILE, "b"], "turns": [[move]]}))
    monkeypatch.setattr(sys, "argv", ["watch", f"--replay={path}", "--delay=0", "--trust"])
    assert terminal.main() == 0
    shown = capsys.readouterr().out
    check(shown)
    assert shown.count(SHOWN.replace(BELL, "")) == 4, "the title, a move's player and name, and the result"


def test_the_error_of_a_replay_that_is_none(tmp_path, capsys, monkeypatch):
    path = tmp_path / "replay.json"
    path.write_bytes(msgspec.json.encode({HOSTILE: 1}))
    monkeypatch.setattr(sys, "argv", ["watch", f"--replay={path}"])
    assert terminal.main() == 2
    check(capsys.readouterr().err)


def raised(reports: RoleReports) -> str:
    """The sentence for the view of a worker whose game raised with HOSTILE in its message."""
    said = f"env.py:7: ValueError: {HOSTILE}\n12:00:00 a line of its own"
    metrics = {"events": [], "recent": {HOSTILE: {"games": 3, "win_rate": 0.5}}}
    report = Report(role="env_worker", index=0, run_id=1, pid=1, state="failed", metrics=metrics, event=said)
    (sentence,) = reports.add_report(report, 0.0)
    assert "\n" not in sentence
    return sentence


def test_a_games_exception_in_the_plain_view_and_its_log(capfd):
    display = make_display(plain=True)
    display.say(raised(RoleReports()))
    check(capfd.readouterr().out)
    display.summary(HOSTILE)
    check(capfd.readouterr().out)


def test_a_games_exception_in_the_panel_and_in_status(tmp_path, capsys, monkeypatch):
    reports = RoleReports()
    event = raised(reports)
    found = snapshot(
        events=[event, f"{HOSTILE}\n{HOSTILE}"], run_dir="/runs/" + HOSTILE.replace("/", ""), phase=HOSTILE,
        workers=reports.totals("env_worker"),
    )  # fmt: skip
    (tmp_path / "status.json").write_bytes(msgspec.json.encode(found))
    monkeypatch.setenv("COLUMNS", "1000")
    assert status(tmp_path, as_json=False) == 3
    shown = capsys.readouterr().out
    check(shown)
    assert shown.count(SHOWN) == 5, "the folder, an opponent, and two events with three of it"
    assert status(tmp_path, as_json=True) == 3
    shown = capsys.readouterr().out
    check(shown)
    assert msgspec.json.decode(shown)["phase"] == HOSTILE
    check(run_line(found))


def test_the_panel_keeps_its_height_and_width(capsys):
    from simul.common.runtime.terminal_console import SafeConsole
    from simul.launch.monitoring.view.panel import run_panel

    console = SafeConsole(file=io.StringIO(), width=80, height=24)
    assert isinstance(console, Console)
    console.print(run_panel(snapshot(events=[f"{HOSTILE}\n\n\n"] * 3, run_dir=f"{HOSTILE}\n\n")))
    lines = console.file.getvalue().splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80


def test_a_servers_error_in_connect(capsys, monkeypatch):
    class Check(connection_check._ConnectionCheck):
        def _ask(self, *message):
            return Error(code=f"ERR_{HOSTILE}", message=f"{HOSTILE}\nAll is well")

    monkeypatch.setattr(connection_check, "_ConnectionCheck", Check)
    assert cli.main(["connect", "inproc://nobody", "--spec", "0"]) == 1
    shown = capsys.readouterr().out
    check(shown)
    assert "\nAll is well" not in shown


@pytest.mark.parametrize(
    "hello",
    [
        Hello(protocol=PROTOCOL, client=HOSTILE, run_id=1, spec_fingerprint=HOSTILE),
        Hello(protocol=HOSTILE, client="c", run_id=1, spec_fingerprint="0"),
    ],
    ids=["client", "protocol"],
)
def test_a_clients_fields_in_connect_listen(capsys, monkeypatch, hello):
    tensors = msgspec.msgpack.encode({"type": "x", "tensors": [[HOSTILE, "<f4", [1]], HOSTILE]})
    waiting = [encode(hello), [tensors, b"12"], [HOSTILE.encode()]]
    stop: list[bool] = []

    def receive():
        if not waiting:
            stop.append(True)
        return (b"peer", waiting.pop(0)) if waiting else None

    socket = types.SimpleNamespace(receive=receive, send=lambda peer, frames: None)
    monkeypatch.setattr(mock_server, "Poller", lambda sockets: types.SimpleNamespace(wait=lambda seconds: None))
    mock_server._serve(socket, GameSpec("mock", observation_size=4, num_actions=2), "", stop)
    shown = capsys.readouterr().out.replace("\\x1b", "\\u001b").replace("\\x07", "\\u0007").replace("\\x9b", "\\u009b")
    check(shown)
    assert shown.count("\nmessage ") == 2


def test_an_error_that_a_command_complains_of(capsys):
    complain(f"simul: {HOSTILE}\ud800\nFix it.\n")
    shown = capsys.readouterr().err
    check(shown)
    assert shown.endswith("\nFix it.\n")


def test_the_text_of_a_notice():
    class Address:
        name = "test"
        got: tuple[str, ...] = ()

        def deliver(self, *given):
            self.got = given
            return Delivery()

    address = Address()
    sender = NoticeSender(address, f"Simul {HOSTILE}", TokenBucket(0.0))
    sender.post(Notice(NoticeKind.CRASH, f"{HOSTILE}\nthe end of its log"))
    sender.close()
    sender._thread.join(60)
    title, text, *_ = address.got
    check(title)
    check(text)
    assert "\n" not in title, "a title is a header of a mail"
    assert text.endswith("\nthe end of its log")
