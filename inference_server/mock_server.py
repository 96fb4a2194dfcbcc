"""`python -m simul.inference_server.mock_server`, which `simul connect --listen` starts: explains a client's messages.

The rows of STEP are admitted or refused by the server's own `StepAdmission` and session table; only the network is
missing: an action is a uniform draw from the legal ones. `MockServer` is pure; `listen` is its socket loop. No torch.
"""

from __future__ import annotations

import argparse
import secrets
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simul.common.errors import (
    ERR_HELLO,
    ERR_NO_SESSION,
    ERR_SPEC,
    ERR_VERSION,
    ConfigError,
    ProtocolError,
    SimulError,
)
from simul.common.protocol.codec import Codec, Frame, Tensors, encode
from simul.common.protocol.error_hints import explain_error
from simul.common.protocol.frame_dump import describe_frames
from simul.common.protocol.messages import (
    LEARNER_POLICY,
    PROTOCOL,
    TO_SERVER,
    Actions,
    Close,
    Error,
    Hello,
    Message,
    Ping,
    Pong,
    Sampled,
    Samples,
    Step,
    Welcome,
)
from simul.common.protocol.sample_checks import unpack_samples
from simul.common.protocol.specs import ASKED, GameSpec
from simul.common.role.lifecycle import StopFlag
from simul.common.role.run_directory import RunDir
from simul.common.runtime.terminal_text import LINES, print_text, printable
from simul.common.transport import Poller, RouterSocket
from simul.inference_server.base.granted_memory import with_observation
from simul.inference_server.base.statistics import Statistics
from simul.inference_server.batching.batcher import Chunk
from simul.inference_server.serving.step_admission import StepAdmission
from simul.inference_server.sessions.clients import Client
from simul.inference_server.sessions.row_checks import MAX_ROWS, check_request
from simul.inference_server.sessions.session_close import SessionCloser
from simul.inference_server.sessions.table import Reply, SessionTable

VERSION = 1
Answers = list[tuple[Message, Tensors | None]]


class _LearnerOnly:
    """The only policy is `learner`."""

    def versions(self) -> dict[str, int]:
        return {LEARNER_POLICY: VERSION}

    def source_of(self, name: str) -> str:
        return name


class _NoRecorder:
    """Takes no steps: RECORD needs the training token of a run, and no client of a mock server has it."""

    def open_recording(self) -> int:
        raise AssertionError("a session of the mock server is recorded")

    def add_rewards(
        self, recordings: NDArray[np.int64], reward: NDArray[np.float32], label: NDArray[np.int16] | None = None
    ) -> None:
        pass

    def close_recording(self, *_: Any) -> None:
        raise AssertionError("a session of the mock server was recorded")

    def drop_recordings(self, *_: Any) -> None:
        pass


