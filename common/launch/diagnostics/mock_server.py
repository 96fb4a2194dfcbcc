"""`simul connect --listen`: a mock server that explains wrong messages of a client and answers valid ones.

`MockServer` is pure; `listen` is its socket loop. Its row rules repeat those of
`simul.inference_server.frontend.row_checks`, which `common` may not import.
"""

from __future__ import annotations

import secrets
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from simul.common.config.run_directory import RunDir
from simul.common.launch.diagnostics.error_hints import explain_error
from simul.common.launch.diagnostics.frame_dump import describe_frames
from simul.common.launch.processes.signals import Signals
from simul.common.protocol.codec import Codec, Frame, encode, expect, expect_only
from simul.common.protocol.errors import (
    ERR_HELLO,
    ERR_LIMIT,
    ERR_MASK,
    ERR_NO_SESSION,
    ERR_ORDER,
    ERR_POLICY,
    ERR_SPEC,
    ERR_VALUE,
    ERR_VERSION,
    ConfigError,
    ProtocolError,
)
from simul.common.protocol.messages import (
    ABORTED,
    DECISION,
    FLAGS,
    PROTOCOL,
    START,
    STEP_TENSORS,
    TO_SERVER,
    TRUNCATED,
    Actions,
    Close,
    Error,
    Hello,
    Message,
    Ping,
    Pong,
    Step,
    Welcome,
)
from simul.common.protocol.specs import GameSpec
from simul.common.transport import Poller, RouterSocket

ROWS_PER_STEP = 4096
VERSION = 1
Columns = dict[str, NDArray[Any]]


class MockServer:
    """The server's side of one connection.

    Args:
        spec: the game that it offers in WELCOME.
        fingerprint: the only one accepted in HELLO; "": any.
    """

    def __init__(self, spec: GameSpec, fingerprint: str = "") -> None:
        self._spec = spec
        self._fingerprint = fingerprint
        self._codec: Codec[TO_SERVER] = Codec(TO_SERVER)
        self._token = ""
        self._next_step: dict[tuple[int, int, int], int] = {}  # (env, seat, episode) -> its next step
        self._rng = np.random.default_rng(1)

    def handle(self, frames: Sequence[Frame]) -> tuple[list[str], list[list[Frame]]]:
        """(lines that describe the message and what is wrong with it, the messages that answer it)."""
        lines = describe_frames(frames)
        try:
            message, tensors = self._codec.decode(frames)
            replies = self._answer(message, tensors)
        except ProtocolError as error:
            replies = [(Error(code=error.code, message=str(error)), None)]
        for reply, _ in replies:
            rows = f" (rows {list(reply.rows)})" if isinstance(reply, Error) and reply.rows else ""
            lines.append(
                f"  wrong{rows}: {explain_error(reply)}" if isinstance(reply, Error) else _accepted_line(reply)
            )
        return lines, [encode(reply, columns) for reply, columns in replies]

    def _answer(self, message: Message, tensors: Columns) -> list[tuple[Message, Columns | None]]:
        if isinstance(message, Hello):
            return [(self._welcome(message), None)]
        if not self._token:
            raise ProtocolError(ERR_HELLO, "this connection is not known; say HELLO first")
        if isinstance(message, Step):
            return self._act(message, tensors)
        if isinstance(message, Ping):
            return [(Pong(id=message.id, policies=("learner",)), None)]
        if isinstance(message, Close):
            self._token = ""
            self._next_step.clear()
        return []

    def _welcome(self, hello: Hello) -> Welcome:
        if hello.protocol != PROTOCOL:
            raise ProtocolError(ERR_VERSION, f"this server speaks {PROTOCOL}; got {hello.protocol[:40]!r}")
        if self._fingerprint and hello.spec_fingerprint != self._fingerprint:
            raise ProtocolError(
                ERR_SPEC,
                f"this server plays {self._spec.name} with spec {self._fingerprint}; "
                f"got {hello.spec_fingerprint[:40]!r}",
            )
        resumed = bool(self._token) and hello.token == self._token
        if not resumed:
            self._token = secrets.token_hex(16)
            self._next_step.clear()
        spec = self._spec
        return Welcome(
            protocol=PROTOCOL, token=self._token, resumed=resumed, game=spec.name,
            observation_size=spec.observation_size, num_actions=spec.num_actions,
            observation_dtype=spec.observation_dtype, policies=("learner",),
            limits={"rows_per_step": ROWS_PER_STEP, "sessions": ROWS_PER_STEP},
        )  # fmt: skip

    def _act(self, message: Step, tensors: Columns) -> list[tuple[Message, Columns | None]]:
        columns = check_columns(tensors, self._spec)
        actions: list[tuple[int, int, float]] = []  # (row, action, log_prob)
        replies: list[tuple[Message, Columns | None]] = []
        for row in range(len(columns["kind"])):
            try:
                self._check_row(row, columns, message.policies)
            except ProtocolError as error:
                replies.append((Error(code=error.code, message=str(error), id=message.id, rows=(row,)), None))
                continue
            legal = np.flatnonzero(columns["mask"][row]) if columns["kind"][row] == DECISION else np.array([-1])
            actions.append((row, int(self._rng.choice(legal)), -float(np.log(len(legal)))))
        if actions:
            replies.insert(0, (Actions(id=message.id), _action_columns(actions)))
        return replies

    def _check_row(self, row: int, columns: Columns, policies: tuple[str, ...]) -> None:
        """Raises ProtocolError. Tracks the next step of every session."""
        env, seat, episode, step, attempt = columns["keys"][row].tolist()
        kind, start = int(columns["kind"][row]), bool(columns["flags"][row] & START)
        _check_values(row, columns, policies)
        key = (env, seat, episode)
        due = self._next_step.get(key)
        if start and kind == DECISION:
            if step != 0:
                raise ProtocolError(ERR_ORDER, f"START is at step 0; got step {step}")
            self._next_step = {k: v for k, v in self._next_step.items() if k[:2] != (env, seat)}
        elif due is None:
            raise ProtocolError(ERR_NO_SESSION, f"env {env} seat {seat} has no live session of episode {episode}")
        elif kind != ABORTED and step != due and not (step == due - 1 and kind == DECISION):
            raise ProtocolError(ERR_ORDER, f"expected step {due}; got step {step}, attempt {attempt}")
        if kind == DECISION:
            self._next_step[key] = step + 1
        else:
            self._next_step.pop(key, None)


