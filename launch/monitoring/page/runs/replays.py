"""Finished games that lie beside a run; those of tables as frames, made by a process of the role that has the rules."""

from __future__ import annotations

import contextlib
import errno
import heapq
import itertools
import os
import re
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import msgspec

from simul.common.config.game_description import TABLE_PLAYER
from simul.common.errors import ConfigError
from simul.common.runtime.private_files import read_regular
from simul.launch.processes.role_process import exit_reason, role_environment

FOLDER = "replays"  # of a run directory; a folder of replays may also be named itself
# As `simul.env_worker.replays` makes them, and as `simul.env_worker.games.gymnasium.replays` does.
TABLE_OR_BATTLE = r"[A-Za-z0-9.@_+-]{1,200}-\d{1,9}-\d{1,10}\.(json|log)"
EPISODE = re.compile(r"\d{1,9}-\d{1,9}-episode-\d{1,10}\.json")
NAME = re.compile(f"{TABLE_OR_BATTLE}|{EPISODE.pattern}")
MOST_LISTED = 200
MOST_LOOKED_AT = 100_000  # replays of a folder, in the order in which the file system has them
MOST_SECONDS, POLL_SEC = 120.0, 0.2
MOST_LETTERS = 1000  # of an error
FILE_BYTES = 4 * 2**20  # of a battle's log or an episode


class Frame(msgspec.Struct):
    """A position of a replay; see `simul.env_worker.terminal.frames`."""

    text: str
    svg: str
    said: list[str]


class ReplayKey(NamedTuple):
    """A file as it is now."""

    path: Path
    changed_ns: int


def replay_names(root: Path) -> list[str]:
    """Of `root`/replays, else of `root`, the newest first."""
    try:
        with os.scandir(_folder(root)) as entries:
            named = itertools.islice((entry for entry in entries if NAME.fullmatch(entry.name)), MOST_LOOKED_AT)
            found = heapq.nlargest(
                MOST_LISTED,
                (
                    (entry.stat(follow_symlinks=False).st_mtime, entry.name)
                    for entry in named
                    if entry.is_file(follow_symlinks=False)
                ),
            )
    except OSError:
        return []
    return [name for _, name in found]


def replay_key(root: Path, name: str) -> ReplayKey:
    """Raises OSError where there is no such replay, or a link."""
    path = _folder(root) / name
    found = path.lstat() if NAME.fullmatch(name) else None
    if found is None or not stat.S_ISREG(found.st_mode):
        raise OSError("no replay")
    return ReplayKey(path, found.st_mtime_ns)


def battle_lines(path: Path) -> list[str]:
    """The log of a battle. Raises OSError, and ConfigError where it is too large."""
    return read_replay_file(path).decode(errors="replace").rstrip("\n").split("\n")


def read_replay_file(path: Path) -> bytes:
    """A file that the page itself reads. Raises OSError, and ConfigError where it is too large."""
    try:
        return read_regular(path, FILE_BYTES, links=False)
    except OSError as error:
        if error.errno != errno.EFBIG:
            raise
    raise ConfigError(f"{path.name} has {path.lstat().st_size:,} bytes; the page shows at most {FILE_BYTES:,} of them.")


def replay_frames(path: Path, stopped: Callable[[], bool] = lambda: False) -> list[Frame]:
    """A table game, played again, unless `stopped`. It runs no code that the replay names. Raises ConfigError."""
    line = [sys.executable, "-P", "-m", TABLE_PLAYER, f"--parent={os.getpid()}", "--frames", "--replay", str(path)]
    deadline = time.monotonic() + MOST_SECONDS
    with subprocess.Popen(
        line, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=role_environment(1)
    ) as process:
        while True:
            if stopped() or time.monotonic() > deadline:
                process.kill()
                raise ConfigError(f"The replay was not played again within {MOST_SECONDS:.0f} s.")
            with contextlib.suppress(subprocess.TimeoutExpired):
                frames, errors = process.communicate(timeout=POLL_SEC)
                break
    if process.returncode:
        raise ConfigError(_refusal(errors.decode(errors="replace"), process.returncode))
    return msgspec.json.decode(frames, type=list[Frame])


def _refusal(errors: str, code: int) -> str:
    """What a process that ended with `code` says of a replay, in one line. `errors`: its standard error."""
    _, found, text = f"\n{errors}".rpartition("\nsimul: ")
    first, *others = text.strip().splitlines() or [exit_reason(code)]
    if found:
        return " ".join([first, "; ".join(map(str.strip, others))]).strip()[:MOST_LETTERS]
    return f"The replay could not be played again: {[first, *others][-1][:MOST_LETTERS]}."


def _folder(root: Path) -> Path:
    inside = root / FOLDER
    return inside if inside.is_dir() and not inside.is_symlink() else root
