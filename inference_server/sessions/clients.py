"""Clients, and what each of them holds: its seats' slots and its rows in flight. Pure; time is an argument."""

from __future__ import annotations

import hmac
import math
import secrets
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from simul.common.errors import ERR_CAPACITY, ERR_DENIED, ProtocolError, StaleRunError
from simul.common.runtime.compiled import INT64, column, compiled, read
from simul.inference_server.base.granted_memory import ClientMemory

NO_SLOT = -1  # as an index: the table's last slot, which no session owns
MOST_CELLS = 65_536  # of the dense array; a client that numbers its envs from 10**9 costs no more than its sessions
MAX_RETRY_MS = 1000
MAX_CLOSED_SESSIONS = 1000


class SeatIndex:
    """(env, seat) -> slot of one client's live sessions; NO_SLOT where there is none."""

    def __init__(self) -> None:
        self._dense = np.full((1, 1), NO_SLOT)
        self._others: dict[tuple[int, int], int] = {}
        self._used: set[int] = set()

    def __len__(self) -> int:
        return len(self._used)

    @property
    def slots(self) -> list[int]:
        """Slots of every live session, lowest first."""
        return sorted(self._used)

    def get(self, env: int, seat: int) -> int:
        """The slot of one seat."""
        envs, seats = self._dense.shape
        if 0 <= env < envs and 0 <= seat < seats:
            return int(self._dense[env, seat])
        return self._others.get((env, seat), NO_SLOT)

    def guess_slots(self, keys: NDArray[np.int64]) -> NDArray[np.int64]:
        """Slots int64 [N] for rows of `keys` int64 [N, 5] (env, seat, ...).

        A guess: where env or seat lie outside the dense array it may be another seat's slot, so that the caller must
        compare. Rows of the same seat always get the same guess.
        """
        slots = np.empty(len(keys), np.int64)
        _look_up(keys, self._dense, slots)
        if self._others:
            for i, key in enumerate(map(tuple, keys[:, :2].tolist())):
                slots[i] = self._others.get(key, slots[i])
        return slots

    def add_seat(self, env: int, seat: int, slot: int) -> None:
        """Set the slot of a seat that had none."""
        self._used.add(slot)
        if self._reach(env, seat):
            self._dense[env, seat] = slot
        else:
            self._others[env, seat] = slot

    def remove_seat(self, env: int, seat: int) -> None:
        """Remove a seat."""
        self._used.discard(self.get(env, seat))
        if (env, seat) in self._others:
            del self._others[env, seat]
        else:
            self._dense[env, seat] = NO_SLOT

    def clear(self) -> None:
        """Remove every seat."""
        self._dense.fill(NO_SLOT)
        self._others.clear()
        self._used.clear()

    def _reach(self, env: int, seat: int) -> bool:
        """Grow the dense array, where that is cheap, so that it has a cell for the seat."""
        envs, seats = self._dense.shape
        if 0 <= env < envs and 0 <= seat < seats:
            return True
        shape = (_power_of_two(max(envs, env + 1)), _power_of_two(max(seats, seat + 1)))
        if env < 0 or seat < 0 or shape[0] * shape[1] > MOST_CELLS:
            return False
        grown = np.full(shape, NO_SLOT)
        grown[:envs, :seats] = self._dense
        self._dense = grown
        for key in [key for key in self._others if 0 <= key[0] < shape[0] and 0 <= key[1] < shape[1]]:
            self._dense[key] = self._others.pop(key)
        return True


@compiled(read(INT64, 2), read(INT64, 2), column(INT64))
def _look_up(keys: NDArray[np.int64], dense: NDArray[np.int64], slots: NDArray[np.int64]) -> None:
    envs, seats = dense.shape
    for i in range(len(keys)):
        slots[i] = dense[max(0, min(keys[i, 0], envs - 1)), max(0, min(keys[i, 1], seats - 1))]


def _power_of_two(n: int) -> int:
    return 1 << (n - 1).bit_length()


