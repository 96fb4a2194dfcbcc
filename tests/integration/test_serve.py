"""`simul serve`: a checkpoint on its own, for real; what is refused; and how it ends."""

from __future__ import annotations

import os
import re
import signal
import socket
import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from simul.common.client.client import InferenceClient
from simul.common.config.trust import EVERYTHING
from simul.common.protocol.decisions import Decision, start_flags
from simul.common.protocol.specs import GameSpec
from simul.common.transport import client_keys, new_keys
from simul.env_worker.games.pokemon.showdown.local_server import free_port
from simul.launch import cli
from simul.launch.monitoring.snapshot import Snapshot
from simul.launch.processes.process_group import ProcessGroup, RoleDied
from simul.launch.supervisor import inference_only as module
from simul.launch.supervisor.inference_only import serve
from tests.support.checkpoints import write_checkpoint
from tests.support.command import Command
from tests.support.stand import exchange
from tests.support.stand_ins import STAND_IN

SPEC = GameSpec(name="somebodys:Numbers", observation_size=12, num_actions=5)
OFTEN = """
from simul.launch.monitoring.view import display as module
from simul.launch.supervisor import inference_only
inference_only.SNAPSHOT_EVERY_SEC = module.PLAIN_EVERY_SEC = 0.2
"""


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    return write_checkpoint(tmp_path / "000000007", SPEC, 7)


@pytest.mark.slow  # .ci/long runs it
def test_a_checkpoint_is_served_to_a_client_with_keys(checkpoint: Path, tmp_path: Path) -> None:
    new_keys(tmp_path / "keys")
    keys = client_keys(tmp_path / "keys")
    (tmp_path / "keys" / "client.key_secret").unlink()  # a server needs its own secret only
    endpoint = f"tcp://127.0.0.1:{free_port()}"
    program = f"{OFTEN}import sys; from simul.launch.cli import main; sys.exit(main())"
    line = [sys.executable, "-c", program, "serve", "--checkpoint", str(checkpoint), "--trust", "--endpoint", endpoint]
    command = Command([*line, "--curve-keys", str(tmp_path / "keys"), "--plain"], tmp_path / "serve")
    client = InferenceClient(endpoint, name="bot", spec=SPEC, keys=keys)
    try:
        command.wait_for(lambda _: "Ctrl-C stops" in command.printed())
        command.wait_for(lambda _: "actions/s 0 (last" in command.printed())  # counted twice: rates see what comes now
        client.connect()
        start = start_flags(record=False, greedy=True)
        rows = [
            Decision(env=env, seat=0, episode=0, step=0, flags=start, observation=[0.1] * 12, mask=[1] * 5)
            for env in range(3)
        ]
        assert {action.policy_version for action in exchange(client, rows).actions} == {7}
        command.wait_for(lambda _: re.search(r"clients 1, sessions 3 \| batch [23]\.", command.printed()))
        code, printed = command.finish()
    finally:
        client.close()
        command.end_now()
    assert code == 0, printed
    assert re.search(r"ready after [\d.]+ s", printed)
    assert f"spec fingerprint {SPEC.fingerprint()}" in printed
    assert f"simul connect {endpoint} --keys {tmp_path / 'keys'}" in printed
    assert "answered 3 in" in printed.splitlines()[-1]
    assert "refused nothing" in printed.splitlines()[-1]
    assert not Path(re.search(r"--run-dir (\S+)", printed)[1]).exists()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--checkpoint", "{folder}/none"], "There is no checkpoint in {folder}/none: expected a folder with meta"),
        (["--endpoint", "tcp://0.0.0.0:5555"], "is not local: expected ipc://PATH or tcp://127.0.0.1:PORT"),
        (["--endpoint", "tcp://0.0.0.0:5555"], "`simul keys new DIR`"),
        (["--endpoint", "127.0.0.1:5555"], "has an unknown kind: expected ipc://PATH or tcp://ADDRESS:PORT"),
        (["--curve-keys", "{folder}/none"], "make keys with `simul keys new {folder}/none`"),
        (["--set", "server.max_bach=3"], "did you mean server.max_batch?"),
        (["--set", "server.endpoint=tcp://0.0.0.0:5555"], "is not local"),
        (["--endpoint", "tcp://127.0.0.1:{taken}"], "cannot be bound: Address already in use"),
        (["--endpoint", "ipc://{folder}/x", "--prometheus-port", "{taken}"], "cannot be served at 127.0.0.1:{taken}"),
    ],
)
def test_what_cannot_be_served_is_said_before_anything_starts(
    checkpoint: Path, tmp_path: Path, arguments: list[str], sentence: str, capsys, monkeypatch
) -> None:
    monkeypatch.setattr(ProcessGroup, "start", lambda *_: pytest.fail("a server was started"))
    with socket.create_server(("127.0.0.1", 0)) as server:
        names = {"folder": tmp_path, "taken": server.getsockname()[1]}
        given = [argument.format(**names) for argument in arguments]
        assert cli.main(["serve", "--trust", "--checkpoint", str(checkpoint), *given]) == 2
    assert sentence.format(**names) in capsys.readouterr().err


class ScriptedDisplay:
    """Keeps what it is told; each snapshot goes to the first of `steps`, which returns true when it is done."""

    def __init__(self, *steps: Callable[[Snapshot], object]) -> None:
        self.said: list[str] = []
        self.last_words = ""
        self._steps = list(steps)

    def say(self, sentence: str) -> None:
        self.said.append(sentence)

    def update(self, snapshot: Snapshot) -> None:
        if self._steps and self._steps[0](snapshot):
            del self._steps[0]

    def close(self) -> None:
        pass

    def summary(self, text: str) -> None:
        self.last_words = text


def stand_in(role: str) -> list[str]:
    return [sys.executable, str(STAND_IN), role]


def interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def test_a_server_that_dies_is_started_again_and_totals_go_on(checkpoint: Path, monkeypatch) -> None:
    monkeypatch.setattr(module, "SNAPSHOT_EVERY_SEC", 0.05)
    at_death = []

    def kill(snapshot: Snapshot) -> bool:
        if snapshot.server.get("decisions"):
            at_death.append(snapshot.server["decisions"])
            psutil.Process(snapshot.processes[0].pid).kill()
        return bool(at_death)

    def stop(snapshot: Snapshot) -> bool:
        back = snapshot.processes[0].restarts == 1 and snapshot.server["decisions"] > at_death[0]
        if back:
            interrupt()
        return back

    display, endpoint = ScriptedDisplay(kill, stop), f"ipc://{checkpoint.parent}/data.ipc"
    assert serve(checkpoint, display, endpoint=endpoint, command=stand_in, trust=EVERYTHING) == 0
    assert "the inference server died (signal 9), restarting" in display.said
    assert display.said[-1] == "stopping: answering what waits (Ctrl-C again: now)"
    assert re.match(r"answered [\d,]+ in \d+ s .*, mean batch .*, latency 0.8 ms p50, 2.0 ms p99", display.last_words)


def test_an_interrupted_start_ends_at_once(checkpoint: Path) -> None:
    before = {child.pid for child in psutil.Process().children()}

    def asleep(role: str) -> list[str]:
        interrupt()
        return [sys.executable, "-c", "import time; time.sleep(60)"]

    endpoint = f"ipc://{checkpoint.parent}/data.ipc"
    with pytest.raises(RoleDied, match="stopped before it was ready") as ended:
        serve(checkpoint, ScriptedDisplay(), endpoint=endpoint, command=asleep, trust=EVERYTHING)
    assert ended.value.exit_code == 130
    assert {child.pid for child in psutil.Process().children()} <= before