def check_columns(tensors: Columns, spec: GameSpec) -> Columns:
    """The tensors of a STEP, checked for dtypes and shapes. Raises ProtocolError."""
    expect_only(tensors, STEP_TENSORS)
    n = len(expect(tensors, "keys", "int64", (None, 5)))
    if n > ROWS_PER_STEP:
        raise ProtocolError(ERR_LIMIT, f"{n} rows; at most {ROWS_PER_STEP} in one STEP")
    for name, dtype, shape in (
        ("kind", "uint8", (n,)), ("flags", "uint8", (n,)), ("reward", "float32", (n,)),
        ("observation", spec.observation_dtype, (n, spec.observation_size)),
        ("mask", "uint8", (n, spec.num_actions)), ("policy", "uint8", (n,)),
    ):  # fmt: skip
        expect(tensors, name, dtype, shape)
    return tensors


def _check_values(row: int, columns: Columns, policies: tuple[str, ...]) -> None:
    keys, kind, mask = columns["keys"][row], int(columns["kind"][row]), columns["mask"][row]
    if (np.abs(keys) >= 1 << 40).any() and (keys.byteswap() < 1 << 40).all():
        raise ProtocolError(ERR_VALUE, f"the keys {keys.tolist()} look byte-swapped; numbers are little-endian")
    if kind > ABORTED:
        raise ProtocolError(ERR_VALUE, f"kind {kind} is unknown")
    if columns["flags"][row] > FLAGS:
        raise ProtocolError(ERR_VALUE, f"flags {columns['flags'][row]}; expected a sum of 1, 2 and 4")
    if not np.isfinite(columns["reward"][row]):
        raise ProtocolError(ERR_VALUE, "the reward is not finite")
    if kind in (DECISION, TRUNCATED) and not np.isfinite(columns["observation"][row]).all():
        raise ProtocolError(ERR_VALUE, "the observation holds NaN or infinity")
    if kind == DECISION and (not mask.any() or mask.max() > 1):
        raise ProtocolError(ERR_MASK, f"the mask is {mask.tolist()}")
    index = int(columns["policy"][row])
    if columns["flags"][row] & START and (index >= len(policies) or policies[index] != "learner"):
        raise ProtocolError(ERR_POLICY, f"policy {index} of {list(policies)}; this server has only `learner`")


def _action_columns(actions: list[tuple[int, int, float]]) -> Columns:
    rows, chosen, log_probs = zip(*actions)
    return {
        "row": np.array(rows, np.int32),
        "action": np.array(chosen, np.int32),
        "log_prob": np.array(log_probs, np.float32),
        "value": np.zeros(len(rows), np.float32),
        "policy_version": np.array([VERSION if action >= 0 else -1 for action in chosen], np.int64),
    }


def _accepted_line(reply: Message) -> str:
    return f"  valid: answered with {type(reply).__name__.upper()}"


CARTPOLE = GameSpec("mock", observation_size=4, num_actions=2)


def listen(endpoint: str, run_dir: str | None, *, spec: str | None) -> int:
    """Print every message, frame by frame, until Ctrl-C.

    Args:
        run_dir: the run whose game it offers; None: a game of CartPole's size.
        spec: the only spec fingerprint accepted; default: the run's, or any where there is no run.
    """
    game = _spec_of(run_dir) if run_dir else CARTPOLE
    fingerprint = spec or (game.fingerprint() if run_dir else "")
    signals = Signals()
    with RouterSocket(endpoint) as socket:
        sys.stdout.write(
            f"listening at {endpoint} as a server of {game.name}: observation {game.observation_dtype}"
            f"[{game.observation_size}], {game.num_actions} actions, spec {fingerprint or '(any)'}. Ctrl-C ends it.\n"
        )
        sys.stdout.flush()
        signals.install()
        try:
            _serve(socket, game, fingerprint, signals)
        finally:
            signals.restore()
    return 0


def _serve(socket: RouterSocket, game: GameSpec, fingerprint: str, signals: Signals) -> None:
    clients: dict[bytes, MockServer] = {}
    poller = Poller([socket])
    number = 0
    while not signals.stop:
        while (received := socket.receive()) is not None:
            peer, frames = received
            number += 1
            client = clients.setdefault(peer, MockServer(game, fingerprint))
            lines, replies = client.handle(frames)
            place = list(clients).index(peer) + 1
            sys.stdout.write("\n".join([f"message {number}, connection {place}", *lines, ""]))
            sys.stdout.flush()
            for reply in replies:
                socket.send(peer, reply)
        poller.wait(0.2)


def _spec_of(run_dir: str) -> GameSpec:
    try:
        return RunDir(Path(run_dir)).read_spec()
    except (OSError, msgspec.DecodeError) as error:
        raise ConfigError(f"{run_dir} is no run directory: its spec.json cannot be read ({error}).") from None
