"""`simul page`: what it refuses, each with a sentence."""

from __future__ import annotations

import importlib.util
import socket
import sys

import msgspec
import pytest

from simul.common.role.run_lock import this_process
from simul.common.runtime.extras import install_extra
from simul.launch.cli import main
from simul.launch.commands.page import page_address, watched_runs
from tests.support.recorded_run import snapshot


@pytest.fixture
def run(tmp_path):
    root = tmp_path / "run"
    root.mkdir()
    (root / "status.json").write_bytes(msgspec.json.encode(snapshot()))
    return root


def refused(capsys, *arguments: object) -> str:
    assert main(["page", *map(str, arguments)]) == 2
    (sentence,) = capsys.readouterr().err.splitlines()
    return sentence


def test_without_names_all_active_runs_are_shown_else_the_latest(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b", "c"):
        root = tmp_path / "runs" / name
        root.mkdir(parents=True)
        (root / "status.json").write_bytes(msgspec.json.encode(snapshot()))
    assert [run.name for run in watched_runs([])] == ["c"]
    for name in ("a", "b"):
        (tmp_path / "runs" / name / "supervisor.pid").write_bytes(msgspec.json.encode(this_process()))
    assert [run.name for run in watched_runs([])] == ["a", "b"]
    named = watched_runs([tmp_path / "runs" / "a", tmp_path / "runs" / ".." / "runs" / "a"])
    assert [run.name for run in named] == ["a"], "a run is shown once"


def test_the_address_is_one_that_a_browser_can_ask_for():
    assert page_address("127.0.0.1", 80) == "http://127.0.0.1:80/"
    assert page_address("::1", 80) == "http://[::1]:80/"
    assert page_address("0.0.0.0", 80) == page_address("::", 80) == f"http://{socket.gethostname()}:80/"


def test_no_such_run(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "There is no run below runs/. Name a run directory, as in `simul page DIR`" in refused(capsys)
    assert f"There is no run in {tmp_path}/nothing (no status.json)" in refused(capsys, tmp_path / "nothing")


@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege there")
def test_a_link_that_leads_to_itself(capsys, tmp_path):
    (tmp_path / "loop").symlink_to("loop")
    sentence = f"simul: {tmp_path}/loop/status.json cannot be read: Too many levels of symbolic links. Name another run"
    assert refused(capsys, tmp_path / "loop").startswith(sentence)


def test_a_run_of_another_version(capsys, run):
    (run / "status.json").write_text('{"phase": "training"}')
    sentence = refused(capsys, run)
    assert "is not a status of this version of Simul" in sentence
    assert sentence.endswith("Use `simul page` of the version that made the run, or name another run.")


def test_a_port_that_is_taken(capsys, run):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert f"Port {port} of 127.0.0.1 cannot be opened: Address already in use. Choose" in refused(
            capsys, run, "--port", port
        )


def test_an_address_of_another_machine(capsys, run):
    for host, why in (("192.0.2.1", "Cannot assign requested address"), ("no.such.name.invalid", "")):
        sentence = refused(capsys, run, "--host", host, "--token")
        assert sentence.startswith(f"simul: --host {host}: no address of this machine ({why}")
        assert sentence.endswith("Name one of its own, or 0.0.0.0 for all of them.")


def test_an_empty_address(capsys, run):
    with pytest.raises(SystemExit):
        main(["page", str(run), "--host", ""])
    assert "argument --host: expected an address or a name of this machine, such as 127.0.0.1; got ''" in (
        capsys.readouterr().err
    )


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "gpu.lab"])
def test_other_machines_need_a_token(capsys, run, host):
    assert f"--host {host} is reached from other machines: add --token" in refused(capsys, run, "--host", host)


def test_the_token_file(capsys, run, tmp_path):
    file = tmp_path / "token"
    assert "cannot be read: No such file" in refused(capsys, run, "--token-file", file)
    file.write_text("short\n")
    assert "may be read by others. Run: chmod 600" in refused(capsys, run, "--token-file", file)
    file.chmod(0o600)
    assert "expected a token of at least 16 characters, got 5" in refused(capsys, run, "--token-file", file)
    file.write_bytes(b"\xff" * 20)
    assert "cannot be read: no text" in refused(capsys, run, "--token-file", file)
    assert "got both" in refused(capsys, run, "--token-file", file, "--token")


def test_without_the_extra(capsys, run, monkeypatch):
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "uvicorn" else found(name))
    assert f"The page needs the package uvicorn. Run: {install_extra('page')}" in refused(capsys, run)
    assert main(["up", "cartpole", "--page", "--run-dir", str(run.parent / "new")]) == 2
    assert install_extra("page") in capsys.readouterr().err
    assert not (run.parent / "new").exists()
