"""`simul connect` against a real server, against nobody, and as a stand-in for a server."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time

import pytest

from simul.common import cli
from simul.common.client.client import InferenceClient
from simul.common.launch.diagnostics import connection_check as module
from simul.common.protocol.decisions import Decision
from simul.common.protocol.specs import GameSpec
from simul.common.runtime.installation import ROOT
from simul.common.transport import RouterSocket, new_keys, server_keys
from simul.env_worker.games.pokemon.showdown.local_server import free_port
from tests.support.stand import PATIENCE_SEC, Stand, exchange


@pytest.fixture
def refused(monkeypatch, capsys):
    """Fails, and says why: not every attempt learns that, and on a busy machine it takes longer."""

    def check(words, *arguments):
        for patience in (0.4, 3.0, 10.0, 30.0):
            with monkeypatch.context() as short:
                short.setattr(module, "ANSWER_SEC", patience)
                assert cli.main(["connect", *arguments]) == 1
            said = capsys.readouterr().out
            if words in said:
                return
        raise AssertionError(said)

    return check


def endpoint():
    return f"tcp://127.0.0.1:{free_port()}"


def test_a_server_is_shown_and_played_with(capsys):
    with Stand() as stand:
        assert cli.main(["connect", str(stand.run_dir.root)]) == 0
        assert cli.main(["connect", stand.run_dir.endpoint("data")]) == 0  # the fingerprint is asked for
        words = capsys.readouterr().out
        for said in (
            f"spec fingerprint {stand.spec.fingerprint()}", "float32[12], 5 actions; policies: learner",
            "rows_per_step 4096", "PING: ", "START: action ", "STEP: action ", "END: acknowledged", "All is well",
        ):  # fmt: skip
            assert words.count(said) == 2, said
        deadline = time.monotonic() + PATIENCE_SEC
        while stand.server.metrics()["clients"] and time.monotonic() < deadline:
            time.sleep(0.01)
        assert stand.server.metrics()["clients"] == stand.server.metrics()["sessions"] == 0
        assert stand.server.metrics()["sessions_ended"]["terminated"] == 2
        assert stand.server.metrics()["messages_refused"] == {}  # to ask is no mistake


def test_a_wrong_fingerprint_is_explained_with_both(capsys):
    with Stand() as stand:
        assert cli.main(["connect", stand.run_dir.endpoint("data"), "--spec", "0bad"]) == 1
        assert stand.server.metrics()["messages_refused"]["ERR_SPEC"] == 1
        words = capsys.readouterr().out
        assert f"with spec {stand.spec.fingerprint()}; got '0bad'. Fix: the client encodes for another game" in words


def test_keys_of_a_run_are_found_and_missing_ones_explained(tmp_path, capsys, refused):
    new_keys(tmp_path)
    with Stand(endpoint=endpoint(), curve_keys=str(tmp_path)) as stand:
        assert cli.main(["connect", str(stand.run_dir.root)]) == 0
        assert "with CURVE keys" in capsys.readouterr().out
        assert cli.main(["connect", stand.config.server.endpoint, "--keys", str(tmp_path)]) == 0
        refused("it wants CURVE keys. Fix: name the folder of your keys with --keys DIR", stand.config.server.endpoint)


def test_a_stranger_s_keys_are_explained(tmp_path, refused):
    new_keys(tmp_path / "ours")
    new_keys(tmp_path / "theirs")
    with RouterSocket(endpoint(), keys=server_keys(tmp_path / "ours")) as router:
        (tmp_path / "theirs" / "server.key").write_bytes((tmp_path / "ours" / "server.key").read_bytes())
        words = "put the public key (client.key) into the server's DIR/allowed/"
        refused(words, router.endpoint, "--keys", str(tmp_path / "theirs"))
        new_keys(tmp_path / "third")
        refused("server.key is not its key", router.endpoint, "--keys", str(tmp_path / "third"))
    with RouterSocket(endpoint()) as router:
        refused("the server has no CURVE keys", router.endpoint, "--keys", str(tmp_path / "ours"))
        refused("HELLO got no answer", router.endpoint)


def test_nobody_and_somebody_else_are_told_apart(refused):
    refused("nothing listens there", endpoint())
    with socket.socket() as mute:
        mute.bind(("127.0.0.1", 0))
        mute.listen()
        refused("does not speak ZeroMQ", f"tcp://127.0.0.1:{mute.getsockname()[1]}")


def test_what_is_no_run_is_a_sentence(tmp_path, capsys):
    assert cli.main(["connect", str(tmp_path)]) == 2
    assert "is no run directory" in capsys.readouterr().err


def test_the_stand_in_shows_a_client_its_frames(tmp_path):
    where = endpoint()
    line = [sys.executable, "-m", "simul.common.cli", "connect", "--listen", where]
    process = subprocess.Popen(line, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        assert "spec (any)" in process.stdout.readline()
        client = InferenceClient(where, name="mine", spec=GameSpec("mine", 4, 2))
        client.connect()
        row = Decision(env=0, seat=0, episode=0, step=0, flags=1, observation=[0.5] * 4, mask=[1, 1])
        assert len(exchange(client, [row]).actions) == 1
        row.step = 9
        assert exchange(client, [row]).failures[0].code == "ERR_ORDER"
        client.close()
        words = ""
        while "'type': 'CLOSE'" not in words:
            line = process.stdout.readline()
            assert line, words
            words += line
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE_SEC)
    assert process.returncode == 0
    assert "observation: float32 [1, 4] declared = 16 bytes, found: 0.5, 0.5, 0.5, 0.5" in words
    assert "wrong (rows [0]): ERR_ORDER: START is at step 0; got step 9. Fix: count the steps" in words
