"""The request to watch a running game, a private file beside the run's sockets, and the records that answer it.

The page (`launch/monitoring/page/spectated_game.py`) writes the request and renews it; the worker that hosts the game
(`env_worker/spectator.py`) looks for it once a second, and pushes a record of each decision that it evaluates to the
socket of the request. One request a worker: the last one counts.
"""

from __future__ import annotations

import os
import re
import secrets
import time
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from simul.common.errors import ConfigError
from simul.common.role.run_directory import RunDir
from simul.common.runtime.decode_errors import DECODE_ERRORS
from simul.common.runtime.private_files import is_private_folder, read_regular, replace_file
from simul.common.transport import PullSocket, PushSocket

LEASE_SEC = 5.0  # a request that is older, because its page has ended, counts no more
ANY_SEAT = -1
MOST_RECORD_BYTES = 1 << 20  # of a record; a larger one is not sent, and not read
REQUEST_BYTES = 1000
QUEUE = 16  # records that wait for a reader; more are dropped
TOO_LARGE = "the position is too large to be shown"
_ID = re.compile(r"[0-9a-f]{8}")

Number = Annotated[int, msgspec.Meta(ge=0)]


class SpectatorRequest(msgspec.Struct, frozen=True):
    """Which game of a worker is watched.

    Attributes:
        id: names the socket that the records go to, 8 hex digits; every request has its own.
        env: number of the worker's game.
        seat: whose decisions are evaluated; ANY_SEAT: of the policy that decides first in each episode.
    """

    id: str
    env: Number
    seat: Annotated[int, msgspec.Meta(ge=ANY_SEAT)]


class SpectatorRecord(msgspec.Struct):
    """A decision of the watched seat, or its end; or a sentence, `said`, where the request cannot be met.

    Attributes:
        kind: `decision`, or how the session ended.
        policy, policy_version: that evaluated it; version -1: it was not evaluated, because `said`.
        value: the policy's estimate of the return; None where there is none.
        legal: how many actions are legal.
        actions: the most probable ones, [name, probability at temperature 1], most probable first.
        chosen: name of the action that was played; empty: not known.
        reward: earned since the seat's last decision.
        skipped: decisions of the seat since the last record, which were not evaluated.
        observation: its first numbers, in the order of the game spec's layout; None: it is not finite.
        text, svg: the position; empty where the game shows none.
        battle: lines of a battle of Pokémon so far, as its spectators see it.
    """

    kind: Literal["decision", "terminated", "truncated", "aborted", "none"] = "none"
    env: int = 0
    seat: int = 0
    episode: int = 0
    step: int = 0
    policy: str = ""
    policy_version: int = -1
    value: float | None = None
    legal: int = 0
    actions: list[tuple[str, float]] = []
    chosen: str = ""
    reward: float = 0.0
    skipped: int = 0
    observation: list[float | None] = []
    text: str = ""
    svg: str = ""
    battle: str = ""
    said: str = ""


_REQUEST = msgspec.json.Decoder(SpectatorRequest)
_RECORD = msgspec.json.Decoder(SpectatorRecord)


class RequestReader:
    """The worker's end. Not for several threads."""

    def __init__(self, run_dir: RunDir, worker: int) -> None:
        self._run_dir = run_dir
        self._worker = worker
        self._path: Path | None = None

    def read(self) -> SpectatorRequest | None:
        """The request that is valid now; None where there is none. Without one it costs a single `lstat`."""
        try:
            path = self._path = self._path or request_path(self._run_dir, self._worker)
            if abs(time.time() - path.lstat().st_mtime) > LEASE_SEC:
                return None
            request = _REQUEST.decode(read_regular(path, REQUEST_BYTES, own=True))
        except (OSError, ConfigError, *DECODE_ERRORS):
            return None
        return request if _ID.fullmatch(request.id) else None

    def connect(self, request: SpectatorRequest) -> RecordSender:
        """Where the records of a request go. Raises ConfigError."""
        return RecordSender(self._run_dir, request)


class RecordSender:
    """Sends records, and drops them while the page does not read."""

    def __init__(self, run_dir: RunDir, request: SpectatorRequest) -> None:
        self._socket = PushSocket(_endpoint(run_dir, request.id), queue=QUEUE)

    def send(self, record: SpectatorRecord) -> None:
        """Never waits. A position that makes the record too large is left out, and said."""
        data = _encoded(record)
        if len(data) > MOST_RECORD_BYTES:
            data = _encoded(msgspec.structs.replace(record, text="", svg="", battle="", said=TOO_LARGE))
        if len(data) <= MOST_RECORD_BYTES:
            self._socket.send([data])

    def close(self) -> None:
        """Send no more."""
        self._socket.close()


class SpectatorSubscription:
    """The page's end: asks for one game of a worker until `close`. Raises ConfigError where this user may not.

    Attributes:
        request: what is asked for.
    """

    def __init__(self, run_dir: RunDir, worker: int, env: int, seat: int = ANY_SEAT) -> None:
        self.request = SpectatorRequest(secrets.token_hex(4), env, seat)
        self._path = request_path(run_dir, worker)
        endpoint = _endpoint(run_dir, self.request.id)
        self._lock = Path(f"{endpoint.removeprefix('ipc://')}.lock")
        self._socket = PullSocket(endpoint, queue=QUEUE)
        try:
            replace_file(self._path, msgspec.json.encode(self.request), mode=0o600)
        except OSError as error:
            self._close_socket()
            raise ConfigError(f"The game cannot be asked for: {self._path}: {error.strerror}.") from None

    def records(self) -> list[SpectatorRecord]:
        """Those that have come. Never waits; what does not decode is left out."""
        found = []
        while (frames := self._socket.receive()) is not None:
            if len(frames[0]) <= MOST_RECORD_BYTES:
                try:
                    found.append(_RECORD.decode(frames[0]))
                except DECODE_ERRORS:
                    continue
        return found

    def renew(self) -> bool:
        """Call it once a second. False: another page has asked the worker for a game, or the run has ended."""
        try:
            if _REQUEST.decode(read_regular(self._path, REQUEST_BYTES, own=True)).id != self.request.id:
                return False
            os.utime(self._path)
        except (OSError, *DECODE_ERRORS):
            return False
        return True

    def close(self) -> None:
        """Ask no longer."""
        if self.renew():
            self._path.unlink(missing_ok=True)
        self._close_socket()

    def _close_socket(self) -> None:
        self._socket.close()
        self._lock.unlink(missing_ok=True)  # no other process ever has this one


def request_path(run_dir: RunDir, worker: int) -> Path:
    """The file of requests to a worker. Raises ConfigError where this user has no run there."""
    try:
        folder = run_dir.sockets
        private = is_private_folder(folder)
    except OSError:
        private = False
    if not private:
        raise ConfigError("Games are watched while a run is active, by the user whose run it is.")
    return folder / f"spectate-{worker}.json"


def _encoded(record: SpectatorRecord) -> bytes:
    """As JSON; lone surrogates, which a game's own texts may have, as question marks."""
    try:
        return msgspec.json.encode(record)
    except UnicodeEncodeError:
        fields = msgspec.structs.asdict(record)
        texts = {name: _utf8(value) for name, value in fields.items() if isinstance(value, str)}
        actions = [(_utf8(name), probability) for name, probability in record.actions]
        return msgspec.json.encode(msgspec.structs.replace(record, **texts, actions=actions))


def _utf8(text: str) -> str:
    return text.encode(errors="replace").decode()


def _endpoint(run_dir: RunDir, request: str) -> str:
    return f"ipc://{run_dir.sockets / f'w{request}.ipc'}"
