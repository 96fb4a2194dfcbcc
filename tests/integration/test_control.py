"""The control socket of a living server: policies come and go beside the games, nothing unverified is ever served."""

from __future__ import annotations

import itertools
import re
import threading
from pathlib import Path

import msgspec
import pytest

from simul.common.checkpoints.meta import WEIGHTS_FILE
from simul.common.client.control import ControlClient
from simul.common.config.schema import NetworkConfig
from simul.common.errors import ERR_DENIED, ERR_POLICY, ConfigError, InferenceError
from simul.common.nets.build import build_network
from simul.common.nets.io import weights_to_bytes
from simul.common.protocol.messages import ABORTED
from simul.common.role import run_lock
from simul.inference_server.policies import table
from simul.launch import cli
from simul.learner.checkpoints.checkpoint_store import RunFacts, write_folder
from tests.support.stand import Stand, exchange
from tests.support.waiting import PATIENCE_SEC, wait_for

pytestmark = pytest.mark.usefixtures("patience")


def _checkpoint(folder: Path, stand: Stand, version: int = 7, *, hidden: int = 16, spec=None) -> Path:
    spec, network = spec or stand.spec, NetworkConfig(options={"hidden": hidden, "memory": False})
    files = {WEIGHTS_FILE: weights_to_bytes(build_network(network, spec, seed=3))}
    path = folder / f"{version:09d}"
    write_folder(path, RunFacts(spec, network, "0" * 16, 1).meta(version, 0, 0, files, False), files)
    return path


def _start(stand: Stand, env: int, policy: str, **more):
    return stand.decision(env, 0, policy=policy, flags=1, **more)


def test_a_checkpoint_of_another_network_is_served_under_its_name_and_goes_when_its_games_are_over(
    tmp_path, monkeypatch
) -> None:
    monkeypatch.setattr(table, "LATECOMERS_SEC", 0.0)
    with Stand() as stand, ControlClient(stand.run_dir) as control:
        client = stand.client("a")
        answer = control.load("rival", _checkpoint(tmp_path, stand))
        assert [(p.name, p.policy_version, p.source, p.open, p.memory) for p in answer.policies] == [
            ("learner", 0, "learner", True, True), ("rival", 7, "checkpoint", True, False),
        ]  # fmt: skip
        assert exchange(client, [_start(stand, 0, "rival")]).actions[0].policy_version == 7
        with ControlClient(stand.run_dir, 0.1, server=1) as of_another, pytest.raises(InferenceError):
            of_another.policies()
        recorded = stand.decision(1, 0, policy="rival")
        assert exchange(client, [recorded]).failures[0].code == ERR_DENIED
        for name in ("rival", "learner"):
            with pytest.raises(ConfigError, match="is served already"):
                control.load(name, tmp_path / "000000007")
        stand.learner.publish("rival", 9, stand.weights(), resident=("learner", "rival"))
        stand.learner.publish("learner", 1, stand.weights(), resident=("learner",))
        wait_for(lambda: ("learner", 1) in {(ack.policy, ack.policy_version) for ack in list(stand.learner.acks)})
        assert [ack.accepted for ack in stand.learner.acks if ack.policy == "rival"] == [False]
        with pytest.raises(ConfigError, match="1 sessions are bound to 'rival'"):
            control.unload("rival")
        assert "play on with it" in control.unload("rival", drain=True).text
        assert exchange(client, [stand.decision(0, 1, flags=0)]).actions[0].policy_version == 7
        assert not control.policies().policies[1].open
        exchange(client, [stand.decision(0, 2, kind=ABORTED, observation=None, mask=None)])
        wait_for(lambda: [p.name for p in control.policies().policies] == ["learner"])
        assert exchange(client, [_start(stand, 2, "rival")]).failures[0].code == ERR_POLICY
        with pytest.raises(ConfigError, match="'learner' is no policy that was loaded"):
            control.unload("learner")


def test_what_cannot_be_verified_is_not_served(tmp_path) -> None:
    with Stand() as stand, ControlClient(stand.run_dir) as control:
        other = msgspec.structs.replace(stand.spec, encoder_version=99)
        with pytest.raises(ConfigError, match=f"{other.fingerprint()}.*{stand.spec.fingerprint()}"):
            control.load("other", _checkpoint(tmp_path / "other", stand, spec=other))
        with pytest.raises(ConfigError, match="cannot be read"):
            control.load("missing", tmp_path / "nothing")
        torn = _checkpoint(tmp_path / "torn", stand)
        (torn / WEIGHTS_FILE).write_bytes((torn / WEIGHTS_FILE).read_bytes()[:-4])
        with pytest.raises(ConfigError, match="is damaged"):
            control.load("torn", torn)
        with pytest.raises(ConfigError, match="1 to 100 printable characters"):
            control.load("", torn)
        assert [p.name for p in control.policies().policies] == ["learner"]
        assert len(exchange(stand.client("a"), [stand.decision(0, 0)]).actions) == 1


def test_steps_go_on_while_a_policy_is_loaded(tmp_path) -> None:
    with Stand() as stand, ControlClient(stand.run_dir) as control:
        client, folder = stand.client("a"), _checkpoint(tmp_path, stand, hidden=256)
        build, begun, go = stand.server._weight_updates._policies.build_external, threading.Event(), threading.Event()

        def held(name: str, path: Path, *, trusted: bool):
            begun.set()
            assert go.wait(PATIENCE_SEC)
            return build(name, path, trusted=trusted)

        stand.server._weight_updates._policies.build_external = held
        loading = threading.Thread(target=control.load, args=("rival", folder))
        loading.start()
        assert begun.wait(PATIENCE_SEC)
        for step in range(5):
            assert len(exchange(client, [stand.decision(0, step)]).actions) == 1
        go.set()
        for step in itertools.count(5):
            assert len(exchange(client, [stand.decision(0, step)]).actions) == 1
            if not loading.is_alive():
                break
        assert "rival" in stand.server._weight_updates._policies.names


def test_shutdown_answers_what_waits_and_stops() -> None:
    with Stand() as stand, ControlClient(stand.run_dir) as control:
        client = stand.client("a")
        exchange(client, [stand.decision(0, 0)])
        assert control.shut_down().ok
        stand._thread.join(PATIENCE_SEC)
        assert not stand._thread.is_alive()


def test_the_command_line_lists_loads_and_unloads(tmp_path, capsys) -> None:
    with Stand() as stand:
        folder, root = _checkpoint(tmp_path / "run" / "checkpoints", stand), str(stand.run_dir.root)
        run_lock.claim(stand.run_dir)
        assert cli.main(["policies", "load", "rival", str(tmp_path / "run"), "--run-dir", root]) == 0
        assert cli.main(["policies", "list", "--run-dir", root]) == 0
        assert len(re.findall("rival", capsys.readouterr().out)) == 3
        assert cli.main(["policies", "load", "rival", str(folder), "--run-dir", root]) == 2
        assert "A policy 'rival' is served already" in capsys.readouterr().err
        assert cli.main(["policies", "unload", "rival", "--run-dir", root]) == 0
        assert "takes no new sessions" in capsys.readouterr().out
        (stand.run_dir.root / "config.yaml").write_bytes(b"\x00\xff")
        assert cli.main(["policies", "list", "--run-dir", root]) == 0
