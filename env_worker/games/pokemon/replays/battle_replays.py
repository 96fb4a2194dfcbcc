"""Replay files of battles: the spectator's protocol log, and a page that plays it."""

from __future__ import annotations

from pathlib import Path

from simul.common.errors import ConfigError
from simul.env_worker.games.pokemon.replays.page import replay_page
from simul.env_worker.replays import file_stem, make_folder
from simul.env_worker.source import ReplayPlayer


class BattleReplays:
    """Files of one worker's battles: P1-vs-P2-WORKER-NUMBER.log and .html. Raises ConfigError: nothing can be written.

    `player`: of the pages, see `replay_page`.
    """

    def __init__(self, folder: Path, worker: int, player: ReplayPlayer = "own") -> None:
        self._folder = folder
        self._worker = worker
        self._player = player
        self._expected: dict[int, tuple[str, str]] = {}
        make_folder(folder)

    @property
    def complete(self) -> bool:
        """False while the log of a battle that was started is still to come."""
        return not self._expected

    def expect(self, number: int, names: tuple[str, str]) -> None:
        """A battle has started; its log will follow."""
        self._expected[number] = names

    def forget(self, number: int) -> None:
        """Stop waiting for a battle's log."""
        self._expected.pop(number, None)

    def forget_all(self) -> None:
        """The host is gone: stop waiting for all logs."""
        self._expected.clear()

    def save(self, number: int, log: str) -> None:
        """Write a battle's files. Raises ConfigError where they cannot be written."""
        names = self._expected.pop(number)
        write_replay(self._folder / file_stem(names, self._worker, number), names, log, self._player)


def write_replay(stem: Path, names: tuple[str, str], log: str, player: ReplayPlayer) -> None:
    """Write STEM.log and the page STEM.html, see `replay_page`. Raises ConfigError where they cannot be written."""
    try:
        stem.with_name(f"{stem.name}.log").write_text(log, encoding="utf-8")
        if player != "none":
            page = replay_page(stem.name, names, log, player)
            stem.with_name(f"{stem.name}.html").write_text(page, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"The replay {stem} cannot be written: {error.strerror}.") from None
