"""`simul connect` against a real server and against none, and the mock server beside a real one."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys

import numpy as np
import pytest

from simul.common.client.client import InferenceClient
from simul.common.client.steps import pack_step
from simul.common.protocol.codec import Codec, encode
from simul.common.protocol.decisions import Decision
from simul.common.protocol.messages import PROTOCOL, TO_CLIENT, Error, Hello, Step
from simul.common.protocol.specs import GameSpec
from simul.common.runtime.installation import ROOT
from simul.common.transport import RouterSocket, new_keys, server_keys
from simul.env_worker.games.pokemon.showdown.local_server import free_port
from simul.inference_server.mock_server import MockServer
from simul.launch import cli
from simul.launch.diagnostics import connection_check as module
from tests.support.raw_client import RawClient
from tests.support.stand import SPEC, Stand, exchange
from tests.support.waiting import PATIENCE_SEC, wait_for


@pytest.fixture(autouse=True)
def patience(monkeypatch):
    """A server that answers may take its time on a busy machine."""
    monkeypatch.setattr(module, "ANSWER_SEC", PATIENCE_SEC)


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
        assert words.count("which it was asked for: check that the game below is the one that your client plays") == 1
        wait_for(lambda: stand.server.metrics()["clients"] == stand.server.metrics()["sessions"] == 0)
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
    (tmp_path / "config.yaml").write_text("server: {endpont: ''}\n")
    (tmp_path / "spec.json").touch()
    assert cli.main(["connect", str(tmp_path)]) == 2
    assert "server.endpont: there is no such key; did you mean server.endpoint?" in capsys.readouterr().err


@pytest.mark.skipif(sys.platform == "win32", reason="no such signals there")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_signal_to_the_command_alone_leaves_no_mock_server(tmp_path, number):
    line = [sys.executable, "-m", "simul.launch.cli", "connect", "--listen", f"ipc://{tmp_path}/mock.ipc"]
    with subprocess.Popen(line, cwd=ROOT, stdout=subprocess.PIPE, text=True) as command:
        assert "spec (any)" in command.stdout.readline()
        command.send_signal(number)
        assert command.stdout.read() == "", "the end of the mock server closes the pipe"


def test_the_mock_server_shows_a_client_its_frames(tmp_path):
    where = f"ipc://{tmp_path}/mock.ipc"
    line = [sys.executable, "-m", "simul.launch.cli", "connect", "--listen", where]
    process = subprocess.Popen(line, cwd=ROOT, stdout=subprocess.PIPE, text=True, start_new_session=True)
    try:
        assert "spec (any)" in process.stdout.readline()
        client = InferenceClient(where, name="mine", spec=GameSpec("mine", 4, 2))
        client.connect(PATIENCE_SEC)
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
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        process.communicate(timeout=PATIENCE_SEC)
    assert process.returncode == 0
    assert "observation: float32 [1, 4] declared = 16 bytes, found: 0.5, 0.5, 0.5, 0.5" in words
    assert (
        "wrong (rows [0]): ERR_ORDER: expected step 1 attempt 0, or step 0 attempt 1; got step 9 attempt 0. Fix: count"
        in words
    )


def row(**more):
    """One row of STEP as the columns of one message; those named are replaced."""
    _, tensors = pack_step(1, [Decision(0, 0, 0, 0, flags=1, observation=[0.0] * D, mask=[1] * A)], SPEC)
    return {**tensors, **{name: np.array(values, tensors[name].dtype) for name, values in more.items()}}


def key(env=0, episode=0, step=0, attempt=0):
    return [[env, 0, episode, step, attempt]]


def answered(answer, tensors):
    """By row: that it is answered, or the error in full; an error of the whole message is that of its row 0."""
    if isinstance(answer, Error):
        return dict.fromkeys(answer.rows or (0,), f"{answer.code}: {answer.message}")
    return dict.fromkeys(tensors["row"].tolist(), "answered")


D, A = SPEC.observation_size, SPEC.num_actions
MESSAGES = [  # in this order, to one server: (columns of its rows, more of the header)
    (row(), {}),
    (row(), {}),  # the same row again
    (row(keys=key(step=1), flags=[0]), {}),
    (row(keys=key(step=1, attempt=1), flags=[0]), {}),  # the game refused the action
    (row(keys=key(step=1, attempt=3), flags=[0]), {}),
    (row(keys=key(step=4), flags=[0]), {}),
    (row(keys=key(step=2), flags=[8]), {}),
    (row(keys=key(step=2), flags=[0], mask=[[0] * A]), {}),
    (row(keys=key(step=2), flags=[0], mask=[[2] * A]), {}),
    (row(keys=key(step=2), flags=[0], reward=[np.nan]), {}),
    (row(keys=key(step=2), flags=[0], observation=[[np.inf] * D]), {}),
    (row(keys=key(step=2), flags=[0]), {"id": -1}),
    (row(keys=key(step=2), flags=[0]), {"deadline_ms": -1}),
    (row(keys=key(step=2), flags=[0]), {"observation_at": 64}),
    (row(keys=key(step=2), flags=[0], kind=[4]), {}),
    (row(keys=key(step=2), flags=[0], kind=[2], observation=[[np.nan] * D]), {}),
    (row(keys=key(step=7), flags=[0], kind=[1]), {}),
    (row(keys=key(step=0), flags=[0], kind=[1]), {}),
    (row(keys=key(env=7), kind=[9]), {}),  # without a session too
    (row(keys=key(step=2), flags=[0], kind=[1]), {}),
    (row(keys=key(step=2), flags=[0], kind=[1]), {}),  # the end again
    (row(keys=key(step=3), flags=[0]), {}),
    (row(keys=key(env=1, step=1)), {}),
    (row(keys=key(env=1), policy=[1]), {}),
    (row(keys=key(env=1)), {"policies": ("other",)}),
    ({**row(keys=key(env=1)), "temperature": np.array([0.5], np.float32)}, {}),
    ({**row(keys=key(env=2)), "temperature": np.array([0.0], np.float32)}, {}),
    ({**row(keys=key(env=2)), "temperature": np.array([101.0], np.float32)}, {}),
    ({**row(keys=key(env=2)), "temperature": np.array([1.0], np.float64)}, {}),
    ({name: column for name, column in row().items() if name != "reward"}, {}),
    (row(keys=key(env=1, episode=-1)), {}),
    (row(keys=key(env=1, episode=1)), {}),
    ({name: np.concatenate((column, column)) for name, column in row(keys=key(env=3)).items()}, {}),
    (row(keys=key(env=4), flags=[3]), {}),
]


def test_the_mock_server_admits_and_refuses_what_the_server_admits_and_refuses():
    mock, codec, codes = MockServer(SPEC), Codec(TO_CLIENT), set()
    with Stand() as stand, RawClient(stand.run_dir.endpoint("data"), SPEC) as client:
        client.hello()
        hello = Hello(protocol=PROTOCOL, client="raw", run_id=1, spec_fingerprint="")
        mock.handle([bytes(frame) for frame in encode(hello)])
        for number, (columns, header) in enumerate(MESSAGES):
            message = Step(**{"id": number, **header})
            client.send(message, columns)
            wanted: dict[int, str] = {}
            while len(wanted) < len(columns["keys"]):
                wanted |= answered(*client.receive())
            found: dict[int, str] = {}
            for frames in mock.handle([bytes(frame) for frame in encode(message, columns)])[1]:
                found |= answered(*codec.decode([bytes(frame) for frame in frames]))
            assert found == wanted, number
            codes |= {text.split(":")[0] for text in wanted.values()}
    assert codes == {
        "answered", "ERR_ORDER", "ERR_VALUE", "ERR_MASK", "ERR_NO_SESSION", "ERR_POLICY", "ERR_SHAPE", "ERR_DENIED",
    }  # fmt: skip
