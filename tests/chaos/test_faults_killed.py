"""Fault 28: env workers that are killed in the midst of it, one after the other, and the account of every row."""

from __future__ import annotations

import itertools
import multiprocessing
import random
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from simul.common.errors import ERR_NO_SESSION
from simul.inference_server.ops import reaper
from tests.support.faults import count, unharmed
from tests.support.ledger import Book, assert_own_answers
from tests.support.player import ENTRY, ENVS, play
from tests.support.stand import Stand
from tests.support.waiting import PATIENCE_SEC, wait_for

PLAYERS = 4
_processes = multiprocessing.get_context("forkserver")  # imports once, then a player starts in milliseconds
_processes.set_forkserver_preload(["tests.support.player"])


class Crew:
    """Players, living and dead; run_ids count up from 1."""

    def __init__(self, stand: Stand, folder: Path) -> None:
        self.killed: list[int] = []
        self._root, self._folder = str(stand.run_dir.root), folder
        self._drop_ended: dict[int, tuple[str, multiprocessing.Process]] = {}
        self._run_ids = itertools.count(1)
        for number in range(PLAYERS):
            self._start(f"player-{number}")

    def _start(self, name: str) -> None:
        run_id = next(self._run_ids)
        process = _processes.Process(target=play, args=(self._root, name, run_id, str(self._book(run_id))))
        process.start()
        self._drop_ended[run_id] = name, process

    @property
    def living(self) -> set[int]:
        """Their run_ids."""
        return set(self._drop_ended)

    def _book(self, run_id: int) -> Path:
        return self._folder / f"{run_id}.book"

    def kill_one(self, dice: random.Random) -> None:
        """SIGKILL. Another takes over, under the same name or a new one."""
        victim = dice.choice(sorted(self._drop_ended))
        wait_for(self._book(victim).exists)  # it plays
        name, process = self._drop_ended.pop(victim)
        process.kill()
        process.join()
        assert process.exitcode == -signal.SIGKILL  # it was well until then
        self.killed.append(victim)
        self._start(name if dice.random() < 0.5 else f"heir-of-{victim}")

    def retire(self) -> None:
        """Let the living finish what they wait for, once each of them has heard something."""
        wait_for(lambda: all(_entries(self._book(run_id)) > ENVS for run_id in self._drop_ended))  # ENVS: sent at first
        for _, process in self._drop_ended.values():
            process.terminate()
        for _, process in self._drop_ended.values():
            process.join(PATIENCE_SEC)
            assert process.exitcode == 0

    def books(self) -> list[Book]:
        """What each has written, up to its end."""
        return [Book.read(self._book(run_id), run_id) for run_id in range(1, next(self._run_ids))]

    def bury(self) -> None:
        """For tests that failed: nobody may be left."""
        for _, process in self._drop_ended.values():
            process.kill()
            process.join()


def _entries(book: Path) -> int:
    return book.stat().st_size // ENTRY.itemsize if book.exists() else 0


def _players(stand: Stand) -> set[int]:
    """run_ids of those that the server knows."""
    return {client.run_id for client in stand.server._client_socket._clients if client.training}


def let_time_out(stand: Stand, *living: int) -> None:
    """The players but those with these run_ids were last heard a day ago."""
    for client in stand.server._client_socket._clients:
        if client.training and client.run_id not in living:
            client.heard_at -= 86_400.0


@contextmanager
def crew_of(stand: Stand, folder: Path) -> Iterator[Crew]:
    crew = Crew(stand, folder)
    try:
        yield crew
    finally:
        crew.bury()


@pytest.mark.parametrize("kills", [15, pytest.param(1000, marks=[pytest.mark.slow, pytest.mark.timeout(1200)])])
def test_fault_28_of_killed_clients_every_row_is_accounted_for(kills: int, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(reaper, "EVERY_SEC", 0.1)
    dice = random.Random(kills)
    with (
        Stand(max_sessions=2048, unroll_length=4) as stand,
        unharmed(stand, "sessions_ended.client_lost") as neighbour,
        crew_of(stand, tmp_path) as crew,
    ):
        for _ in range(kills):
            time.sleep(dice.uniform(0.0, 0.04))
            crew.kill_one(dice)
            let_time_out(stand, *crew.living)
            neighbour.play(1)
        wait_for(lambda: let_time_out(stand, *crew.living) or neighbour.play(1) or _players(stand) == crew.living)
        crew.retire()
        wait_for(lambda: let_time_out(stand) or neighbour.play(1) or count(stand, "clients") == 1)
        steps = stand.server.metrics()["steps"]
        refused = steps["dropped"].get("unanswered", 0)  # rows that waited when the heir of the same name came
        answered = steps["seen"] - refused
        wait_for(lambda: count(stand, "decisions") - neighbour.answered == answered)
        wait_for(lambda: stand.learner.steps() == steps["sent"])
        wait_for(lambda: count(stand, f"rows_errored.{ERR_NO_SESSION}") == refused)
        assert stand.server.metrics()["rows_errored"].keys() <= {ERR_NO_SESSION}
    books = crew.books()
    _assert_accounted_for(books, [book for book in books if book.run_id in crew.killed], answered, steps["seen"])
    assert_own_answers(stand, books)


def _assert_accounted_for(books: list[Book], dead: list[Book], answered: int, arrived: int) -> None:
    """sent = answered + lost with a dead client, and so it stands in the server's figures; nobody heard a refusal."""
    assert not any(book.failed for book in books)
    assert all(book.lost == 0 and book.answered for book in books if book not in dead)
    assert all(0 <= book.lost <= ENVS for book in dead)
    assert any(book.lost for book in dead)
    sent, heard = sum(len(book.sent) for book in books), sum(len(book.answered) for book in books)
    assert heard <= answered <= arrived <= sent
    assert sent - heard == sum(book.lost for book in dead)
