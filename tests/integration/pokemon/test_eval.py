"""`simul eval` with the real roles: two checkpoints and two bots, everybody against everybody else, with replays."""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import msgspec
import psutil
import pytest

from simul.common.config.games.pokemon import PokemonConfig
from simul.common.protocol.specs import GameSpec
from simul.common.runtime.installation import ROOT
from simul.env_worker.games.pokemon.formats.spec import pokemon_spec
from tests.support.checkpoints import write_checkpoint
from tests.support.replays import log_of

FORMAT = "gen4randombattle"
OWN = "tests.support.pokemon.own_players:Plain"  # moves at random


def checkpoint(path: Path, version: int, spec: GameSpec | None = None) -> Path:
    """A checkpoint of fresh weights."""
    return write_checkpoint(path, spec or pokemon_spec(PokemonConfig(format=FORMAT)), version)


@pytest.fixture
def temporary():
    """The temporary folder of the evaluations. Its path is short: a socket's may have 107 characters."""
    with tempfile.TemporaryDirectory(prefix="eval-") as folder:
        yield Path(folder)


def start(temporary: Path, *arguments: str) -> subprocess.Popen[str]:
    line = [sys.executable, "-m", "simul.launch.cli", "eval", *arguments]
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(Path.home()), "TMPDIR": str(temporary)}
    return subprocess.Popen(line, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


@pytest.mark.slow  # .ci/long runs it
@pytest.mark.timeout(600)
def test_everybody_plays_everybody_else_and_every_battle_is_written_down(tmp_path, temporary):
    one, two = checkpoint(tmp_path / "a" / "one", 3), checkpoint(tmp_path / "b" / "two", 4)
    running = start(
        temporary, "--checkpoint", str(one), "--checkpoint", str(two), "--opponent", OWN, "--opponent",
        "heuristics", "--battles", "3", "--workers", "2", "--json", "--replays", str(tmp_path / "replays"),
    )  # fmt: skip
    output, errors = running.communicate(timeout=500)
    assert running.returncode == 0, errors
    matrix = msgspec.json.decode(output)
    labels = ["one", "two", OWN, "simple_heuristics"]
    assert [contestant["label"] for contestant in matrix["contestants"]] == labels
    assert [contestant.get("policy_version") for contestant in matrix["contestants"]] == [3, 4, None, None]
    assert len(matrix["pairs"]) == 6
    for pair in matrix["pairs"]:
        assert pair["battles"] == 3
        by_seat = [sum(pair[seat].values()) for seat in ("as_p1", "as_p2")]
        assert by_seat == [2, 1]
    bots = matrix["pairs"][-1]
    assert bots["losses"] >= 1, "SimpleHeuristics hardly ever loses to one who moves at random"
    _check_replays(tmp_path / "replays", matrix)
    assert list(temporary.glob("simul-*")) == []


def _check_replays(folder: Path, matrix: dict) -> None:
    logs = sorted(folder.glob("*.log"))
    assert len(logs) == len(list(folder.glob("*.html"))) == 18
    wins = cut = 0
    for path in logs:
        log = path.read_text()
        assert log.startswith("|")
        assert "\n|start\n" in log
        assert "|split|" not in log
        assert "|request|" not in log
        lines = log.rstrip().splitlines()
        last = lines[-1]
        over = [line for line in lines if line == "|tie" or line.startswith("|win|")]  # a Focus Sash may follow
        assert len(over) == (last != "|turn|301"), lines[-3:]
        cut += last == "|turn|301"
        assert log_of(path.with_suffix(".html").read_text()) == log
        wins += "\n|win|one\n" in log
    assert wins == sum(pair["wins"] for pair in matrix["pairs"] if pair["first"] == "one")
    assert cut == sum(pair["truncated"] for pair in matrix["pairs"])


def test_a_terminated_evaluation_leaves_nothing(tmp_path, temporary):
    one = checkpoint(tmp_path / "one", 3)
    running = start(temporary, "--checkpoint", str(one), "--opponent", OWN, "--battles", "100000")
    while not list(temporary.glob("simul-eval-*")):
        assert running.poll() is None
        time.sleep(0.05)
    time.sleep(1.5)
    below = psutil.Process(running.pid).children(recursive=True)
    running.send_signal(signal.SIGTERM)
    _, errors = running.communicate(timeout=200)
    assert running.returncode == 130, errors
    assert list(temporary.glob("simul-*")) == []
    _, alive = psutil.wait_procs(below, timeout=100)
    assert alive == []
