"""Every message that crosses a process boundary, typed, grouped by receiver.

A message travels as one MessagePack frame (the struct) followed by the raw tensor frames that
`common.codec` declares in it. Tensors of a message are listed in its docstring as name: dtype [shape].
N is the number of rows, D the observation size, A the number of actions, T the unroll length.
"""

from __future__ import annotations

from typing import Any

import msgspec

PROTOCOL = "simul/1"

# What a row of STEP is (column `kind`).
DECISION = 0  # the seat must act
TERMINATED = 1  # the episode is over; bootstraps with 0
TRUNCATED = 2  # cut short; `observation` is the final one and bootstraps
ABORTED = 3  # nothing may be learned from what is still open

# Bits of column `flags` of STEP, read with START only.
START = 1  # first decision of an episode: opens a session with zero state
RECORD = 2  # learn from this session (needs the run's training token)
GREEDY = 4  # most probable action instead of a draw


class Message(
    msgspec.Struct, frozen=True, tag_field="type", omit_defaults=True, kw_only=True, forbid_unknown_fields=True
):
    """Base. The key `type` holds the tag; `tensors` declares the raw frames behind the header: (name, dtype, shape)."""

    tensors: tuple[tuple[str, str, tuple[int, ...]], ...] = ()


# ---------------------------------------------------------------- to the inference server, data socket


class Hello(Message, frozen=True, tag="HELLO"):
    """First message of a client's life, and after every reconnect (then with the token it was given)."""

    protocol: str
    client: str  # declared name; sampling noise is keyed by it
    run_id: int  # ordered number of this client's life: a newer one ends the older one's sessions
    spec_fingerprint: str
    token: str = ""
    training_token: str = ""
    shared_memory: bool = False  # wants to lay its observations into memory that both can reach


class Step(Message, frozen=True, tag="STEP"):
    """Everything that is ready at a client.

    Tensors: keys: int64 [N, 5] (env, seat, episode, step, attempt); kind: uint8 [N]; flags: uint8 [N];
    reward: float32 [N] (since the session's last decision); observation: wire dtype [N, D]
    (ignored for TERMINATED and ABORTED); mask: uint8 [N, A] (1 = legal; ignored for ends);
    policy: uint8 [N], an index into `policies`, read with START only; temperature: float32 [N], may be left out
    (1 then), read with START only: the logits are divided by it; above 0, at most 100, and 1 with RECORD.
    """

    id: int
    policies: tuple[str, ...] = ("learner",)
    deadline_ms: int = 0  # rows that still wait so long after they came are refused with ERR_DEADLINE; 0: never
    observation_at: int = (
        -1
    )  # offset of `observation` in the shared memory, the tensor is then left out; -1: the tensor


class Evaluate(Message, frozen=True, tag="EVALUATE"):
    """Policy and value without acting, for search and analysis: no session moves, nothing is recorded.

    Tensors: observation: wire dtype [N, D]; mask: uint8 [N, ceil(A / 8)], bits, the lowest bit of a byte first
    (1 = legal); session: int64 [N, 3] (env, seat, episode), may be left out: the row is evaluated with the state
    that this own session's next step would read; env -1, or no tensor: with zero state.
    """

    id: int
    policy: str = "learner"


class Ping(Message, frozen=True, tag="PING"):
    """Sign of life; answered by PONG."""

    id: int = 0


class StatusRequest(Message, frozen=True, tag="STATUS"):
    """A client asks for the server's figures; answered by FIGURES."""

    id: int = 0


class Close(Message, frozen=True, tag="CLOSE"):
    """The client leaves: its sessions end as aborted, its token is void."""


# ---------------------------------------------------------------- to a client


class SharedMemory(msgspec.Struct, frozen=True):
    """Where a client on this machine may lay its observations: a file of `size` bytes that begins with `nonce`."""

    path: str
    size: int
    nonce: str


class Welcome(Message, frozen=True, tag="WELCOME"):
    """Answer to HELLO. `resumed` is True when the token was known and the sessions live on."""

    protocol: str
    token: str
    resumed: bool
    game: str
    observation_size: int
    num_actions: int
    observation_dtype: str
    policies: tuple[str, ...]
    limits: dict[str, int]
    shared_memory: SharedMemory | None = None  # None: not asked for, or not to be had


class Actions(Message, frozen=True, tag="ACTIONS"):
    """Answers rows of the STEP message `id`, each exactly once, perhaps in several ACTIONS.

    Tensors: row: int32 [M] (position in the STEP message); action: int32 [M] (-1 acknowledges an end);
    log_prob: float32 [M] (of the distribution that was sampled, mask and temperature included); value: float32 [M];
    policy_version: int64 [M].
    """

    id: int


class Evaluated(Message, frozen=True, tag="EVALUATED"):
    """Answers rows of the EVALUATE message `id`, each exactly once, perhaps in several EVALUATED.

    Tensors: row: int32 [M] (position in the EVALUATE message); value: float32 [M]; priors: float32 [K], the
    probabilities of the legal actions only, in order of their ids, one row behind the other (temperature 1).
    """

    id: int
    policy_version: int


