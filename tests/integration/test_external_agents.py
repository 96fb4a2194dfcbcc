"""Clients without Simul, of examples/ and docs/protocol.md: they play CartPole against a real server."""

from __future__ import annotations

import ast
import importlib.util
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import msgpack
import numpy as np
import pytest

from simul.common.config.loader import load_config
from simul.common.protocol.codec import Codec
from simul.common.protocol.messages import TO_SERVER
from simul.common.runtime.installation import ROOT
from simul.env_worker.games.loading import game_spec
from simul.env_worker.games.pokemon.install.node import find_node
from simul.env_worker.games.pokemon.install.setup_node import install_packages
from tests.support.stand import Stand
from tests.support.waiting import wait_for

PYTHON_AGENT, NODE_AGENT = ROOT / "examples" / "external_agent.py", ROOT / "examples" / "external_agent.mjs"
VECTORS = json.loads((ROOT / "tests" / "golden" / "protocol" / "vectors.json").read_text())["vectors"]
SENT = [vector for vector in VECTORS if vector["direction"] == "to the server"]
SPEC = game_spec(load_config(ROOT / "configs" / "cartpole.yaml", []))
PACK_IN_NODE = """
import fs from 'node:fs';
import { pack, packStep, unpack } from './external_agent.mjs';
const hex = (frames) => frames.map((frame) => frame.toString('hex'));
console.log(JSON.stringify(JSON.parse(fs.readFileSync(0)).map((vector) => {
    const { type, tensors: declared = [], ...fields } = vector.header;
    const columns = Object.values(vector.tensors);
    const tensors = declared.map((row, i) => [...row, columns[i].flat()]);
    const packed = pack(type, fields, tensors);
    const [header, read] = unpack(packed);
    const again = pack(type, fields, declared.map((row, i) => [...row, read[row[0]]]));
    const plain = type === 'STEP' && Object.keys(fields).length === 1;  // as the agent itself sends them
    const rows = plain && columns[0].map((_, n) => columns.map((column) => column[n]));
    return [hex(packed), hex(again), hex(rows ? packStep(fields.id, rows) : packed), header];
})));
"""


@pytest.fixture(scope="module")
def node() -> str:
    """A Node that finds the example's packages."""
    if not (ROOT / "examples" / "node_modules" / "zeromq").is_dir():
        install_packages(ROOT / "examples", "npm could not install what the example needs")
    return str(find_node().path)


