"""Client of the control socket of a running inference server; `simul policies` uses it."""

from __future__ import annotations

import time
from pathlib import Path

import msgspec

from simul.common.errors import ConfigError, InferenceError
from simul.common.protocol.codec import Codec, encode
from simul.common.protocol.messages import (
    FROM_CONTROL,
    TO_CONTROL,
    ControlAnswer,
    ListPolicies,
    LoadPolicy,
    Shutdown,
    UnloadPolicy,
)
from simul.common.role.run_directory import RunDir
from simul.common.transport import DealerSocket, Poller

ANSWER_SEC = 60.0  # the server reads, verifies, builds and warms up a policy before it answers


class ControlClient:
    """One request at a time. Use as a context manager. `server`: index of the inference server."""

    def __init__(self, run_dir: RunDir, timeout_sec: float = ANSWER_SEC, *, server: int = 0) -> None:
        self._run_dir = run_dir
        self._server = server
        self._timeout_sec = timeout_sec
        self._token = run_dir.token()
        self._codec: Codec[ControlAnswer] = Codec(FROM_CONTROL)

    def __enter__(self) -> ControlClient:
        self._socket = DealerSocket(
            self._run_dir.endpoint("control", self._server), keys=self._run_dir.keys_to_connect("control")
        )
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def load(self, name: str, checkpoint: Path, *, trust: bool = False) -> ControlAnswer:
        """Serve a checkpoint directory under `name`; `trust`: run the class that it names. Raises as `ask`."""
        return self.ask(LoadPolicy(name=name, checkpoint=str(checkpoint.absolute()), trust=trust))

    def unload(self, name: str, *, drain: bool = False) -> ControlAnswer:
        """Stop serving `name`; with `drain`, after its sessions have ended. Raises as `ask`."""
        return self.ask(UnloadPolicy(name=name, drain=drain))

    def policies(self) -> ControlAnswer:
        """The policies served now. Raises as `ask`."""
        return self.ask(ListPolicies())

    def shut_down(self) -> ControlAnswer:
        """Request the server to answer waiting requests and stop. Raises as `ask`."""
        return self.ask(Shutdown())

    def ask(self, message: TO_CONTROL) -> ControlAnswer:
        """The server's answer.

        Raises:
            ConfigError: the server refused, with its reason.
            InferenceError: no answer in time.
        """
        self._socket.send(encode(msgspec.structs.replace(message, token=self._token)))
        poller, deadline = Poller([self._socket]), time.monotonic() + self._timeout_sec
        while time.monotonic() < deadline:
            frames = self._socket.receive()
            if frames is None:
                poller.wait(0.05)
                continue
            answer, _ = self._codec.decode(frames)
            if not answer.ok:
                raise ConfigError(answer.text)
            return answer
        raise InferenceError(
            "ERR_TIMEOUT",
            f"inference server {self._server} of {self._run_dir.root} did not answer in {self._timeout_sec:g} s",
        )
