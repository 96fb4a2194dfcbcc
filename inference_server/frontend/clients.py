"""Who is connected. No sockets; time comes in as an argument."""

from __future__ import annotations

import hmac
import math
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field

from simul.common.protocol.errors import ERR_CAPACITY, ERR_DENIED, ProtocolError, StaleRunError
from simul.inference_server.frontend.shared_memory import SharedMemory
from simul.inference_server.sessions.seat_index import SeatMap

MOST_ENDINGS = 1000


@dataclass(eq=False)
class Client:
    """One client's life: its declared name, its secret token, and where to answer."""

    name: str
    run_id: int
    token: str
    peer: bytes
    training: bool
    heard_at: float
    confirmed: bool = False  # WELCOME has reached it: it sent something else than HELLO, or showed its token
    seats: SeatMap = field(default_factory=SeatMap)  # its live sessions
    memory: SharedMemory | None = None  # where it lays its observations
    replies_lost: int = 0  # in a row, because it does not read
    endings: dict[tuple[int, int, int], str] = field(default_factory=dict)  # why sessions ended that it did not end

    def remember(self, session: tuple[int, int, int], why: str) -> None:
        """Its session (env, seat, episode) was ended for it. The latest thousand are remembered."""
        self.endings.pop(session, None)
        self.endings[session] = why
        if len(self.endings) > MOST_ENDINGS:
            del self.endings[next(iter(self.endings))]


class ClientTable:
    """Clients by token, by name and by routing id. Where there are `most`, only training clients are let in."""

    def __init__(self, training_token: str, most: float = math.inf) -> None:
        self._training_token = training_token.encode()
        self._most = most
        self._by_token: dict[str, Client] = {}
        self._by_name: dict[tuple[str, bool], Client] = {}  # and by training: a stranger ends no life but a stranger's
        self._by_peer: dict[bytes, Client] = {}

    def __len__(self) -> int:
        return len(self._by_token)

    def __iter__(self) -> Iterator[Client]:
        return iter(list(self._by_token.values()))

    def of_peer(self, peer: bytes) -> Client | None:
        """The client behind a routing id."""
        return self._by_peer.get(peer)

    def same_life(self, peer: bytes, name: str, run_id: int) -> Client | None:
        """The client that said this very HELLO before on this connection."""
        client = self._by_peer.get(peer)
        return client if client is not None and (client.name, client.run_id) == (name, run_id) else None

    def resume(self, token: str, peer: bytes, now: float) -> Client | None:
        """The client that holds `token`, now answered at `peer`; None where the token is unknown.

        Found by its hash, which is keyed anew in every process: the time it takes says nothing about other tokens.
        """
        client = self._by_token.get(token)
        if client is None:
            return None
        self._by_peer.pop(client.peer, None)
        client.peer, client.heard_at = peer, now
        self._by_peer[peer] = client
        return client

    def trusts(self, training_token: str) -> bool:
        """Whether it is the run's. None at all is a stranger's. Raises ProtocolError ERR_DENIED: it is another one."""
        if not training_token:
            return False
        if not hmac.compare_digest(training_token.encode(), self._training_token):
            raise ProtocolError(
                ERR_DENIED,
                "the training token is not this run's; expected what the run directory's file `token` holds, or none: "
                "without it a client is served, and not learned from",
            )
        return True

    def open(self, name: str, run_id: int, training_token: str, peer: bytes, now: float) -> tuple[Client, list[Client]]:
        """A new client, and those that it ends: the older life of the same name, whoever had this connection.

        An equal run_id ends a life only where WELCOME may have been lost with its connection: it has no token to show.
        Who holds the training token and who does not are different people, whatever their names.

        Raises:
            StaleRunError: a newer life of the same name is here already, or this very one, whose token is not shown.
            ProtocolError: ERR_CAPACITY, all places are taken; ERR_DENIED, the training token is another run's.
        """
        training = self.trusts(training_token)
        older = self._by_name.get((name, training))
        if older is not None and older.run_id > run_id:
            raise StaleRunError(f"client {name!r} has run_id {older.run_id} already; {run_id} is an older life")
        if older is not None and older.run_id == run_id and older.confirmed:
            raise StaleRunError(
                f"client {name!r} with run_id {run_id} is here already; expected its token to come back as it, or a "
                "higher run_id to replace it"
            )
        ended = [client for client in {older, self._by_peer.get(peer)} if client is not None]
        if not training and len(self) - len(ended) >= self._most:
            raise ProtocolError(ERR_CAPACITY, f"{len(self)} clients are here, the limit; come again when one has left")
        for client in ended:
            self.forget(client)
        client = Client(name, run_id, secrets.token_hex(16), peer, training, now)
        self._by_token[client.token] = self._by_name[name, training] = self._by_peer[peer] = client
        return client, ended

    def forget(self, client: Client) -> None:
        """Remove a client; its sessions are the caller's to end."""
        self._by_token.pop(client.token, None)
        if client.memory is not None:
            client.memory.close()
        if self._by_name.get((client.name, client.training)) is client:
            del self._by_name[client.name, client.training]
        if self._by_peer.get(client.peer) is client:
            del self._by_peer[client.peer]

    def silent(self, since: float) -> list[Client]:
        """Clients not heard of after `since`."""
        return [client for client in self._by_token.values() if client.heard_at < since]