class MockServer:
    """The server's side of one connection.

    Args:
        spec: the game that it offers in WELCOME.
        fingerprint: the only one accepted in HELLO; "": any but `?`, which asks for it and is refused with it.
    """

    def __init__(self, spec: GameSpec, fingerprint: str = "") -> None:
        self._spec = spec
        self._fingerprint = fingerprint
        self._codec: Codec[TO_SERVER] = Codec(TO_SERVER)
        self._client: Client | None = None
        self._rng = np.random.default_rng(1)
        statistics = Statistics()
        self._sessions = SessionTable(MAX_ROWS, seed=0)
        self._closer = SessionCloser(self._sessions, _NoRecorder(), statistics)
        self._admission = StepAdmission(spec, self._sessions, _LearnerOnly(), _NoRecorder(), self._closer, statistics)

    def handle(self, frames: Sequence[Frame]) -> tuple[list[str], list[list[Frame]]]:
        """(lines that describe the message and what is wrong with it, the messages that answer it)."""
        lines = describe_frames(frames)
        try:
            message, tensors = self._codec.decode(frames)
            lines += _byte_order_line(tensors)
            replies = self._answer(message, tensors)
        except ProtocolError as error:
            replies = [(Error(code=error.code, message=str(error)), None)]
        if not replies:
            lines.append("  the mock server has no answer to it")
        for reply, _ in replies:
            lines += [
                f"  wrong{f' (rows {list(error.rows)})' if error.rows else ''}: {explain_error(error)}"
                for error in _errors_of(reply)
            ] or [_accepted_line(reply)]
        return lines, [encode(reply, columns) for reply, columns in replies]

    def _answer(self, message: Message, tensors: Tensors) -> Answers:
        if isinstance(message, Hello):
            return [(self._welcome(message), None)]
        if self._client is None:
            raise ProtocolError(ERR_HELLO, "this connection is not known; say HELLO first")
        if isinstance(message, Step):
            return self._act(self._client, message, tensors)
        if isinstance(message, Samples):  # a run's server takes them from holders of the training token only
            check_request(message)
            columns, errors = unpack_samples(self._spec, tensors)
            return [(Sampled(id=message.id, accepted=len(columns["outcome"]), errors=errors), None)]
        if isinstance(message, Ping):
            return [(Pong(id=message.id, policies=(LEARNER_POLICY,)), None)]
        if isinstance(message, Close):
            self._closer.close_sessions_of(self._client, "closed")
            self._client = None
        return []

    def _welcome(self, hello: Hello) -> Welcome:
        if hello.protocol != PROTOCOL:
            raise ProtocolError(ERR_VERSION, f"this server speaks {PROTOCOL}; got {hello.protocol[:40]!r}")
        wrong = bool(self._fingerprint) and hello.spec_fingerprint != self._fingerprint
        if wrong or hello.spec_fingerprint == ASKED:
            raise ProtocolError(
                ERR_SPEC,
                f"this server plays {self._spec.name} with spec {self._fingerprint or self._spec.fingerprint()}; "
                f"got {hello.spec_fingerprint[:40]!r}",
            )
        client = self._client
        resumed = client is not None and hello.token == client.token
        if client is None or not resumed:
            if client is not None:
                self._closer.close_sessions_of(client, "new_run")
            client = Client(hello.client, hello.run_id, secrets.token_hex(16), b"", training=False, heard_at=0.0)
            self._client = client
        spec = self._spec
        return Welcome(
            protocol=PROTOCOL, token=client.token, resumed=resumed, game=spec.name,
            observation_size=spec.observation_size, num_actions=spec.num_actions,
            observation_dtype=spec.observation_dtype, policies=(LEARNER_POLICY,),
            limits={"rows_per_step": MAX_ROWS, "sessions": MAX_ROWS},
        )  # fmt: skip

    def _act(self, client: Client, message: Step, tensors: Tensors) -> Answers:
        """Admit the rows as the server does, and answer those that wait for a batch at once."""
        check_request(message)
        if message.observation_at >= 0:
            tensors = with_observation(client.memory, self._spec, message.observation_at, tensors)
        admitted = self._admission.admit_rows(client, message, tensors, 0.0)
        replies, refusals = admitted.replies, admitted.refusals
        for chunk in admitted.chunks:
            alive = self._sessions.number.take(chunk.slots) == chunk.numbers
            if not alive.all():
                text = "the session ended before this row was answered"
                refusals.add(ERR_NO_SESSION, text, *chunk.rows[~alive].tolist())
            replies.extend(self._sample(chunk.pick(alive)))
        answers: Answers = [(Actions(id=message.id), _action_columns(sorted(replies)))] if replies else []
        for code, text, rows in refusals:
            answers.append((Error(code=code, message=text, id=message.id, rows=tuple(rows)), None))
        return answers

    def _sample(self, chunk: Chunk) -> list[tuple[int, Reply]]:
        """A legal action for each row, by its position in the message; the sessions wait for their next step."""
        n = len(chunk)
        read, written = np.empty(n, np.int64), np.empty(n, np.int64)
        legal = [np.flatnonzero(chunk.mask[row]) for row in chunk.rows]
        action = np.array([self._rng.choice(actions) for actions in legal], np.int32)
        log_prob = np.array([-np.log(len(actions)) for actions in legal], np.float32)
        value = np.zeros(n, np.float32)
        self._sessions.find_state_rows(chunk.slots, chunk.redo, read, written)
        self._sessions.commit(chunk.slots, written, action, log_prob, value, VERSION, 0.0)
        return [
            (int(row), (int(chosen), float(probability), 0.0, VERSION))
            for row, chosen, probability in zip(chunk.rows, action, log_prob)
        ]


