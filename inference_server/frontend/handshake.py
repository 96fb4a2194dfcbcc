"""The handshake: checks HELLO against protocol and game spec, answers with WELCOME."""

from __future__ import annotations

from simul.common.errors import ERR_SPEC, ERR_STALE_RUN, ERR_VALUE, ERR_VERSION, ProtocolError, StaleRunError
from simul.common.protocol.messages import PROTOCOL, Hello, Welcome
from simul.common.protocol.specs import ASKED, GameSpec
from simul.inference_server.base.granted_memory import ClientMemory
from simul.inference_server.policies.table import PolicyTable
from simul.inference_server.sessions.clients import Client, ClientTable

MAX_NAME = 64  # characters of a client's declared name
MAX_ECHO = 40  # characters of a client's text that an answer repeats


class SpecQuery(ProtocolError):
    """A client asks for the server's spec (fingerprint `?`): answered as a refusal, not counted as one."""


class Handshake:
    """Admits clients. `memory_bytes`: shared memory for a client that asks for it; 0: none."""

    def __init__(
        self, spec: GameSpec, clients: ClientTable, policies: PolicyTable, limits: dict[str, int], memory_bytes: int
    ) -> None:
        self._spec = spec
        self._clients = clients
        self._policies = policies
        self._limits = limits
        self._memory_bytes = memory_bytes

    def accept(self, peer: bytes, hello: Hello, now: float) -> tuple[Welcome, list[Client]]:
        """The answer to HELLO, and the clients whose lives it ends.

        Raises:
            ProtocolError: the client speaks or plays something else, holds another run's training token, or is older
                than one that is here.
        """
        self._check(hello)
        if not peer.startswith(b"\0"):  # as those begin that libzmq gives
            raise ProtocolError(ERR_VALUE, "the socket has a routing id that you chose; others could take it: set none")
        self._clients.check_training_token(hello.training_token)  # also for a client that resumes
        ended: list[Client] = []
        client = self._clients.find_same_run(peer, hello.client, hello.run_id)
        if client is None and hello.token:
            client = self._clients.resume(hello.token, peer, now)
        resumed = client is not None
        if client is None:
            try:
                client, ended = self._clients.register_client(
                    hello.client, hello.run_id, hello.training_token, peer, now
                )
            except StaleRunError as error:
                raise ProtocolError(ERR_STALE_RUN, str(error)) from None
        client.confirmed = client.confirmed or hello.token == client.token
        if hello.shared_memory and client.memory is None:
            client.memory = self._memory()
        welcome = Welcome(
            protocol=PROTOCOL,
            token=client.token,
            resumed=resumed,
            game=self._spec.name,
            observation_size=self._spec.observation_size,
            num_actions=self._spec.num_actions,
            observation_dtype=self._spec.observation_dtype,
            policies=self._policies.names,
            limits=self._limits,
            shared_memory=client.memory.grant if hello.shared_memory and client.memory is not None else None,
            progress=self._policies.progress if client.training else 0.0,
        )
        return welcome, ended

    def _check(self, hello: Hello) -> None:
        if hello.protocol != PROTOCOL:
            raise ProtocolError(ERR_VERSION, f"this server speaks {PROTOCOL}; got {hello.protocol[:MAX_ECHO]!r}")
        fingerprint = self._spec.fingerprint()
        if hello.spec_fingerprint != fingerprint:
            kind = SpecQuery if hello.spec_fingerprint == ASKED else ProtocolError
            raise kind(
                ERR_SPEC,
                f"this server plays {self._spec.name} with spec {fingerprint}; "
                f"got {hello.spec_fingerprint[:MAX_ECHO]!r}",
            )
        if not 1 <= len(hello.client) <= MAX_NAME or not hello.client.isprintable():
            raise ProtocolError(ERR_VALUE, f"a client's name has 1 to {MAX_NAME} printable characters")

    def _memory(self) -> ClientMemory | None:
        """None if the system has none to give: the client then sends its observations as tensors."""
        try:
            return ClientMemory(self._memory_bytes) if self._memory_bytes else None
        except OSError:
            return None
