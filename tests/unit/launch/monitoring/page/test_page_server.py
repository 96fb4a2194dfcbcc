"""The page over HTTP: what is answered, to whom, and with which headers."""

from __future__ import annotations

import contextlib
import re
import socket
from collections.abc import Iterator

import msgspec
import pytest

from simul.common.errors import ConfigError
from simul.launch.monitoring.page import web_server
from simul.launch.monitoring.page.page_server import FILES, make_app
from simul.launch.monitoring.page.runs.watched_run import WatchedRun
from simul.launch.monitoring.page.web_server import STATIC
from tests.support.league import write_league
from tests.support.recorded_run import snapshot
from tests.support.web_page import WebPage

TOKEN = "correct horse battery"


@pytest.fixture
def root(tmp_path):
    (tmp_path / "status.json").write_bytes(msgspec.json.encode(snapshot()))
    (tmp_path / "batch.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    return tmp_path


def app_of(root):
    return lambda access, signals: make_app([WatchedRun(root, "run")], access, signals)


@pytest.fixture
def page(root) -> Iterator[WebPage]:
    page = WebPage(app_of(root), "")
    yield page
    page.close()


@pytest.fixture
def closed_page(root) -> Iterator[WebPage]:
    page = WebPage(app_of(root), TOKEN)
    yield page
    page.close()


def test_files_stream_and_plots_with_the_headers_that_keep_others_out(page):
    for path in (*FILES, "/battle"):
        code, headers, content = page.ask(path)
        assert (code, bool(content)) == (200, True)
        assert headers["content-security-policy"].startswith("default-src 'self';")
        assert headers["x-content-type-options"] == "nosniff"
    code, headers, stream = page.ask("/events")
    message = (
        msgspec.json.decode(re.search(rb"data: (.*)\n\n|data: (.*)$", stream)[1] or b"{}") if b"}\n\n" in stream else {}
    )
    assert code == 200
    assert b'"phase":"training"' in stream or message.get("phase") == "training"
    code, headers, _ = page.ask("/runs/0/batch.png")
    assert (code, headers["content-type"]) == (200, "image/png")


def test_payoffs_and_ratings_are_in_the_stream_and_have_a_panel(page, root):
    write_league(root)
    stream = page.ask("/events")[2]
    assert b'"columns":["learner@300","past/200","past/100","random"]' in stream
    assert re.search(b'<div class="panel league"[^>]* hidden>', page.ask("/")[2])
    assert b'if ("league" in message) this.showLeague();' in page.ask("/static/page.js")[2]


def test_a_run_that_cannot_be_read_ends_the_stream_of_no_other(root):
    class Broken(WatchedRun):
        def poll(self, now):
            raise ZeroDivisionError

    page = WebPage(lambda access, signals: make_app([WatchedRun(root, "run"), Broken(root, "b")], access, signals), "")
    try:
        assert b'"phase":"training"' in page.ask("/events")[2]
    finally:
        page.close()


@pytest.mark.parametrize(
    ("answered", "unfinished"),
    [
        ("", ""), ("", "GET / HTTP/1.1\r\nHost: "), ("GET /login HTTP/1.1\r\nHost: {host}\r\n\r\n", "GET /login HT"),
        ("", "POST /login HTTP/1.1\r\nHost: {host}\r\nOrigin: http://{host}\r\nContent-Length: 900\r\n\r\nabc"),
    ],
    ids=["silent", "half a request", "half a second request", "half a body"],
)  # fmt: skip
def test_connections_that_ask_for_nothing_whole_are_closed_and_take_no_place(page, monkeypatch, answered, unfinished):
    monkeypatch.setattr(web_server, "REQUEST_SEC", 0.5)
    idle = []
    try:
        for _ in range(web_server.MOST_CONNECTIONS - 1):
            idle.append(socket.create_connection(page.host.rsplit(":", 1), timeout=20))
            with contextlib.suppress(ConnectionError):  # closed already, on a busy machine
                if answered:
                    idle[-1].sendall(answered.format(host=page.host).encode())
                    idle[-1].recv(1000)
                idle[-1].sendall(unfinished.format(host=page.host).encode())
        for each in idle:
            with contextlib.suppress(ConnectionError):
                while each.recv(1000):
                    pass
        assert page.ask("/login")[0] == 200
    finally:
        for each in idle:
            each.close()


@pytest.mark.parametrize("host", ["a..b", "x" * 70])
def test_a_name_that_can_be_none_is_a_sentence(host):
    with pytest.raises(ConfigError, match="no address of this machine"):
        web_server.listen(host, 0)


@pytest.mark.parametrize(
    "path",
    [
        "/runs/0/token", "/runs/1/batch.png", "/runs/-1/batch.png", "/runs/0/..%2fbatch.png", "/runs/x/batch.png",
        "/static/../page_server.py", "/static/%2e%2e/page_server.py", "/static//etc/passwd", "/status.json", "/static/",
    ],
)  # fmt: skip
def test_a_hostile_path_is_not_found(page, path):
    assert page.ask(path)[0] == 404


@pytest.mark.parametrize("number", ["1" * 5000, "%D9%A1"], ids=["5,000 digits", "an Arabic digit"])
@pytest.mark.parametrize(
    "path", ["/runs/{}/batch.png", "/runs/0/replays/a-0-1.json/{}.svg", "/runs/{}/game", "/runs/0/game/0/0/{}",
             "/runs/0/game/{}/0/any", "/games/00000000/{}.svg"]
)  # fmt: skip
def test_a_number_that_can_be_none_is_not_found(page, path, number):
    code, headers, content = page.ask(path.format(number))
    assert (code, headers["content-type"]) == (404, "text/plain; charset=utf-8")
    assert content.decode() in (web_server.NOT_FOUND, "Expected a number of a seat, or any.\n")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
def test_nothing_changes_anything(page, method):
    assert page.ask("/events", method)[0] == 405


def test_another_hosts_name_is_refused(page):
    code, headers, content = page.ask("/events", host="evil.example")
    assert code == 400
    assert b"not known by this name" in content
    assert "content-security-policy" in headers


def test_the_token_gives_a_cookie_and_the_cookie_the_runs(closed_page):
    page = closed_page
    own = {"origin": f"http://{page.host}"}
    assert page.ask("/")[0] == 200, "nothing of a run"
    assert page.ask("/login")[2] == b"false"
    for path in ("/events", "/runs/0/batch.png"):
        assert page.ask(path)[0] == 401
        assert page.ask(path, cookie=f"simul-page-{page.port}={TOKEN}")[0] == 401, "the token itself is no cookie"
    assert page.ask("/login", "POST", TOKEN)[0] == 403
    assert page.ask("/login", "POST", TOKEN, origin="http://evil.example")[0] == 403
    assert page.ask("/login", "POST", TOKEN[:-1], **own)[0] == 401
    assert page.ask("/login", "POST", "x" * 2000, **own)[0] == 413
    code, headers, _ = page.ask("/login", "POST", TOKEN, **own)
    assert code == 204
    cookie, *attributes = headers["set-cookie"].split("; ")
    assert {attribute.lower() for attribute in attributes} >= {"httponly", "samesite=strict", "path=/"}
    assert TOKEN not in cookie
    assert page.ask("/events", cookie=cookie)[0] == 200
    assert page.ask("/login", cookie=cookie)[2] == b"true"


def test_nothing_is_inline_and_nothing_of_others_becomes_markup():
    for name in ("index.html", "replay.html", "play.html", "game.html"):
        inline = re.findall(r"<script(?![^>]* src=)|<style|\son\w+=|\sstyle=|https?://", (STATIC / name).read_text())
        assert inline == []
    own = [
        (STATIC / name).read_text()
        for name in ("page.js", "charts.js", "requests.js", "replay.js", "battle.js", "play.js", "game.js")
    ]
    assert [
        re.findall(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|\.html\(", text) for text in own
    ] == [[]] * len(own)
