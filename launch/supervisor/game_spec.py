"""The game spec, printed by an env worker: only the workers know the games."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from simul.common.checkpoints.meta import checkpoint_folders, read_meta
from simul.common.config.games import GAMES
from simul.common.config.schema import Config
from simul.common.errors import CheckpointError, ConfigError, SimulError
from simul.common.protocol.specs import GameSpec
from simul.common.role.lifecycle import NOTICE
from simul.common.role.run_directory import RunDir
from simul.common.role.temporary import temporary_folder
from simul.common.runtime.decode_errors import DECODE_ERRORS
from simul.common.runtime.terminal_text import printable
from simul.launch.processes.process_group import Command, RoleDied
from simul.launch.processes.restart_policy import MOST_FAILED_STARTS
from simul.launch.processes.role_process import exit_reason, kill_session, role_environment

LIMIT_SEC = 120.0
POLL_SEC = 0.2
MOST_NOTICE = 1000  # characters


class StartStopped(SimulError):
    """A stop signal came before the game spec. Caught by the supervisor: a clean end."""

    exit_code = 130


def ask_for_spec(
    config: Config, command: Command, stopped: Callable[[], bool] = lambda: False,
    say: Callable[[str], None] = lambda sentence: None,
) -> GameSpec:  # fmt: skip
    """Run `python -m simul.env_worker --print-spec` in a temporary run directory.

    `say`: gets a sentence where a call of the game's code does not return.

    Raises:
        ConfigError, RoleDied: a sentence says what is wrong.
        StartStopped: `stopped()` became true.
    """
    with temporary_folder("simul-spec-") as folder:
        RunDir(folder).write_config(config)
        ends = []
        for _ in range(MOST_FAILED_STARTS):  # as a worker that ends without a word is started again
            answer = _ask(folder, command, stopped, say, config.game_title)
            if isinstance(answer, GameSpec):
                return answer
            ends.append(exit_reason(answer))
    raise RoleDied(
        f"The game {config.game_title} could not be loaded: its process ended {len(ends)} times without an exception "
        f"({', '.join(dict.fromkeys(ends))}), from outside or by the game itself (os._exit, or a crash in a native "
        "library).",
        1,
    )


def check_same_encoder(run_dir: RunDir, spec: GameSpec, config: Config) -> None:
    """Raise ConfigError where the newest checkpoint of the run was made for another game or encoder than `config`'s."""
    for folder in checkpoint_folders(run_dir.checkpoints):
        try:
            meta = read_meta(folder)
        except CheckpointError:
            continue  # damaged: the learner reports it, and loads the one before
        if meta.spec_fingerprint != spec.fingerprint():
            raise ConfigError(
                f"The run directory {run_dir.root} is of another game or encoder: its checkpoint {folder.name} has "
                f"the spec fingerprint {meta.encoder()}, this configuration {spec.identity()}. "
                f"{_changed(run_dir, config)}Choose another run directory with --run-dir. Nothing was changed."
            )
        return


def _changed(run_dir: RunDir, config: Config) -> str:
    """Which settings of the game differ from those of the last start, as a sentence; "" where none does."""
    try:
        before = run_dir.read_config()
    except ConfigError:
        return ""
    was, now = _game(before), _game(config)
    changed = [f"{key} is {now.get(key)}, was {was.get(key)}" for key in now | was if now.get(key) != was.get(key)]
    return f"Changed since then: {'; '.join(changed)}. " if changed else ""


def _game(config: Config) -> dict[str, Any]:
    """Settings that determine the game and its observations, by dotted key."""
    plain = msgspec.to_builtins(config)
    inner = {f"{name}.{key}": value for name in (*GAMES, "game_options") for key, value in plain[name].items()}
    return {"game": plain["game"], **inner}


def _ask(
    folder: Path, command: Command, stopped: Callable[[], bool], say: Callable[[str], None], game: str
) -> GameSpec | int:
    """The spec, or the exit code of a process that ended without a word. Raises as `ask_for_spec`."""
    line = [*command("env_worker"), "--run-dir", str(folder), "--parent", str(os.getpid()), "--print-spec"]
    with subprocess.Popen(
        line, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=role_environment(1),
        start_new_session=sys.platform != "win32",
    ) as probe:  # fmt: skip
        try:
            printed, errors = _communicate(probe, stopped, say)
        finally:
            kill_session(probe)
    words = "\n".join(line for line in _lines(errors) if not line.startswith(NOTICE)).strip()
    if probe.returncode == 2:
        raise ConfigError(words)
    if probe.returncode != 0:
        if not words:
            return probe.returncode
        raise RoleDied(f"The game {game} could not be loaded ({exit_reason(probe.returncode)}):\n{words[-4000:]}", 1)
    try:
        return msgspec.json.decode(printed.strip().splitlines()[-1], type=GameSpec)
    except (IndexError, *DECODE_ERRORS):
        raise RoleDied(f"The game did not print its spec as JSON but {printed[-200:]!r}.", 1) from None


def _communicate(
    probe: subprocess.Popen[bytes], stopped: Callable[[], bool], say: Callable[[str], None]
) -> tuple[bytes, bytes]:
    """(stdout, stderr) of the finished process. Raises RoleDied, StartStopped."""
    deadline = time.monotonic() + LIMIT_SEC
    said: list[str] = []
    while time.monotonic() < deadline:
        if stopped():
            raise StartStopped("stopped before there was a game spec")
        try:
            return probe.communicate(timeout=POLL_SEC)
        except subprocess.TimeoutExpired as waiting:
            notices = _notices(waiting.stderr or b"")
            for sentence in notices[len(said) :]:
                say(sentence)
            said = notices
    last = f" Its last notice: {said[-1]}." if said else ""
    raise RoleDied(f"The game did not print its spec within {LIMIT_SEC:.0f} s.{last}", 1)


def _lines(errors: bytes) -> list[str]:
    return errors.decode(errors="replace").split("\n")


def _notices(errors: bytes) -> list[str]:
    """Whole lines that begin with NOTICE, without it."""
    lines = [line.removeprefix(NOTICE) for line in _lines(errors)[:-1] if line.startswith(NOTICE)]
    return [printable(line)[:MOST_NOTICE] for line in lines]
