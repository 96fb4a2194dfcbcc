"""The control socket: policies come and go, and the server is asked to stop. Only the run's owner can reach it."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from logging import Logger
from pathlib import Path

from simul.common.errors import CheckpointError, ConfigError, ProtocolError, WeightsError
from simul.common.protocol.codec import Codec, Frame, encode
from simul.common.protocol.messages import (
    TO_CONTROL,
    ControlAnswer,
    ListPolicies,
    LoadPolicy,
    PolicyFacts,
    Shutdown,
    UnloadPolicy,
)
from simul.common.role.run_directory import is_run_token
from simul.common.transport import RouterSocket
from simul.inference_server.base.faults import record_fault
from simul.inference_server.base.statistics import Statistics
from simul.inference_server.policies.table import NamedPolicy, PolicyTable
from simul.inference_server.sessions.table import SessionTable

MOST_AT_ONCE = 20  # requests, after which clients have their turn
DENIED = "expected the run's token, which the file `token` of its run directory holds; nothing was done"
TOLD = "the server failed on this request, by a fault of its own; its log says more"


class Control:
    """Answers requests between two batches; a policy is read, verified and warmed up on a thread of its own."""

    def __init__(
        self,
        socket: RouterSocket,
        token: str,
        policies: PolicyTable,
        sessions: SessionTable,
        statistics: Statistics,
        log: Logger,
    ) -> None:
        """`token`: the run's, which every request has to carry."""
        self.socket = socket
        self.shutdown = False
        self._token = token
        self._policies = policies
        self._sessions = sessions
        self._statistics = statistics
        self._log = log
        self._codec: Codec[TO_CONTROL] = Codec(TO_CONTROL)
        self._builder = ThreadPoolExecutor(1, thread_name_prefix="policy-builder")
        self._building: list[tuple[bytes, str, Future[NamedPolicy]]] = []

    def poll(self) -> None:
        """Answer some of what came; serve the policies that are ready."""
        for _ in range(MOST_AT_ONCE):
            received = self.socket.receive()
            if received is None:
                break
            peer, frames = received
            try:
                self._answer_request(peer, frames)
            except Exception as error:  # noqa: BLE001 a defect costs this request, not the loop
                record_fault(error, self._statistics)
                self._refuse(peer, TOLD)
        for item in [item for item in self._building if item[2].done()]:
            self._building.remove(item)
            self._add_policy(*item)

    def close(self) -> None:
        """Close the socket; a policy that is being built is given up."""
        self._builder.shutdown(wait=True, cancel_futures=True)
        self.socket.close()

    def _answer_request(self, peer: bytes, frames: list[Frame]) -> None:
        try:
            message, _ = self._codec.decode(frames)
        except ProtocolError as error:
            return self._refuse(peer, str(error))
        if not is_run_token(message.token, self._token):
            return self._refuse(peer, DENIED)
        try:
            self._handle(peer, message)
        except (ProtocolError, ConfigError) as error:
            self._answer(peer, False, str(error))

    def _refuse(self, peer: bytes, text: str) -> None:
        """Answer a request without a valid token: no policy is named."""
        self._send(peer, ControlAnswer(ok=False, text=text, policies=()))

    def _handle(self, peer: bytes, message: TO_CONTROL) -> None:
        if isinstance(message, LoadPolicy):
            self._policies.check_free(message.name)
            if any(name == message.name for _, name, _ in self._building):
                raise ConfigError(f"The policy {message.name!r} is being loaded already.")
            folder = Path(message.checkpoint)
            build = partial(self._policies.build_external, message.name, folder, trusted=message.trust)
            self._building.append((peer, message.name, self._builder.submit(build)))
        elif isinstance(message, UnloadPolicy):
            bound = self._sessions.bound_to(message.name)
            self._policies.unload(message.name, 0 if message.drain else bound)
            left = f"; {bound} sessions play on with it to their end" if bound else ""
            self._answer(peer, True, f"{message.name} takes no new sessions{left}")
        elif isinstance(message, ListPolicies):
            self._answer(peer, True, "")
        else:
            assert isinstance(message, Shutdown)
            self.shutdown = True
            self._answer(peer, True, "the server answers what waits and stops")

    def _add_policy(self, peer: bytes, name: str, future: Future[NamedPolicy]) -> None:
        try:
            policy = future.result()
            self._policies.check_free(name)
            self._policies.add_policy(policy)
        except (CheckpointError, ConfigError, WeightsError) as error:
            self._answer(peer, False, str(error))
        except Exception as error:  # noqa: BLE001 - a user's own network may raise anything while it is built
            self._log.exception("policy %s could not be built", name)
            self._answer(peer, False, f"The network of {name} could not be built: {type(error).__name__}: {error}")
        else:
            self._log.info("policy %s version %d is served", name, policy.version)
            self._answer(peer, True, f"{name} is served at version {policy.version}")

    def _answer(self, peer: bytes, ok: bool, text: str) -> None:
        facts = tuple(
            PolicyFacts(
                name=policy.name,
                policy_version=policy.version,
                sessions=self._sessions.bound_to(policy.name),
                source=policy.source,
                open=not policy.retired_at,
                memory=policy.engine.state_size > 0,
            )
            for policy in self._policies
        )
        self._send(peer, ControlAnswer(ok=ok, text=text, policies=facts))

    def _send(self, peer: bytes, answer: ControlAnswer) -> None:
        try:
            self.socket.send(peer, encode(answer))
        except Exception as error:  # noqa: BLE001 the answer is lost, as one to a peer that is gone
            record_fault(error, self._statistics)
