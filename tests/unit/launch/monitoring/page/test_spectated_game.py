"""A running game over HTTP: who may ask for it, what comes, and what is said where none does."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator

import msgspec
import pytest

from simul.common.config.schema import Config, WorkersConfig
from simul.common.protocol.specs import GameSpec, Slice
from simul.common.role.machine import this_machine
from simul.common.role.run_directory import RunDir
from simul.common.role.run_lock import OWNER_FILE, ProcessIdentity
from simul.common.role.spectating import ANY_SEAT, RequestReader, SpectatorRecord, SpectatorRequest
from simul.launch.monitoring.page import spectated_game
from simul.launch.monitoring.page.page_server import make_app
from simul.launch.monitoring.page.runs.watched_run import WatchedRun
from tests.support.recorded_run import process, snapshot
from tests.support.waiting import wait_for
from tests.support.web_page import WebPage

SVG = "<svg xmlns='http://www.w3.org/2000/svg'/>"
GAME = "/runs/0/game/0/2"


@pytest.fixture
def run_dir(tmp_path) -> RunDir:
    run_dir = RunDir(tmp_path / "run")
    run_dir.create()
    run_dir.write_spec(GameSpec("cards", 2, 3, seats=2, layout=(Slice("own.hand", 0, 2, meaning="<b>"),)))
    return run_dir


@pytest.fixture
def page(run_dir) -> Iterator[WebPage]:
    page = WebPage(lambda access, signals: make_app([WatchedRun(run_dir.root, "run")], access, signals), "")
    yield page
    page.close()


class Worker(threading.Thread):
    """Waits for a request, and answers it with `records`."""

    def __init__(self, run_dir: RunDir, *records: SpectatorRecord) -> None:
        super().__init__()
        self._reader, self._records = RequestReader(run_dir, 0), records
        self.request: SpectatorRequest | None = None
        self.start()

    def run(self) -> None:
        deadline = time.monotonic() + 10
        while (request := self._reader.read()) is None and time.monotonic() < deadline:
            time.sleep(0.01)
        self.request = request
        if request is not None:
            sender = self._reader.connect(request)
            for record in self._records:
                sender.send(record)
            sender.close()


def messages(stream: bytes) -> list[dict]:
    return [msgspec.json.decode(data) for data in re.findall(rb"data: (.*)\n\n", stream + b"\n\n")]


def test_a_record_comes_as_an_event_with_its_picture_apart(page, run_dir):
    worker = Worker(run_dir, SpectatorRecord("decision", env=2, seat=1, value=0.5, svg=SVG, text="hand"))
    code, headers, stream = page.ask(GAME + "/any")
    worker.join()
    assert worker.request is not None
    assert (worker.request.env, worker.request.seat) == (2, ANY_SEAT)
    assert (code, headers["content-type"].partition(";")[0]) == (200, "text/event-stream")
    record = messages(stream)[0]["record"]
    assert (record["seat"], record["value"], record["text"], "svg" in record) == (1, 0.5, "hand", False)
    assert re.fullmatch(r"/games/[0-9a-f]{8}/1\.svg", record["picture"])


def test_a_browser_that_leaves_ends_the_request(page, run_dir):
    Worker(run_dir, SpectatorRecord("decision")).join(0.0)
    page.ask(GAME + "/1")
    deadline = time.monotonic() + 10
    while list(run_dir.sockets.iterdir()) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert list(run_dir.sockets.iterdir()) == []


def test_what_the_game_is(page):
    code, _, content = page.ask("/runs/0/game")
    assert code == 200
    assert msgspec.json.decode(content) == {
        "run": "run", "game": "cards", "seats": 2, "actions": 3, "slices": [["own.hand", 0, 2, "<b>"]], "said": "",
        "left_out": 0, "workers": 0, "envs": 0,
    }  # fmt: skip


def test_how_many_workers_and_games_there_are(page, run_dir):
    run_dir.write_config(Config(workers=WorkersConfig(count=3, envs=8)))
    about = msgspec.json.decode(page.ask("/runs/0/game")[2])
    assert (about["workers"], about["envs"]) == (3, 8)


@pytest.mark.parametrize(
    "config",
    [b"", b"\xff", b"workers: 3", b"workers: [1]", b"workers: {count: x, envs: 2}", b"workers: {count: 0, envs: 2}",
     b"workers: {count: 1, envs: %d}" % 2**40, b"workers: &a {count: *a, envs: 1}", b"[" * 9000],
)  # fmt: skip
def test_a_configuration_that_is_none_has_no_numbers(page, run_dir, config):
    run_dir.write("config.yaml", config)
    about = msgspec.json.decode(page.ask("/runs/0/game")[2])
    assert (about["workers"], about["envs"]) == (0, 0)


@pytest.mark.parametrize("path", ["/runs/1/game", "/runs/1/game/0/0/0", "/runs/0/game/0/0/x", "/games/00000000/1.svg"])
def test_what_is_not_there_is_not_found(page, path):
    assert page.ask(path)[0] == 404


def test_other_sites_cannot_have_a_game_watched(page, run_dir):
    assert page.ask(GAME + "/0", **{"sec-fetch-site": "cross-site"})[0] == 403
    assert list(run_dir.sockets.iterdir()) == []


def test_a_silent_worker_is_said(page, monkeypatch):
    monkeypatch.setattr(spectated_game, "SILENT_SEC", 0.0)
    assert messages(page.ask(GAME + "/0")[2])[0] == {"said": spectated_game.SILENT.format(0)}


def test_what_a_worker_refuses_ends_the_stream(page, run_dir):
    worker = Worker(run_dir, SpectatorRecord(said="this worker has games 0 to 1"))
    assert messages(page.ask(GAME + "/0")[2]) == [{"ended": "this worker has games 0 to 1"}]
    worker.join()


@pytest.mark.parametrize("game", ["/runs/0/game/7/2", "/runs/0/game/0/2147483648"])
def test_a_game_that_is_not_there_is_not_waited_for(page, run_dir, game):
    run_dir.write("status.json", msgspec.json.encode(snapshot()))
    ended = messages(page.ask(game + "/any")[2])[0]["ended"]
    assert ended in ("The run has no worker 7: it has 7, numbered from 0.", spectated_game.NO_GAME)
    assert list(run_dir.sockets.iterdir()) == []


def test_workers_of_other_machines_are_said_before_a_game_is_chosen_and_after(page, run_dir):
    on_several = snapshot(processes=[process(node="node-b"), process("simul-worker-1", node="node-a")])
    run_dir.write("status.json", msgspec.json.encode(on_several))
    said = msgspec.json.decode(page.ask("/runs/0/game")[2])["said"]
    assert "cannot be watched: it runs on several machines (workers on node-a, node-b)" in said
    assert messages(page.ask(GAME + "/0")[2]) == [{"ended": said}]
    run_dir.write("status.json", msgspec.json.encode(snapshot(processes=[process(machine="elsewhere/1/2")])))
    said = "Games of this run cannot be watched here: it runs on elsewhere. Use `simul page` there."
    assert messages(page.ask(GAME + "/0")[2]) == [{"ended": said}]
    container = "/".join(["elsewhere", *this_machine().split("/")[1:2], "3"])
    run_dir.write("status.json", msgspec.json.encode(snapshot(processes=[process(machine=container)])))
    assert msgspec.json.decode(page.ask("/runs/0/game")[2])["said"] == ""


def test_of_very_many_slices_the_first_are_listed(page, run_dir):
    run_dir.write_spec(GameSpec("cards", 50_000, 3, layout=tuple(Slice(f"\x1b[2J{n}", n, 1) for n in range(50_000))))
    about = msgspec.json.decode(page.ask("/runs/0/game")[2])
    assert (len(about["slices"]), about["left_out"]) == (4000, 46_000)


def later(page, path: str) -> tuple[threading.Thread, list[dict]]:
    """Asks in a thread; the messages are there when it has ended."""
    found: list[dict] = []
    thread = threading.Thread(target=lambda: found.extend(messages(page.ask(path)[2])))
    thread.start()
    return thread, found


def test_the_last_of_two_browsers_has_the_game_and_the_first_is_told(page, run_dir):
    first, told = later(page, GAME + "/0")
    reader = RequestReader(run_dir, 0)
    asked = wait_for(reader.read)
    worker, watched = later(page, GAME + "/1")
    first.join(20)
    assert told == [{"ended": spectated_game.ENDED}]
    second = wait_for(reader.read)
    assert (second.seat, second.id != asked.id) == (1, True)
    sender = reader.connect(second)
    sender.send(SpectatorRecord("decision", seat=1))
    worker.join(20)
    sender.close()
    assert watched[0]["record"]["seat"] == 1


def test_a_run_that_ends_while_it_is_watched_ends_the_stream(page, run_dir):
    browser, told = later(page, GAME + "/0")
    wait_for(RequestReader(run_dir, 0).read)
    run_dir.remove_sockets()
    browser.join(20)
    assert told == [{"ended": spectated_game.ENDED}]


def test_a_supervisor_that_was_killed_ends_the_stream(page, run_dir, monkeypatch):
    monkeypatch.setattr(spectated_game, "RENEW_SEC", 0.0)
    dead = ProcessIdentity(2**22, 1.0, this_machine())
    run_dir.write(OWNER_FILE, msgspec.json.encode(dead))
    assert messages(page.ask(GAME + "/0")[2]) == [{"ended": "The run is not active: its supervisor has ended."}]


def test_a_run_that_ended_is_said(page, run_dir):
    run_dir.remove_sockets()
    ended = messages(page.ask(GAME + "/0")[2])[0]["ended"]
    assert ended == "Games are watched while a run is active, by the user whose run it is."


def test_more_games_than_a_page_shows_are_refused_in_a_sentence(page, run_dir, monkeypatch):
    monkeypatch.setattr(spectated_game, "MOST_GAMES", 0)
    assert messages(page.ask(GAME + "/0")[2])[0] == {"ended": spectated_game.FULL}
    assert list(run_dir.sockets.iterdir()) == []
