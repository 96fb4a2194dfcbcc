"""The game spec, printed by an env worker: only the workers know the games."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import yaml

from simul.common.config.checkpoint_meta import checkpoint_folders, read_meta
from simul.common.config.games import GAMES
from simul.common.config.run_directory import RunDir
from simul.common.config.schema import Config
from simul.common.launch.processes.process_group import Command, RoleDied
from simul.common.launch.processes.role_process import kill_session, role_environment
from simul.common.launch.processes.temporary import temporary_folder
from simul.common.protocol.errors import CheckpointError, ConfigError, SimulError
from simul.common.protocol.specs import GameSpec

LIMIT_SEC = 120.0
POLL_SEC = 0.2


class StartStopped(SimulError):
    """A stop signal came before the game spec. Caught by the supervisor: a clean end."""


def ask_for_spec(config: Config, command: Command, stopped: Callable[[], bool] = lambda: False) -> GameSpec:
    """Run `python -m simul.env_worker --print-spec` in a temporary run directory.

    Raises:
        ConfigError, RoleDied: a sentence says what is wrong.
        StartStopped: `stopped()` became true.
    """
    with temporary_folder("simul-spec-") as folder:
        RunDir(folder).write_config(config)
        return _ask(folder, command, stopped)


def check_same_encoder(run_dir: RunDir, spec: GameSpec, config: Config) -> None:
    """Raise ConfigError where the newest checkpoint of the run was made for another game or encoder than `config`'s."""
    for folder in checkpoint_folders(run_dir.checkpoints):
        try:
            theirs = read_meta(folder).spec_fingerprint
        except CheckpointError:
            continue  # damaged: the learner reports it, and loads the one before
        if theirs != spec.fingerprint():
            raise ConfigError(
                f"The run directory {run_dir.root} is of another game or encoder: its checkpoint {folder.name} has "
                f"the spec fingerprint {theirs}, this configuration {spec.fingerprint()} ({spec.name}). "
                f"{_changed(run_dir, config)}Choose another run directory with --run-dir. Nothing was changed."
            )
        return


def _changed(run_dir: RunDir, config: Config) -> str:
    """Which settings of the game differ from those of the last start, as a sentence; "" where none does."""
    try:
        before = run_dir.read_config()
    except (OSError, yaml.YAMLError, msgspec.ValidationError, ConfigError):
        return ""
    was, now = _game(before), _game(config)
    changed = [f"{key} is {now.get(key)}, was {was.get(key)}" for key in now | was if now.get(key) != was.get(key)]
    return f"Changed since then: {'; '.join(changed)}. " if changed else ""


def _game(config: Config) -> dict[str, Any]:
    """Settings that determine the game and its observations, by dotted key."""
    plain = msgspec.to_builtins(config)
    inner = {f"{name}.{key}": value for name in (*GAMES, "game_options") for key, value in plain[name].items()}
    return {"game": plain["game"], **inner}


def _ask(folder: Path, command: Command, stopped: Callable[[], bool]) -> GameSpec:
    line = [*command("env_worker"), "--run-dir", str(folder), "--parent", str(os.getpid()), "--print-spec"]
    with subprocess.Popen(
        line, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=role_environment(1),
        start_new_session=sys.platform != "win32",
    ) as probe:  # fmt: skip
        try:
            printed, errors = _communicate(probe, stopped)
        finally:
            kill_session(probe)
    words = errors.decode(errors="replace").strip()
    if probe.returncode == 2:
        raise ConfigError(words)
    if probe.returncode != 0:
        words = words[-4000:] or f"(exit code {probe.returncode}, and no message)"
        raise RoleDied(f"The game could not be loaded:\n{words}", 1)
    try:
        return msgspec.json.decode(printed.strip().splitlines()[-1], type=GameSpec)
    except (msgspec.DecodeError, IndexError):
        raise RoleDied(f"The game did not print its spec as JSON but {printed[-200:]!r}.", 1) from None


def _communicate(probe: subprocess.Popen[bytes], stopped: Callable[[], bool]) -> tuple[bytes, bytes]:
    """(stdout, stderr) of the finished process. Raises RoleDied, StartStopped."""
    deadline = time.monotonic() + LIMIT_SEC
    while time.monotonic() < deadline:
        if stopped():
            raise StartStopped("stopped before there was a game spec")
        with contextlib.suppress(subprocess.TimeoutExpired):
            return probe.communicate(timeout=POLL_SEC)
    raise RoleDied(f"The game did not print its spec within {LIMIT_SEC:.0f} s.", 1)
