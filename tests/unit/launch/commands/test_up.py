"""What `simul up --on ray` refuses before anything starts. Ray is the test's; tests/integration has real clusters."""

from __future__ import annotations

import sys

import pytest

from simul.common.runtime.extras import install_extra
from simul.launch.cli import main
from simul.launch.commands import up as module
from tests.support.fake_ray import ENGINE, install_ray

STORED = ("--set", "store=file:///store")


@pytest.fixture
def ray(monkeypatch):
    """`ray(*hosts)` puts a cluster of these machines in the place of the package."""
    yield lambda *hosts: install_ray(monkeypatch, *hosts)
    sys.modules.pop(ENGINE, None)


def refused(capsys, *arguments: str) -> str:
    assert main(["up", "cartpole", *arguments]) == 2
    return capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--dry-run"], "--dry-run shows where a cluster would place the processes: it needs --on ray."),
        (["--address", "10.0.0.1:6379"], "--address 10.0.0.1:6379 names a cluster, and the run is on this machine"),
        (["--on", "ray", "--from", "runs/x", *STORED], "--from copies a checkpoint on this machine."),
        (["--on", "ray"], "A run on several machines keeps its checkpoints in a store"),
    ],
)
def test_options_that_do_not_fit_together_are_refused(capsys, tmp_path, arguments, sentence):
    assert sentence in refused(capsys, "--run-dir", str(tmp_path), *arguments)


@pytest.mark.parametrize("arguments", [[], ["--dry-run"]])
def test_without_the_package_the_sentence_says_what_to_install(capsys, tmp_path, monkeypatch, arguments):
    monkeypatch.setattr(module.importlib.util, "find_spec", lambda name: None)
    said = refused(capsys, "--on", "ray", "--run-dir", str(tmp_path), *STORED, *arguments)
    assert said.endswith(f"--on ray: the package ray is not installed. Run: {install_extra('ray')}\n")


def test_where_there_is_no_cluster_the_sentence_says_how_to_start_one(capsys, tmp_path, ray):
    ray()
    said = refused(capsys, "--on", "ray", "--address", "10.0.0.1:6379", "--run-dir", str(tmp_path), *STORED)
    assert "There is no Ray cluster at 10.0.0.1:6379: Could not find any running Ray instance" in said
    assert "`ray start --head`" in said


@pytest.mark.parametrize("arguments", [[], ["--dry-run"]])
def test_a_cluster_that_anyone_on_the_network_may_use_is_refused_and_left(capsys, tmp_path, ray, arguments):
    cluster = ray("127.0.0.1", "10.0.0.7")
    said = refused(capsys, "--on", "ray", "--run-dir", str(tmp_path), *STORED, *arguments)
    assert "is reached from other machines (10.0.0.7) without a token" in said
    assert "RAY_AUTH_MODE=token" in said
    assert cluster.left
    assert not list(tmp_path.iterdir()), "nothing was made"
