"""`simul loadtest` for real: a server, client processes, both loops, the files it leaves; and its refusals."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from simul.common.errors import ConfigError
from simul.common.role import run_lock
from simul.common.runtime.installation import ROOT
from simul.common.transport import client_keys, new_keys
from simul.env_worker.games.pokemon.showdown.local_server import free_port
from simul.launch.loadtest import run as run_module
from simul.launch.loadtest import subject as subject_module
from simul.launch.loadtest.options import parse
from simul.launch.loadtest.results import Cell, Result
from simul.launch.loadtest.run import run
from tests.support.stand import Stand

PNG = b"\x89PNG\r\n"
WINDOW_SEC = 1.0  # the server reports every half second, and the mean batch needs two reports
QUICK = ["--warm-up-sec", "0.2", "--window-sec", str(WINDOW_SEC), "--max-windows", "3"]
SMALL = ["--clients", "2", "--envs", "4", "--set", "network.options={hidden: 16}"]
LOADTEST = ("-m", "simul.launch.cli", "loadtest")
PATIENT = """
import sys
from simul.launch.loadtest import run
from simul.launch.loadtest.__main__ import main
run.CONNECT_SEC = 100.0
sys.exit(main())
"""


def _loadtest(*arguments: str, program: Sequence[str] = LOADTEST) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, *program, *arguments]
    return subprocess.run(line, cwd=ROOT, capture_output=True, text=True, timeout=500, check=False)


def _result(folder: Path) -> Result:
    return msgspec.json.decode((folder / "loadtest.json").read_bytes(), type=Result)


@pytest.mark.slow  # .ci/long runs it
@pytest.mark.timeout(600)
def test_both_loops_the_local_baseline_and_a_promise_that_cannot_be_kept(tmp_path: Path) -> None:
    promise = ["--find-max-rate", "--p99-ms", "0.001"]
    done = _loadtest(*SMALL, *QUICK, "--rates", "200", *promise, "--baseline", "local", "--out", str(tmp_path))
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith("simul: --find-max-rate: no rate kept p99 below 0.001 ms")
    result = _result(tmp_path)
    closed, opened, lowest, local = result.cells
    assert (lowest.mode, result.max_rates[0].actions_per_sec, result.max_rates[0].trials) == ("open", None, 1)
    _check_closed(closed)
    assert (opened.mode, opened.offered_per_sec) == ("open", 200.0)
    assert opened.actions_per_sec > 0
    assert opened.send_lag_us["p50"] > 0
    low, high = closed.spread["actions_per_sec"]
    assert low <= closed.actions_per_sec <= high
    assert (local.mode, local.mean_batch, local.batch_histogram) == ("local", 4.0, None)
    assert local.actions_per_sec > 0
    for name in ("batch", "stages", "batch_histogram", "rate"):
        assert (tmp_path / f"{name}.png").read_bytes().startswith(PNG)
        assert "commit" in (tmp_path / f"{name}.svg").read_text()
    assert len((tmp_path / "loadtest.csv").read_text().splitlines()) == 5
    assert result.conditions["observation"] == "float32[2160]"
    assert result.recommendation[0].startswith("2 clients with 4 envs each reach 100% of the maximum")
    assert " ".join(result.recommendation[0].split()) in " ".join(done.stdout.split())


def _check_closed(cell: Cell) -> None:
    assert (cell.mode, cell.clients, cell.envs_per_client, cell.errors) == ("closed", 2, 4, {})
    assert 0 < cell.latency_us["p50"] <= cell.latency_us["p90"] <= cell.latency_us["p99"]
    assert cell.samples == pytest.approx(cell.actions_per_sec * 3 * WINDOW_SEC, rel=0.01)
    assert cell.mean_batch is not None
    assert 1 <= cell.mean_batch <= 8
    assert cell.batch_histogram
    assert max(int(size) for size in cell.batch_histogram) <= 8
    assert cell.stages_us is not None
    assert cell.stages_us["forward"] > 0
    assert cell.forward_actions_per_sec is not None
    assert cell.full_batch == 8
    assert cell.full_forward_actions_per_sec is not None
    kept = cell.forward_actions_per_sec / cell.full_forward_actions_per_sec
    assert cell.lost_to_small_batches == pytest.approx(max(0.0, 1 - kept), abs=0.001)


@pytest.mark.slow  # .ci/long runs it
def test_a_running_server_with_keys_is_loaded_and_what_is_not_known_is_not_invented(tmp_path: Path) -> None:
    new_keys(tmp_path / "keys")
    with Stand(endpoint=f"tcp://127.0.0.1:{free_port()}", curve_keys=str(tmp_path / "keys"), max_batch=5) as stand:
        root = str(stand.run_dir.root)
        run_lock.claim(stand.run_dir)
        aims = ("--connect", root, *SMALL[:4], "--out", str(tmp_path))
        done = _loadtest(*aims, *QUICK, "--rates", "none", program=("-c", PATIENT))
        assert done.returncode == 0, done.stderr
        assert stand.client("after", keys=client_keys(tmp_path / "keys")).connected
    (cell,) = _result(tmp_path).cells
    assert cell.actions_per_sec > 0
    assert cell.mean_batch is not None
    assert 1 <= cell.mean_batch <= 5
    assert cell.full_batch == 5
    assert (cell.batch_histogram, cell.forward_actions_per_sec, cell.stages_us) == (None,) * 3
    assert cell.lost_to_small_batches is None
    assert "not known of a server that was not started here" in " ".join(done.stdout.split())


def test_nobody_at_the_endpoint_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_module, "CONNECT_SEC", 0.3)
    facts = subject_module._Facts(parameters=1, torch="2")  # what a process with torch says: test_subject.py
    monkeypatch.setattr(subject_module, "_network_facts", lambda *_: facts)
    nobody = f"ipc://{tmp_path}/nobody.ipc"
    sentence = f"The server at {nobody} could not be loaded: .*ERR_TIMEOUT.*[^.]\\. `simul connect {nobody}` says why"
    with pytest.raises(ConfigError, match=sentence):
        run(parse(["--out", str(tmp_path), "--connect", nobody]))


def test_mistakes_are_one_sentence(tmp_path: Path) -> None:
    for arguments, sentence in (
        (["--envs", "none"], "--envs: expected a whole number"),
        (["--out", str(tmp_path / "file" / "x")], "cannot be written: Not a directory"),
    ):
        (tmp_path / "file").touch()
        done = _loadtest(*arguments)
        assert (done.returncode, done.stdout) == (2, ""), (arguments, done)
        assert sentence in done.stderr
        assert len(done.stderr.splitlines()) == 1, done.stderr