class InFlight:
    """Rows that were admitted and are not answered yet."""

    def __init__(self, limit: int, client_limit: int, max_batch: int, without_token_limit: int | None = None) -> None:
        """`without_token_limit`: of all clients without the training token together; None: `limit`."""
        self.total = self._without_token = 0
        self.limit = limit
        self.client_limit = client_limit
        self.max_rows_of_message = min(limit, client_limit)  # of one message: more could never be admitted
        self.without_token_limit = limit if without_token_limit is None else without_token_limit
        self.last_batch_sec = 0.001
        self._max_batch = max_batch
        self._rows: Counter[Client] = Counter()

    def has_room(self, client: Client, rows: int) -> bool:
        """Whether `rows` more of a client may be admitted."""
        if not client.training and self._without_token + rows > self.without_token_limit:
            return False
        return self._rows[client] + rows <= self.client_limit and self.total + rows <= self.limit

    def add(self, client: Client, rows: int) -> None:
        """Rows were admitted."""
        self._rows[client] += rows
        self.total += rows
        self._without_token += 0 if client.training else rows

    def remove(self, client: Client, rows: int) -> None:
        """Rows were taken for a batch."""
        self._rows[client] -= rows
        self.total -= rows
        self._without_token -= 0 if client.training else rows
        if not self._rows[client]:
            del self._rows[client]

    def of(self, client: Client) -> int:
        """Rows of one client."""
        return self._rows[client]

    def retry_after_ms(self) -> int:
        """When what waits now will have been answered, going by the last batch: 1 to 1000 ms."""
        batches = self.total // self._max_batch + 1
        return min(MAX_RETRY_MS, math.ceil(batches * self.last_batch_sec * 1000))


@dataclass(eq=False)
class Client:
    """One run of a client: declared name, secret token, and the routing id for replies."""

    name: str
    run_id: int
    token: str
    peer: bytes
    training: bool
    heard_at: float
    confirmed: bool = False  # WELCOME has reached it: it sent something else than HELLO, or showed its token
    seats: SeatIndex = field(default_factory=SeatIndex)  # its live sessions
    memory: ClientMemory | None = None  # where it lays its observations
    replies_lost: int = 0  # in a row, because it does not read
    closed_sessions: dict[tuple[int, int, int], str] = field(
        default_factory=dict
    )  # why sessions ended that it did not end

    def remember_closed(self, session: tuple[int, int, int], why: str) -> None:
        """Keep why the server closed a session (env, seat, episode); the latest thousand are kept."""
        self.closed_sessions.pop(session, None)
        self.closed_sessions[session] = why
        if len(self.closed_sessions) > MAX_CLOSED_SESSIONS:
            del self.closed_sessions[next(iter(self.closed_sessions))]


class ClientTable:
    """Clients by token, by name and by routing id. With `most` of them, only training clients are admitted."""

    def __init__(self, training_token: str, most: float = math.inf) -> None:
        self._training_token = training_token.encode()
        self._most = most
        self._by_token: dict[str, Client] = {}
        self._by_name: dict[tuple[str, bool], Client] = {}  # (name, training)
        self._by_peer: dict[bytes, Client] = {}

    def __len__(self) -> int:
        return len(self._by_token)

    def __iter__(self) -> Iterator[Client]:
        return iter(list(self._by_token.values()))

    def of_peer(self, peer: bytes) -> Client | None:
        """The client behind a routing id."""
        return self._by_peer.get(peer)

    def find_same_run(self, peer: bytes, name: str, run_id: int) -> Client | None:
        """The client that sent the same HELLO on this connection before."""
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

    def check_training_token(self, training_token: str) -> bool:
        """True for this run's token, False for none. Raises ProtocolError ERR_DENIED for any other."""
        if not training_token:
            return False
        if not hmac.compare_digest(training_token.encode(), self._training_token):
            raise ProtocolError(
                ERR_DENIED,
                "the training token is not this run's; expected what the run directory's file `token` holds, or none: "
                "without it a client is served, and not learned from",
            )
        return True

    def register_client(
        self, name: str, run_id: int, training_token: str, peer: bytes, now: float
    ) -> tuple[Client, list[Client]]:
        """Register a client; it and those it replaces: the older run of its name, the former owner of its connection.

        An equal run_id ends a life only where WELCOME may have been lost with its connection: it has no token to show.
        Clients with and without the training token are kept apart, even under the same name.

        Raises:
            StaleRunError: a newer life of the same name is here already, or this very one, whose token is not shown.
            ProtocolError: ERR_CAPACITY, all places are taken; ERR_DENIED, the training token is another run's.
        """
        training = self.check_training_token(training_token)
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
        """Clients that sent nothing after `since`."""
        return [client for client in self._by_token.values() if client.heard_at < since]
