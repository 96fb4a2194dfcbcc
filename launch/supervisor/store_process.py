"""Starts `simul.common.store` before a run or for a checkpoint: only that process imports what talks to a store."""

from __future__ import annotations

import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from simul.common.config.schema import Config
from simul.common.errors import ConfigError
from simul.common.protocol.specs import GameSpec
from simul.common.role.run_directory import RunDir
from simul.common.role.temporary import temporary_folder
from simul.common.store import REASON, REFUSED
from simul.launch.monitoring.view.output import complain
from simul.launch.processes.process_group import RoleDied
from simul.launch.processes.role_process import kill_session, role_environment
from simul.launch.supervisor.game_spec import StartStopped

POLL_SEC = 0.1
Say = Callable[[str], object]


def prepare_store(config: Config, run_dir: RunDir, spec: GameSpec, say: Say, stopped: Callable[[], bool]) -> None:
    """Check the run's store, take it over from an older run, and fetch what is newer there than here.

    Raises:
        ConfigError, RoleDied: a sentence says what is wrong.
        StartStopped: `stopped()` became true.
    """
    arguments = ["--url", config.store, "--run-dir", str(run_dir.root), "--spec-fingerprint", spec.fingerprint()]
    _run([*arguments, *(["--past"] if config.opponents.past > 0 else [])], say, stopped)


@contextmanager
def local_checkpoints(
    checkpoints: Sequence[Path | str],
    say: Say = lambda said: complain(f"simul: {said}\n"),
    stopped: Callable[[], bool] = lambda: False,
    *,
    optimizer: bool = False,
) -> Iterator[list[Path]]:
    """`checkpoints` as paths; URLs are fetched for the time of the block, with their `optimizer` where it is asked for.

    Raises as `prepare_store`.
    """
    also = ["--optimizer"] * optimizer
    with temporary_folder("simul-fetched-") as folder:
        paths = []
        for number, checkpoint in enumerate(checkpoints):
            if isinstance(checkpoint, str):
                run = folder / str(number) / checkpoint.rstrip("/").rpartition("/")[2]  # results name it so
                to = str(run / "checkpoints")
                _run(["--url", checkpoint, "--fetch-to", to, *also], say, stopped)
                checkpoint = run
            paths.append(checkpoint)
        yield paths


def _run(arguments: Sequence[str], say: Say, stopped: Callable[[], bool]) -> None:
    lines: queue.Queue[str | None] = queue.Queue()
    with subprocess.Popen(
        [sys.executable, "-P", "-m", "simul.common.store", f"--parent={os.getpid()}", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=role_environment(1),
        start_new_session=sys.platform != "win32",
    ) as process:  # fmt: skip
        errors: list[bytes] = []
        readers = [
            threading.Thread(target=_read_lines, args=(process.stdout, lines), daemon=True),
            threading.Thread(target=lambda: errors.extend(process.stderr or ()), daemon=True),
        ]
        for reader in readers:
            reader.start()
        try:
            reason = _say_lines(lines, say, stopped)
            process.wait()
        finally:
            kill_session(process)
            for reader in readers:
                reader.join()
    if process.returncode == REFUSED:
        raise ConfigError(reason)
    if process.returncode:
        words = b"".join(errors).decode(errors="replace").strip()[-4000:] or f"(exit code {process.returncode})"
        raise RoleDied(f"The store could not be opened:\n{words}", 1)


def _say_lines(lines: queue.Queue[str | None], say: Say, stopped: Callable[[], bool]) -> str:
    """Say what the process says until it ends; returns why it refused, "" where it did not. Raises StartStopped."""
    reason = ""
    while True:
        if stopped():
            raise StartStopped("stopped before the store was ready")
        try:
            line = lines.get(timeout=POLL_SEC)
        except queue.Empty:
            continue
        if line is None:
            return reason
        if line.startswith(REASON):
            reason = line.removeprefix(REASON)
        else:
            say(line)


def _read_lines(pipe: Iterable[bytes], lines: queue.Queue[str | None]) -> None:
    for line in pipe:
        lines.put(line.decode(errors="replace").rstrip("\n"))
    lines.put(None)
