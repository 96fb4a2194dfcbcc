"""`simul connect`: connects to a server as a client would, step by step; says what is wrong and how to fix it."""

from __future__ import annotations

import re
import statistics
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar, get_args

import msgspec
import numpy as np

from simul.common.client.steps import pack_step
from simul.common.errors import ERR_SPEC, ConfigError, SimulError
from simul.common.protocol.codec import Codec, encode
from simul.common.protocol.decisions import Decision
from simul.common.protocol.error_hints import explain_error
from simul.common.protocol.messages import (
    PROTOCOL,
    START,
    TERMINATED,
    TO_CLIENT,
    Actions,
    Close,
    Error,
    Hello,
    Message,
    Ping,
    Pong,
    Welcome,
)
from simul.common.protocol.specs import ASKED, GameSpec, WireDtype, random_observations
from simul.common.role.run_lock import choose_run
from simul.common.runtime.terminal_text import print_text, printable
from simul.common.transport import ClientKeys, DealerSocket, Poller, client_keys, connectable, explain_silence

ANSWER_SEC = 3.0
PINGS = 20
M = TypeVar("M", bound=Message)
_FINGERPRINT = re.compile(r"with spec ([0-9a-f]{16})")


class CheckFailed(SimulError):
    """A step of the check failed; the sentence says why. Caught by `check_connection`: printed, exit code 1."""


def check_connection(target: str | None, *, keys: Path | None, spec: str | None) -> int:
    """Check `target`: an endpoint, a run directory, or None for the active run. Exit code 0: every step succeeded.

    Args:
        keys: folder of the client's CURVE keys.
        spec: the spec fingerprint that the client under test sends; default: the server's own.
    """
    endpoint, known, run_keys = find_endpoint(target)
    keys = keys or run_keys
    check = _ConnectionCheck(endpoint, client_keys(keys) if keys else None)
    try:
        check.run(spec or known)
    except CheckFailed as error:
        _say(f"failed: {error}")
        return 1
    finally:
        check.close()
    _say("All is well: a client that does the same is served.")
    return 0


def find_endpoint(target: str | None) -> tuple[str, str, Path | None]:
    """(endpoint, spec fingerprint or "", folder of CURVE keys or None). Raises ConfigError."""
    if target is not None and "://" in target:
        return target, "", None
    run_dir = choose_run(Path(target) if target else None, active_only=target is None)
    if not run_dir.has_started():
        raise ConfigError(
            f"{run_dir.root} is no run directory (no config.yaml and spec.json): expected one, or an endpoint like "
            "tcp://127.0.0.1:5555."
        )
    server, fingerprint = run_dir.read_config().server, run_dir.read_spec().fingerprint()
    keys = Path(server.curve_keys) if server.curve_keys else None
    return connectable(server.endpoint) or run_dir.endpoint("data"), fingerprint, keys