@pytest.fixture(scope="module")
def agent():
    """The Python example as a module."""
    spec = importlib.util.spec_from_file_location("external_agent", PYTHON_AGENT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _play(command: list[str]) -> None:
    with Stand(SPEC) as stand:
        done = subprocess.run(
            [*command, stand.run_dir.endpoint("data")], capture_output=True, text=True, timeout=100, cwd=ROOT
        )
        assert done.returncode == 0, done.stderr
        first, last = done.stdout.splitlines()
        assert first == "game 'gymnasium/CartPole-v1': observation float32[4], 2 actions"
        games = int(last.split(" games, ")[0])
        wait_for(lambda: "closed" in stand.server.metrics()["sessions_ended"])  # by its CLOSE
        metrics = stand.server.metrics()
        assert games >= 20
        assert metrics["sessions_ended"]["terminated"] + metrics["sessions_ended"].get("truncated", 0) >= games
        assert metrics["sessions_ended"]["closed"] <= 8
        assert (metrics["rows_errored"], metrics["malformed"], metrics["sessions"]) == ({}, 0, 0)


def test_the_python_agent_plays() -> None:
    _play([sys.executable, str(PYTHON_AGENT)])


def test_the_node_agent_plays(node: str) -> None:
    _play([node, str(NODE_AGENT)])


def test_the_client_that_the_protocol_opens_with_plays(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "protocol.md").read_text().partition("\n## ")[0]
    (client,) = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert sum(map(bool, client.splitlines())) <= 40
    assert re.findall(r"^(?:import|from) (.*)$", client, re.MULTILINE) == [
        "itertools, struct, sys, time, gymnasium, msgpack, zmq"
    ]
    (tmp_path / "client.py").write_text(client)
    with Stand(SPEC) as stand:
        command = [sys.executable, "client.py", stand.run_dir.endpoint("data")]
        done = subprocess.run(command, capture_output=True, text=True, timeout=100, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        game, *episodes = done.stdout.splitlines()
        assert game == SPEC.name
        steps = [int(episode.removesuffix(" steps")) for episode in episodes]
        wait_for(lambda: stand.server.metrics()["clients"] == 0)  # by its CLOSE
        metrics = stand.server.metrics()
        assert (sum(metrics["sessions_ended"].values()), len(steps), min(steps) > 5) == (3, 3, True)
        assert metrics["decisions"] == sum(steps)
        assert (metrics["rows_errored"], metrics["malformed"]) == ({}, 0)


@pytest.mark.parametrize("path", [PYTHON_AGENT, NODE_AGENT], ids=lambda path: path.suffix)
def test_the_agents_know_the_fingerprint_of_their_game(path: Path) -> None:
    assert SPEC.name == "gymnasium/CartPole-v1"
    assert SPEC.fingerprint() in path.read_text()


def test_the_python_agent_is_short_and_imports_nothing_of_ours() -> None:
    text = PYTHON_AGENT.read_text()
    imported = {
        alias.name for line in ast.walk(ast.parse(text)) if isinstance(line, ast.Import) for alias in line.names
    } | {line.module for line in ast.walk(ast.parse(text)) if isinstance(line, ast.ImportFrom)}
    assert imported == {"sys", "time", "typing", "gymnasium", "msgpack", "numpy", "zmq"}
    assert len(text.splitlines()) < 100


@pytest.mark.parametrize("given", [[], ["127.0.0.1:5555"]])
def test_a_wrong_endpoint_of_the_python_agent_is_a_sentence(given: list[str]) -> None:
    _refuses_endpoint([sys.executable, str(PYTHON_AGENT)], given)


@pytest.mark.parametrize("given", [[], ["127.0.0.1:5555"], ["tcp://127.0.0.1"], ["http://127.0.0.1:5555"]])
def test_a_wrong_endpoint_of_the_node_agent_is_a_sentence(node: str, given: list[str]) -> None:
    _refuses_endpoint([node, str(NODE_AGENT)], given)


def _refuses_endpoint(command: list[str], given: list[str]) -> None:
    done = subprocess.run([*command, *given], capture_output=True, text=True, timeout=100, check=False)
    sentence = f"Expected the server's endpoint, such as tcp://127.0.0.1:5555 or ipc://PATH; got '{''.join(given)}'.\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", sentence)


def _frames(vector: dict) -> list[bytes]:
    return [bytes.fromhex(frame) for frame in vector["frames"]]


@pytest.mark.parametrize("vector", SENT, ids=lambda vector: vector["name"])
def test_what_the_python_agent_packs_is_golden(agent, vector: dict) -> None:
    fields = {key: value for key, value in vector["header"].items() if key not in ("type", "tensors")}
    declared = vector["header"].get("tensors", [])
    tensors = {name: np.array(vector["tensors"][name], dtype) for name, dtype, _ in declared}
    packed = agent.pack(vector["header"]["type"], tensors, **fields)
    assert packed == _frames(vector)
    Codec(TO_SERVER).decode(packed)
    header, read = agent.unpack(packed)
    assert header == vector["header"]
    assert {name: array.tolist() for name, array in read.items()} == vector["tensors"]


def test_what_the_node_agent_packs_is_golden(node: str) -> None:
    done = subprocess.run(
        [node, "--input-type=module", "-e", PACK_IN_NODE], input=json.dumps(SENT), capture_output=True, text=True,
        timeout=60, cwd=ROOT / "examples",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    for vector, (packed, again, rows, header) in zip(SENT, json.loads(done.stdout), strict=True):
        assert packed == again == rows == vector["frames"], vector["name"]
        assert header == vector["header"]
        Codec(TO_SERVER).decode([bytes.fromhex(frame) for frame in packed])


class ScriptedSocket:
    """What the Python agent talks to: says its lines, None = 3 s of silence, and keeps what it is told."""

    def __init__(self, *lines: dict | None) -> None:
        self._lines = list(lines)
        self.told: list[str] = []

    def poll(self, timeout_ms: int) -> bool:
        if self._lines[0] is None:
            return bool(self._lines.pop(0))
        return True

    def recv_multipart(self) -> list[bytes]:
        line = self._lines.pop(0)
        tensors = {name: np.array(values, np.int32) for name, values in line.pop("tensors", {}).items()}
        declared = [(name, "int32", array.shape) for name, array in tensors.items()]
        return [msgpack.packb({**line, "tensors": declared}), *(array.tobytes() for array in tensors.values())]

    def send_multipart(self, frames: list[bytes]) -> None:
        self.told.append(msgpack.unpackb(frames[0])["type"])


SILENT_IN_NODE = """
import { ask } from './external_agent.mjs';
const sent = [];
const socket = {
    receive: () => Promise.reject(Object.assign(new Error('timeout'), { code: 'EAGAIN' })),
    send: (frames) => Promise.resolve(sent.push(frames)),
};
const row = [[0, 0, 0, 0, 0], 0, 1, 0, [0, 0, 0, 0], [1, 1], 0];
await ask(socket, {}, 1, [row]).catch((error) => console.log(sent.length, error.message));
"""
ROWS = [((0, 0, 0, 0, 0), 0, 1, 0.0, [0.0] * 4, (1, 1), 0)]
ACTIONS = {"type": "ACTIONS", "id": 1, "tensors": {"row": [0], "action": [1]}}


def welcome(resumed: bool) -> dict:
    spec = {"game": "toy\x1b[31m", "observation_dtype": "float32", "observation_size": 4, "num_actions": 2}
    return {"type": "WELCOME", "token": "t2", "resumed": resumed, **spec}


@pytest.mark.parametrize(
    ("hello", "lines", "told", "actions"),
    [
        ({}, [welcome(False), ACTIONS], ["HELLO", "STEP"], {0: 1}),
        ({}, [None, None, welcome(False), ACTIONS], ["HELLO", "HELLO", "HELLO", "STEP"], {0: 1}),
        ({"token": "t"}, [None, welcome(True), ACTIONS], ["STEP", "HELLO", "STEP"], {0: 1}),
        ({"token": "t"}, [{"type": "ERROR", "code": "ERR_HELLO"}, welcome(False)], ["STEP", "HELLO"], {}),
        ({"token": "t"}, [{**ACTIONS, "id": 0}, ACTIONS], ["STEP"], {0: 1}),
    ],
    ids=["first", "slow server", "reconnected", "server forgot it", "late answer"],
)
def test_the_python_agent_reconnects(agent, hello: dict, lines: list, told: list[str], actions: dict, capsys) -> None:
    socket, first = ScriptedSocket(*(line and dict(line) for line in lines)), "token" not in hello
    assert agent.ask(socket, hello, 1, ROWS) == actions
    shown = "game 'toy\\x1b[31m': observation float32[4], 2 actions\n"
    assert capsys.readouterr().out == (shown if first else "")
    assert socket.told == told
    assert "token" in hello


def test_silence_ends_the_python_agent_with_a_sentence_about_keys(agent) -> None:
    socket = ScriptedSocket(*[None] * 10)
    with pytest.raises(SystemExit, match="A server with CURVE keys answers only clients with keys"):
        agent.ask(socket, {}, 1, ROWS)
    assert socket.told == ["HELLO"] * 10


def test_silence_ends_the_node_agent_with_a_sentence_about_keys(node: str) -> None:
    line = [node, "--input-type=module", "-e", SILENT_IN_NODE]
    done = subprocess.run(line, capture_output=True, text=True, timeout=60, cwd=ROOT / "examples")
    assert done.stderr == ""
    assert done.stdout.startswith("10 No answer: is the endpoint right? A server with CURVE keys answers only")


def test_the_node_agent_names_the_command_that_installs_its_packages(tmp_path, node: str) -> None:
    alone = shutil.copy(NODE_AGENT, tmp_path / NODE_AGENT.name)
    done = subprocess.run([node, alone, "tcp://127.0.0.1:1"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert done.stderr == f"The package @msgpack/msgpack is missing. Run `npm ci` in {tmp_path}/\n"


def test_a_refusal_ends_the_python_agent_with_the_servers_words(agent) -> None:
    refusal = {"type": "ERROR", "code": "ERR_SPEC", "message": "this server plays something else\x1b]52;c;aGk=\a"}
    with pytest.raises(SystemExit, match=r"^ERR_SPEC: this server plays something else\\x1b\]52;c;aGk=\\x07$"):
        agent.ask(ScriptedSocket(refusal), {}, 1, ROWS)
