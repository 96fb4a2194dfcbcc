"""What STATUS tells a client: read-only figures, nothing about other clients but sums."""

from __future__ import annotations

from simul.common.config.schema import Config, ServerConfig
from simul.common.protocol.codec import MAX_DIMENSIONS, MAX_FRAMES, MAX_HEADER_BYTES
from simul.common.protocol.messages import Figures
from simul.common.protocol.specs import GameSpec
from simul.inference_server.base.statistics import Statistics
from simul.inference_server.policies.table import PolicyTable
from simul.inference_server.proxy.framing import Limits
from simul.inference_server.sessions.clients import Client, ClientTable, InFlight
from simul.inference_server.sessions.row_checks import MAX_ROWS
from simul.inference_server.sessions.table import SessionTable

STEP_ROW_BYTES = 5 * 8 + 3 * 1 + 2 * 4  # keys; kind, flags, policy; reward, temperature
# With CURVE libzmq decrypts a frame at a time, about 1 GB/s, in the thread that serves every connection.
MESSAGE_BYTES = 16 << 20


def limits_of(config: ServerConfig, spec: GameSpec, reserved: int = 0) -> dict[str, int]:
    """Every limit that a client can run into, as WELCOME names them; docs/protocol.md explains each.

    `reserved`: sessions that only holders of the run's token may open.
    """
    without_token = config.max_sessions - reserved
    rows = config.max_rows_waiting
    rows_without_token = max(rows // 2, min(rows, config.max_rows_of_client)) if reserved else rows
    return {
        "rows_per_step": min(MAX_ROWS, config.max_rows_of_client, config.max_rows_waiting, _rows_of_a_message(spec)),
        "rows_waiting": rows,
        "rows_waiting_without_token": rows_without_token,
        "rows_of_client": config.max_rows_of_client,
        "sessions": config.max_sessions,
        "sessions_without_token": without_token,
        "sessions_of_client": min(sessions_of_client(config), without_token),
        "clients": config.max_clients,
        "frames": MAX_FRAMES,
        "header_bytes": MAX_HEADER_BYTES,
        "message_bytes": _message_bytes(spec),
        "tensor_dimensions": MAX_DIMENSIONS,
        "slow_reader_replies": config.slow_reader_replies,
        "idle_timeout_ms": round(config.idle_timeout_sec * 1000),
        "client_timeout_ms": round(config.client_timeout_sec * 1000),
    }


def step_row_bytes(spec: GameSpec) -> int:
    """Bytes of a row of STEP; one of EVALUATE is smaller."""
    observation, label = spec.observation_size * spec.dtype().itemsize, 2 * spec.opponent_labels
    return observation + spec.num_actions + label + STEP_ROW_BYTES


def _message_bytes(spec: GameSpec) -> int:
    """MESSAGE_BYTES; where a row is larger, a message of one row, as far as a message may be so large at all."""
    return min(Limits.message_bytes, max(MESSAGE_BYTES, MAX_HEADER_BYTES + step_row_bytes(spec)))


def _rows_of_a_message(spec: GameSpec) -> int:
    """Rows of which a STEP stays within `_message_bytes`, whatever its header."""
    return max(1, (_message_bytes(spec) - MAX_HEADER_BYTES) // step_row_bytes(spec))


def sessions_of_client(config: ServerConfig) -> int:
    """Sessions that a client without the training token may hold: half of all where no limit is configured."""
    return min(config.max_sessions, config.max_sessions_of_client or max(1, config.max_sessions // 2))


def reserved_sessions(config: Config, spec: GameSpec) -> int:
    """Sessions that the workers of one server need: one for each seat of each of their envs."""
    return min(config.server.max_sessions, config.workers_of_a_server * config.workers.envs * spec.seats)


class StatusReply:
    """The server's figures for one client."""

    def __init__(
        self,
        sessions: SessionTable,
        clients: ClientTable,
        policies: PolicyTable,
        in_flight: InFlight,
        statistics: Statistics,
        limits: dict[str, int],
    ) -> None:
        self._sessions = sessions
        self._clients = clients
        self._policies = policies
        self._in_flight = in_flight
        self._statistics = statistics
        self._limits = limits

    @property
    def ready(self) -> bool:
        """Weights are there, and sessions may begin: not while it drains."""
        return self._policies.ready and self._sessions.accepting

    def __call__(self, client: Client, message: int) -> Figures:
        """The answer to STATUS number `message`."""
        batches = self._statistics.batches
        return Figures(
            id=message,
            ready=self.ready,
            policies=self._policies.versions(),
            sessions=len(self._sessions),
            own_sessions=len(client.seats),
            clients=len(self._clients),
            waiting=self._in_flight.total,
            own_waiting=self._in_flight.of(client),
            mean_batch=round(self._statistics.decisions / batches, 2) if batches else 0.0,
            decisions=self._statistics.decisions,
            limits=self._limits,
            batches=batches,
        )