def _byte_order_line(tensors: Tensors) -> list[str]:
    """A warning where every key is huge, and small in the other byte order; the server takes any numbers."""
    keys = tensors.get("keys")
    if keys is None or keys.dtype != np.int64 or not (np.abs(keys) >= 1 << 40).any():
        return []
    swapped = (keys.byteswap() < 1 << 40).all()
    return ["  suspicious: the keys look byte-swapped; numbers are little-endian"] if swapped else []


def _action_columns(replies: list[tuple[int, Reply]]) -> Tensors:
    action, log_prob, value, version = zip(*(reply for _, reply in replies))
    return {
        "row": np.array([row for row, _ in replies], np.int32),
        "action": np.array(action, np.int32),
        "log_prob": np.array(log_prob, np.float32),
        "value": np.array(value, np.float32),
        "policy_version": np.array(version, np.int64),
    }


def _errors_of(reply: Message) -> list[Error]:
    if isinstance(reply, Sampled):
        return [Error(code=e.code, message=e.message, id=reply.id, rows=e.rows) for e in reply.errors]
    return [reply] if isinstance(reply, Error) else []


def _accepted_line(reply: Message) -> str:
    return f"  valid: answered with {type(reply).__name__.upper()}"


CARTPOLE = GameSpec("mock", observation_size=4, num_actions=2)


def listen(endpoint: str, run_dir: str | None, *, spec: str | None, parent: int = 0) -> int:
    """Print every message, frame by frame, until a signal or the end of the process `parent`.

    Args:
        run_dir: the run whose game it offers; None: a game of CartPole's size.
        spec: the only spec fingerprint accepted; default: the run's, or any where there is no run.
    """
    game = RunDir(Path(run_dir)).read_spec() if run_dir else CARTPOLE
    fingerprint = spec or (game.fingerprint() if run_dir else "")
    stop = StopFlag(parent).install()
    with RouterSocket(endpoint) as socket:
        print_text(
            f"listening at {endpoint} as a server of {game.name}: observation {game.observation_dtype}"
            f"[{game.observation_size}], {game.num_actions} actions, spec {fingerprint or '(any)'}. Ctrl-C ends it."
        )
        _serve(socket, game, fingerprint, stop)
    return 0


def _serve(socket: RouterSocket, game: GameSpec, fingerprint: str, stop: StopFlag) -> None:
    clients: dict[bytes, MockServer] = {}
    poller = Poller([socket])
    number = 0
    while not stop:
        while (received := socket.receive()) is not None:
            peer, frames = received
            number += 1
            client = clients.setdefault(peer, MockServer(game, fingerprint))
            lines, replies = client.handle(frames)
            connection = list(clients).index(peer) + 1
            print_text("\n".join([f"message {number}, connection {connection}", *map(printable, lines)]))
            for reply in replies:
                socket.send(peer, reply)
        poller.wait(0.2)


def main() -> int:
    """Exit code 0: ended by a signal; 2: a sentence says what to change."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("endpoint")
    parser.add_argument("--run-dir")
    parser.add_argument("--spec")
    parser.add_argument("--parent", type=int, default=0, help="end when this process is gone (0: do not watch)")
    options = parser.parse_args()
    try:
        return listen(options.endpoint, options.run_dir, spec=options.spec, parent=options.parent)
    except SimulError as error:
        sys.stderr.write(printable(f"simul: {error}\n", LINES))
        return 2 if isinstance(error, ConfigError) else 1


if __name__ == "__main__":
    sys.exit(main())