class _ConnectionCheck:
    """One connection to a server, used step by step."""

    def __init__(self, endpoint: str, keys: ClientKeys | None) -> None:
        self._endpoint = endpoint
        self._with_keys = keys is not None
        self._socket = DealerSocket(endpoint, keys=keys, watch=True)
        self._poller = Poller([self._socket])
        self._codec: Codec[TO_CLIENT] = Codec(TO_CLIENT)

    def close(self) -> None:
        """Send CLOSE and close the socket."""
        self._socket.send(encode(Close()))
        self._socket.close()

    def run(self, fingerprint: str) -> None:
        """All steps. Raises CheckFailed."""
        _say(f"connecting to {self._endpoint}" + (" with CURVE keys" if self._with_keys else ""))
        welcome = self._hello(fingerprint)
        _say(
            f"game: {welcome.game}, observation {welcome.observation_dtype}[{welcome.observation_size}], "
            f"{welcome.num_actions} actions; policies: {', '.join(welcome.policies)}"
        )
        _say("limits: " + ", ".join(f"{name} {value}" for name, value in sorted(welcome.limits.items())))
        self._ping()
        self._play(welcome)

    def _hello(self, fingerprint: str) -> Welcome:
        asked = not fingerprint
        hello = Hello(
            protocol=PROTOCOL, client="simul-connect", run_id=time.time_ns(), spec_fingerprint=fingerprint or ASKED
        )
        answer = self._ask(hello)
        if isinstance(answer, Error) and answer.code == ERR_SPEC and not fingerprint:
            found = _FINGERPRINT.search(answer.message)
            if found is None:
                raise CheckFailed(explain_error(answer))
            fingerprint = found.group(1)
            answer = self._ask(msgspec.structs.replace(hello, spec_fingerprint=fingerprint))
        welcome = _expected(answer, Welcome)
        note = ", which it was asked for: check that the game below is the one that your client plays" if asked else ""
        _say(f"WELCOME: protocol {welcome.protocol}, spec fingerprint {fingerprint}{note}")
        return welcome

    def _ping(self) -> None:
        took = []
        for number in range(PINGS):
            began = time.perf_counter()
            pong = _expected(self._ask(Ping(id=number)), Pong)
            took.append((time.perf_counter() - began) * 1e6)
        _say(f"PING: {statistics.median(took):.0f} us in the median of {PINGS}, {max(took):.0f} us at most")
        if not pong.ready:
            raise CheckFailed("the server is not ready: it has no weights yet. Fix: try again when it has.")

    def _play(self, welcome: Welcome) -> None:
        """A session of START, one more step and END, with random observations."""
        rng = np.random.default_rng()
        spec = _spec_of(welcome)
        for step, kind in enumerate((0, 0, TERMINATED)):
            decision = Decision(
                env=0, seat=0, episode=0, step=step, kind=kind, flags=0 if step else START,
                observation=random_observations(spec, 1, rng)[0],
                mask=np.ones(spec.num_actions, np.uint8), policy=welcome.policies[0],
            )  # fmt: skip
            message, tensors = pack_step(step, [decision], spec)
            began = time.perf_counter()
            answer = self._ask(message, tensors)
            took = (time.perf_counter() - began) * 1e6
            _expected(answer, Actions)
            action, log_prob = self._tensors["action"].item(), self._tensors["log_prob"].item()
            name = "START" if step == 0 else "END" if kind else "STEP"
            version = self._tensors["policy_version"].item()
            what = "acknowledged" if kind else f"action {action}, log_prob {log_prob:.3f}, policy_version {version}"
            _say(f"{name}: {what} ({took:.0f} us)")

    def _ask(self, message: Message, tensors: Mapping[str, Any] | None = None) -> Message:
        """Send a message; returns the next one that comes. Raises CheckFailed after ANSWER_SEC."""
        self._socket.send(encode(message, tensors))
        deadline = time.monotonic() + ANSWER_SEC
        while (frames := self._socket.receive()) is None:
            if time.monotonic() > deadline:
                words = explain_silence(self._socket.connection_state(), with_keys=self._with_keys)
                raise CheckFailed(f"no answer within {ANSWER_SEC:g} s: {words}")
            self._poller.wait(0.1)
        answer, self._tensors = self._codec.decode(frames)
        return answer


def _expected(answer: Message, kind: type[M]) -> M:
    if isinstance(answer, Error):
        raise CheckFailed(explain_error(answer))
    if not isinstance(answer, kind):
        raise CheckFailed(f"expected {kind.__name__.upper()}, got {type(answer).__name__.upper()}")
    return answer


def _spec_of(welcome: Welcome) -> GameSpec:
    try:
        dtype = msgspec.convert(welcome.observation_dtype, WireDtype)
    except msgspec.ValidationError:
        raise CheckFailed(
            f"the server names the observation dtype {welcome.observation_dtype!r}; expected one of "
            f"{', '.join(get_args(WireDtype))}"
        ) from None
    return GameSpec(welcome.game, welcome.observation_size, welcome.num_actions, dtype)


def _say(line: str) -> None:
    print_text(printable(line))
