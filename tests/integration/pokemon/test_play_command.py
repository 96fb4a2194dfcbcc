"""`simul play` as a person runs it: a process of its own, a checkpoint, Ctrl-C."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from poke_env.player import SimpleHeuristicsPlayer

from common.config import NetworkConfig, PokemonConfig
from common.nets.build import build_network
from common.nets.load import WEIGHTS_FILE
from common.nets.weights import weights_to_bytes
from common.specs import GameSpec
from env_worker.games.pokemon.spec import pokemon_spec
from learner.checkpoints import RunFacts, write_folder
from tests.support.showdown import on_loop, showdown
from tests.support.simul import CHECKOUT

SPEC = pokemon_spec(PokemonConfig())


@pytest.fixture(scope="module")
def server():
    with showdown() as running:
        yield running


def checkpoint(folder: Path, spec: GameSpec = SPEC) -> Path:
    network = NetworkConfig(options={"hidden": 16})
    files = {WEIGHTS_FILE: weights_to_bytes(build_network(network, spec, seed=3))}
    path = folder / "000000007"
    write_folder(path, RunFacts(spec, network, "0" * 16, 1).meta(7, 0, 0, files, False), files)
    return path


def start(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    line = [sys.executable, "-m", "common.cli", "play", "--checkpoint", str(folder), *arguments]
    return subprocess.Popen(
        line, cwd=CHECKOUT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )


def family(process: subprocess.Popen[str]) -> list[psutil.Process]:
    return psutil.Process(process.pid).children(recursive=True)


def test_it_plays_saves_replays_and_prints_its_record(server, tmp_path):
    player = server.player(SimpleHeuristicsPlayer, "Foe 1")
    accepted = on_loop(player._accept_challenges(None, 3, None))
    process = start(
        checkpoint(tmp_path), "--server", f"127.0.0.1:{server.server.port}", "--challenge", "Foe 1", "--battles", "3",
        "--username", "Trained 1", "--replays", str(tmp_path / "replays"), "--json",
    )  # fmt: skip
    output, errors = process.communicate(timeout=90)
    assert process.returncode == 0, errors
    accepted.result(10)
    result = json.loads(output)
    assert result["battles"] == result["wins"] + result["losses"] + result["ties"] == 3
    assert result["losses"] == player.n_won_battles
    assert result["given_up"] == result["cut_off"] == result["defaults"] == 0
    assert 0.0 <= result["wilson_95"][0] <= result["win_rate"] <= result["wilson_95"][1] <= 1.0
    assert len(list((tmp_path / "replays").glob("Trained 1 - battle-*.html"))) == 3


def test_ctrl_c_forfeits_what_runs_and_leaves_nothing_behind(server, tmp_path):
    address = f"127.0.0.1:{server.server.port}"
    process = start(checkpoint(tmp_path), "--server", address, "--accept", "5000", "--username", "Trained 2")
    assert "waits for 5000 challenges" in process.stderr.readline()
    player = server.player(SimpleHeuristicsPlayer, "Foe 2")
    deadline = time.monotonic() + 60
    challenges = on_loop(player._send_challenges("Trained 2", 5000))
    while player.n_finished_battles < 2:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    others = family(process)
    os.killpg(process.pid, signal.SIGINT)
    output, errors = process.communicate(timeout=30)
    challenges.cancel()
    assert process.returncode == 0, errors
    assert " battles: " in output
    assert "more were forfeited when play was stopped" in output
    assert not any(other.is_running() for other in others)


def test_a_server_that_vanishes_is_said(tmp_path):
    with showdown() as doomed:
        address = f"127.0.0.1:{doomed.server.port}"
        process = start(
            checkpoint(tmp_path), "--server", address, "--accept", "1", "--username", "Trained 3", "--patience", "2"
        )
        assert "waits for 1 challenges" in process.stderr.readline()
        time.sleep(1.0)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 2
    assert "closed the connection. For 2 s it did not let us in again." in errors


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--server", "127.0.0.1:9"], "No Showdown server answers at ws://127.0.0.1:9/showdown/websocket"),
        (["--server", "gopher://x"], "is no address of a Showdown server"),
        (["--patience", "soon"], "expected seconds from 0 to 3600; got 'soon'"),
        (["--username", "nineteen characters"], "Showdown takes 18 at most"),
    ],
)
def test_what_cannot_work_is_a_sentence(tmp_path, arguments, words):
    process = start(checkpoint(tmp_path), "--accept", "1", *arguments)
    output, errors = process.communicate(timeout=60)
    assert (process.returncode, output) == (2, "")
    assert words in errors
    assert "Traceback" not in errors


def test_a_checkpoint_of_another_layout_or_game_is_refused(tmp_path):
    other = GameSpec(SPEC.name, SPEC.observation_size + 1, SPEC.num_actions, "float16")
    process = start(checkpoint(tmp_path / "layout", other), "--accept", "1")
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "another encoder" in errors
    process = start(checkpoint(tmp_path / "game", GameSpec("gymnasium/CartPole-v1", 4, 2)), "--accept", "1")
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "plays gymnasium; `simul play` is for Pokémon" in errors
