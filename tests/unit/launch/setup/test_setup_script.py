"""`setup.sh` where everything is in place but the Node that could not be fetched, and the progress of its steps."""

from __future__ import annotations

import os
import re
import subprocess
import time

import pytest

from simul.common.runtime.installation import ROOT

SCRIPT = ROOT / "launch" / "setup" / "setup.sh"
LOCK = "env_worker/games/pokemon/node/package-lock.json"
FINGERPRINT = f"{{ pwd; cat pyproject.toml constraints.txt {LOCK}; }} | cksum"


@pytest.fixture
def setup(tmp_path):
    """Runs it after a fetch that failed so many minutes ago; True when the fetch was tried again."""
    node = (tmp_path / LOCK).parent
    for folder in (node / "node_modules", tmp_path / ".venv" / "bin"):
        folder.mkdir(parents=True)
    for name in ("pyproject.toml", "constraints.txt", LOCK):
        (tmp_path / name).write_text(name)
    (node / "node_modules" / ".simul-stamp").touch()
    found = subprocess.run(["sh", "-c", FINGERPRINT], cwd=tmp_path, capture_output=True, text=True, check=True)
    (tmp_path / ".venv" / ".simul-setup").write_text(found.stdout)
    for name in ("simul", "python"):
        program = tmp_path / ".venv" / "bin" / name
        program.write_text('#!/bin/sh\necho "ran $*"\n')
        program.chmod(0o755)
    note = tmp_path / ".venv" / ".simul-node-fallback"

    def run(minutes_ago: float | None, goals: str) -> bool:
        note.unlink(missing_ok=True)
        if minutes_ago is not None:
            note.touch()
            os.utime(note, (time.time() - 60 * minutes_ago,) * 2)
        line = ["sh", str(SCRIPT)]
        done = subprocess.run(line, cwd=tmp_path, env={**os.environ, "GOALS": goals}, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        assert done.stdout in ("", "ran -m simul.env_worker.games.pokemon.install.setup_node\n")
        return bool(done.stdout)

    return run


@pytest.mark.parametrize(
    ("minutes_ago", "goals", "tried"),
    [
        (None, "setup", False), (5, "test", False), (5, "test lint", False), (70, "test", True), (5, "setup", True),
        (5, "lint setup", True), (5, "", True),
    ],
)  # fmt: skip
def test_the_fetch_is_tried_again_once_an_hour_or_when_setup_is_asked_for(setup, minutes_ago, goals, tried):
    assert setup(minutes_ago, goals) is tried


def progress(log, *command):
    """A step that runs `command`; its lines of progress come every second."""
    line = ["sh", str(SCRIPT.with_name("progress.sh")), "1", str(log), "step 2 of 3: packages", *command]
    return subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_a_step_that_takes_long_says_what_it_does_and_for_how_long(tmp_path):
    log, go = tmp_path / "log", tmp_path / "go"
    wait = f"printf '\\033[31mCollecting torch\\n'; while [ ! -e {go} ]; do sleep 0.05; done"
    with progress(log, "sh", "-c", wait) as step:
        assert step.stdout.readline() == "[setup] step 2 of 3: packages\n"
        assert re.fullmatch(r"\[setup\] step 2 of 3, \d+ s: \[31mCollecting torch\n", step.stdout.readline())
        go.touch()
        rest, errors = step.communicate()
    assert (step.returncode, errors) == (0, "")
    assert re.fullmatch(r"\[setup\] step 2 of 3: done in \d+ s", rest.splitlines()[-1])
    assert log.read_text() == "\x1b[31mCollecting torch\n"


def test_a_step_that_fails_shows_its_error_and_passes_its_exit_code_on(tmp_path):
    step = progress(tmp_path / "log", "sh", "-c", "echo 'no network' >&2; exit 7")
    _, errors = step.communicate()
    assert step.returncode == 7
    assert errors.startswith("no network\n[setup] step 2 of 3: failed after ")
    assert str(tmp_path / "log") in errors