class Pong(Message, frozen=True, tag="PONG"):
    """Answer to PING."""

    id: int = 0
    policies: tuple[str, ...] = ()
    ready: bool = True


class Figures(Message, frozen=True, tag="FIGURES"):
    """Answer to STATUS: the server as it is now."""

    id: int
    ready: bool
    policies: dict[str, int]  # policy_version by name, those that serve bound sessions only among them
    sessions: int  # of all clients
    own_sessions: int
    clients: int
    waiting: int  # rows of STEP and EVALUATE that wait for their batch, of all clients
    own_waiting: int
    mean_batch: float  # rows of a batch since start; 0 before the first
    decisions: int  # answered since start
    limits: dict[str, int]
    batches: int = 0  # since start; `decisions` and these of two answers give the mean batch between them


class Error(Message, frozen=True, tag="ERROR"):
    """Something was refused. `rows` are positions in the STEP message `id`; empty = the whole message."""

    code: str
    message: str
    id: int = -1
    rows: tuple[int, ...] = ()
    retry_after_ms: int = 0


# ---------------------------------------------------------------- server -> learner (unroll socket)


class Unroll(Message, frozen=True, tag="UNROLL"):
    """`length` consecutive steps of one session and the bootstrap row behind them.

    Tensors: observation: wire dtype [length + 1, D]; mask: uint8 [length + 1, A];
    action: int32 [length]; log_prob: float32 [length] (recorded when it was sampled);
    value: float32 [length + 1] (the last bootstraps; 0 where `terminated`);
    reward: float32 [length] (what the action of the same row earned);
    policy_version: int64 [length]; state: float32 [state_size], the recurrent state before the first row.
    The last row only bootstraps and is never learned from. Where the episode terminated it is all zeros.
    """

    length: int
    first_step: int
    terminated: bool
    truncated: bool
    spec_fingerprint: str


class ServerHello(Message, frozen=True, tag="SERVER_HELLO"):
    """A server asks for weights; it has served `served_version` last (-1: none)."""

    protocol: str
    spec_fingerprint: str
    served_version: int = -1


class WeightsAck(Message, frozen=True, tag="WEIGHTS_ACK"):
    """Weights were staged (or refused, with the reason)."""

    policy: str
    policy_version: int
    accepted: bool
    reason: str = ""


# ---------------------------------------------------------------- learner -> server


class Credit(Message, frozen=True, tag="CREDIT"):
    """Sign of life of the learner; `total` is the number of unrolls the server may have sent since it connected."""

    total: int


class Weights(Message, frozen=True, tag="WEIGHTS"):
    """Immutable weights of a policy. Tensor: safetensors: uint8 [bytes]. `fingerprint` is SHA-256 over those bytes.

    `policy` is `learner`, or the name of a frozen past self. `resident` names every policy that shall stay loaded.
    """

    policy: str
    policy_version: int
    fingerprint: str
    resident: tuple[str, ...] = ()


# ---------------------------------------------------------------- the run's owner -> server (control socket), and back


class LoadPolicy(Message, frozen=True, tag="LOAD_POLICY"):
    """Serve a checkpoint's weights, frozen, under a name of its own."""

    name: str
    checkpoint: str  # absolute path of a checkpoint directory


class UnloadPolicy(Message, frozen=True, tag="UNLOAD_POLICY"):
    """Serve a policy no longer. Refused while sessions are bound to it, unless they may `drain`: play to their end."""

    name: str
    drain: bool = False


class ListPolicies(Message, frozen=True, tag="LIST_POLICIES"):
    """Ask which policies are served."""


class Shutdown(Message, frozen=True, tag="SHUTDOWN"):
    """Answer what waits, then stop, as on SIGTERM."""


class PolicyFacts(msgspec.Struct, frozen=True):
    """A served policy. `source`: learner, league or checkpoint; `open`: new sessions may be bound to it."""

    name: str
    policy_version: int
    sessions: int
    source: str
    open: bool


class ControlAnswer(Message, frozen=True, tag="CONTROL_ANSWER"):
    """Done, or (`ok` False) why not; and what is served now."""

    ok: bool
    text: str
    policies: tuple[PolicyFacts, ...]


# ---------------------------------------------------------------- role -> supervisor (status socket)


class Report(Message, frozen=True, tag="REPORT"):
    """A role's figures, twice a second. `metrics`: numbers, strings, small dicts; docs/metrics.md names them."""

    role: str
    index: int
    run_id: int
    pid: int
    state: str  # starting | ready | stuck | draining | stopped | failed
    metrics: dict[str, Any] = {}
    event: str = ""  # a sentence for the view, once


TO_SERVER = Hello | Step | Evaluate | Ping | StatusRequest | Close
TO_CLIENT = Welcome | Actions | Evaluated | Pong | Figures | Error
TO_LEARNER = Unroll | ServerHello | WeightsAck
FROM_LEARNER = Credit | Weights
TO_CONTROL = LoadPolicy | UnloadPolicy | ListPolicies | Shutdown
FROM_CONTROL = ControlAnswer
TO_SUPERVISOR = Report
