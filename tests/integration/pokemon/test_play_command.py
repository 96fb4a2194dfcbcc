"""`simul play` as a person runs it: a process of its own, a checkpoint, Ctrl-C."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from poke_env.player import SimpleHeuristicsPlayer

from simul.common.config.games.pokemon import PokemonConfig
from simul.common.protocol.specs import GameSpec
from simul.common.runtime.installation import ROOT
from simul.env_worker.games.pokemon.formats.spec import pokemon_spec
from simul.launch import cli
from simul.launch.supervisor.checkpoint_files import config_of
from simul.launch.supervisor.inference_only import frozen_run
from tests.support.checkpoints import write_checkpoint
from tests.support.showdown import on_loop, showdown
from tests.support.waiting import PATIENCE_SEC

SPEC = pokemon_spec(PokemonConfig())


def checkpoint(folder: Path, spec: GameSpec = SPEC) -> Path:
    return write_checkpoint(folder / "000000007", spec, 7)


@pytest.fixture(scope="module")
def served(tmp_path_factory) -> Iterator[Path]:
    """Run directory of a server that several plays ask, one after the other."""
    folder = checkpoint(tmp_path_factory.mktemp("served"))
    with frozen_run(folder, config_of(folder, ())) as run_dir:
        yield run_dir.root


def start(*arguments: str | Path) -> subprocess.Popen[str]:
    line = [sys.executable, "-m", "simul.launch.cli", "play", *map(str, arguments)]
    return subprocess.Popen(
        line, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )


def wait_for_line(process: subprocess.Popen[str], words: str) -> list[str]:
    """What it said up to that line. Lines that tell of the score may come before it where the login takes long."""
    said = []
    # its end is the end of what it says; an inference server starts before
    hurry = threading.Timer(2 * PATIENCE_SEC, os.killpg, (process.pid, signal.SIGKILL))
    hurry.start()
    try:
        for line in process.stderr:
            said.append(line)
            if words in line:
                return said
    finally:
        hurry.cancel()
    raise AssertionError(said)


def ended(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """Its exit code, what it printed and what it said. None is left running, not even by a test that fails."""
    try:
        output, errors = process.communicate(timeout=2 * PATIENCE_SEC)  # it may start a server first
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        raise AssertionError(("it did not end", *process.communicate())) from None
    return process.returncode, output, errors


def family(process: subprocess.Popen[str]) -> list[psutil.Process]:
    return psutil.Process(process.pid).children(recursive=True)


@pytest.mark.timeout(600)
def test_it_plays_saves_replays_and_prints_its_record(server, served, tmp_path):
    player = server.player(SimpleHeuristicsPlayer, "Foe 1")
    accepted = on_loop(player._accept_challenges(None, 2, None))
    process = start(
        "--run-dir", served, "--server", f"127.0.0.1:{server.server.port}", "--challenge", "Foe 1", "--battles", "2",
        "--username", "Trained 1", "--replays", tmp_path / "replays", "--json",
    )  # fmt: skip
    code, output, errors = ended(process)
    assert code == 0, errors
    accepted.result(PATIENCE_SEC)
    result = json.loads(output)
    assert result["battles"] == result["wins"] + result["losses"] + result["ties"] == 2
    assert result["losses"] == player.n_won_battles
    assert result["given_up"] == result["cut_off"] == result["defaults"] == 0
    assert 0.0 <= result["wilson_95"][0] <= result["win_rate"] <= result["wilson_95"][1] <= 1.0
    assert len(list((tmp_path / "replays").glob("Trained 1 - battle-*.html"))) == 2


@pytest.mark.slow  # .ci/long runs it
@pytest.mark.timeout(900)
def test_ctrl_c_forfeits_what_runs_and_leaves_nothing_behind(server, tmp_path):
    address = f"127.0.0.1:{server.server.port}"
    arguments = ("--server", address, "--accept", "5000", "--username", "Trained 2")
    process = start("--checkpoint", checkpoint(tmp_path), *arguments)
    said = wait_for_line(process, "waits for 5000 challenges")
    steps = (
        "starting an inference server with ", "connecting to the inference server",
        f"connecting to the Showdown server at ws://{address}/", "logging in as Trained 2", "Trained 2 is logged in",
    )  # fmt: skip
    assert [line.startswith(step) for step, line in zip(steps, said)] == [True] * 5, said
    wait_for_line(process, "waiting for a battle in gen9randombattle")
    player = server.player(SimpleHeuristicsPlayer, "Foe 2")
    deadline = time.monotonic() + 2 * PATIENCE_SEC
    challenges = on_loop(player._send_challenges("Trained 2", 5000))
    while player.n_finished_battles < 2:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    others = family(process)
    os.killpg(process.pid, signal.SIGINT)
    code, output, errors = ended(process)
    challenges.cancel()
    assert code == 0, errors
    assert " battles: " in output
    assert "more were forfeited when play was stopped" in output
    _, left = psutil.wait_procs(others, timeout=PATIENCE_SEC)
    assert left == []


@pytest.mark.slow  # .ci/long runs it
def test_a_server_that_vanishes_is_said(served):
    with showdown() as doomed:
        address = f"127.0.0.1:{doomed.server.port}"
        more = ["--accept", "1", "--username", "Trained 3", "--patience", "2"]
        process = start("--run-dir", served, "--server", address, *more)
        wait_for_line(process, "waits for 1 challenge ")
        time.sleep(1.0)
    code, _, errors = ended(process)
    assert code == 2
    assert "closed the connection. For 2 s it accepted no new login." in errors


def test_a_server_that_does_not_answer_is_a_sentence(served):
    process = start("--run-dir", served, "--accept", "1", "--server", "127.0.0.1:9")
    code, output, errors = ended(process)
    assert (code, output) == (2, "")
    assert "No Showdown server answers at ws://127.0.0.1:9/showdown/websocket" in errors
    assert "Traceback" not in errors


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--server", "gopher://x"], "is not the address of a Showdown server"),
        (["--username", "nineteen characters"], "Showdown takes 18 at most"),
        (["--port", "9000"], "--port is for --server local"),
    ],
)
def test_what_is_mistyped_is_said_before_anything_is_looked_at(arguments, words, capsys):
    assert cli.main(["play", "--checkpoint", "/nowhere", "--accept", "1", *arguments]) == 2
    assert words in capsys.readouterr().err


def test_patience_is_a_number_of_seconds(capsys):
    with pytest.raises(SystemExit, match="2"):
        cli.main(["play", "--checkpoint", "/nowhere", "--accept", "1", "--patience", "soon"])
    assert "expected seconds from 0 to 3600; got 'soon'" in capsys.readouterr().err


@pytest.mark.slow  # .ci/long runs it
def test_a_checkpoint_of_another_layout_is_refused(tmp_path):
    other = GameSpec(SPEC.name, SPEC.observation_size + 1, SPEC.num_actions, "float16")
    process = start("--checkpoint", checkpoint(tmp_path, other), "--accept", "1")
    code, _, errors = ended(process)
    assert code == 2
    assert "another encoder" in errors


def test_a_checkpoint_of_another_game_is_refused(tmp_path, capsys):
    folder = checkpoint(tmp_path, GameSpec("gymnasium/CartPole-v1", 4, 2))
    assert cli.main(["play", "--checkpoint", str(folder), "--accept", "1"]) == 2
    assert "plays gymnasium; `simul play` is for pokemon" in capsys.readouterr().err
