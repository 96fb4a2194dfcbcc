"""What is loaded, and what cannot be."""

from __future__ import annotations

from pathlib import Path

import pytest

from simul.common.config.schema import Config, ServerConfig
from simul.common.errors import ConfigError
from simul.common.nets.io import load_policy
from simul.common.protocol.specs import GameSpec
from simul.common.role import run_lock
from simul.common.role.run_directory import RunDir
from simul.common.transport import new_keys
from simul.launch.loadtest import subject as module
from simul.launch.loadtest.options import parse
from simul.launch.loadtest.subject import POLICY_P, make_subject


def test_the_default_is_policy_p_with_fresh_weights_that_the_server_can_load(tmp_path: Path) -> None:
    subject = make_subject(parse(["--clients", "64", "--envs", "128", "--set", "server.max_batch=64"]), tmp_path)
    assert subject.endpoint == ""
    assert subject.parameters == pytest.approx(1.09e6, rel=0.005)
    assert subject.run_dir.read_spec() == POLICY_P
    assert load_policy(subject.checkpoint).spec == POLICY_P
    assert subject.run_dir.read_config().server.max_sessions >= 64 * 512
    assert subject.run_dir.read_config().server.max_batch == 64
    assert subject.with_precision("float32").run_dir.read_config().server.precision == "float32"


@pytest.fixture
def not_built(monkeypatch: pytest.MonkeyPatch) -> None:
    """No process builds the network: the test above has one that does."""
    monkeypatch.setattr(module, "_network_facts", lambda *_: module._Facts(parameters=1, torch="2"))


@pytest.mark.usefixtures("not_built")
def test_a_run_directory_names_its_endpoint_game_and_network(tmp_path: Path) -> None:
    run_dir = RunDir(tmp_path / "run")
    run_dir.create()
    run_dir.write_config(Config())
    run_dir.write_spec(GameSpec("test/numbers", 3, 2))
    with pytest.raises(ConfigError, match=rf"No run is active in {run_dir.root}\."):
        make_subject(parse(["--connect", str(run_dir.root)]), tmp_path / "load")
    run_lock.claim(run_dir)
    subject = make_subject(parse(["--connect", str(run_dir.root)]), tmp_path / "load")
    assert (subject.endpoint, subject.spec.name) == (run_dir.endpoint("data"), "test/numbers")
    assert (subject.keys, subject.max_batch) == (None, ServerConfig().max_batch)


@pytest.mark.usefixtures("not_built")
def test_keys_are_those_named_or_those_of_the_run_directory(tmp_path: Path) -> None:
    run_dir = RunDir(tmp_path / "run")
    run_dir.create()
    run_dir.write_config(Config(server=ServerConfig(endpoint="tcp://0.0.0.0:9", curve_keys=str(tmp_path / "keys"))))
    run_dir.write_spec(GameSpec("test/numbers", 3, 2))
    for name in ("keys", "mine"):
        new_keys(tmp_path / name)
    run_lock.claim(run_dir)
    of_run = make_subject(parse(["--connect", str(run_dir.root)]), tmp_path / "load")
    assert (of_run.keys, of_run.endpoint) == (tmp_path / "keys", "tcp://127.0.0.1:9")
    subject = make_subject(
        parse(["--connect", "tcp://127.0.0.1:9", "--keys", str(tmp_path / "mine")]), tmp_path / "more"
    )
    assert (subject.keys, subject.max_batch) == (tmp_path / "mine", None)  # an endpoint does not tell its largest batch


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--connect", "{folder}"], "is no run directory (no config.yaml and spec.json), and no endpoint either"),
        (["--connect", "tcp://127.0.0.1:9", "--keys", "{folder}"], "is not a server's public key"),
        (["--checkpoint", "{folder}"], "There is no checkpoint in"),
        (["--config", "{folder}/none.yaml"], "none.yaml"),
        (["--set", "server.max_bach=4"], "did you mean server.max_batch?"),
    ],
)
def test_what_cannot_be_loaded_is_said(tmp_path: Path, arguments: list[str], sentence: str) -> None:
    given = [argument.format(folder=tmp_path) for argument in arguments]
    with pytest.raises(ConfigError) as caught:
        make_subject(parse(given), tmp_path / "load")
    assert sentence in str(caught.value)
