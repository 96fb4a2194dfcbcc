"""Between a client and the inference server, on its data socket: messages to the server, then to the client."""

from __future__ import annotations

import msgspec

from simul.common.protocol.messages.base import LEARNER_POLICY, Message

# What a row of STEP is (column `kind`).
DECISION = 0  # the seat must act
TERMINATED = 1  # the episode is over; bootstraps with 0
TRUNCATED = 2  # cut short; `observation` is the final one and bootstraps
ABORTED = 3  # the open unroll is dropped, nothing is learned from it

# Bits of column `flags` of STEP, read with START only.
START = 1  # first decision of an episode: opens a session with zero state
RECORD = 2  # learn from this session (needs the run's training token)
GREEDY = 4  # most probable action instead of a draw
FLAGS = START | RECORD | GREEDY  # all valid bits

# What `label` of STEP may hold beside the classes 0 to C - 1 of the game spec.
NO_LABEL = -1  # the opponent did nothing then, or it is unknown
SAME_LABEL = -2  # the one that the session's next step will get

# The tensors that the messages with rows may have; every other message has none.
STEP_TENSORS = frozenset(("keys", "kind", "flags", "reward", "observation", "mask", "policy", "temperature", "label"))
EVALUATE_TENSORS = frozenset(("observation", "mask", "session"))
SAMPLES_TENSORS = frozenset(
    (
        "observation", "mask", "target_count", "target_action", "target_probability", "outcome", "policy_version",
        "ending",
    )
)  # fmt: skip


class Hello(Message, frozen=True, tag="HELLO"):
    """First message of a client, and after every reconnect (then with the token from WELCOME)."""

    protocol: str
    client: str  # declared name; sampling noise is keyed by it
    run_id: int  # ordered: a newer run_id ends the sessions of an older one
    spec_fingerprint: str
    token: str = ""
    training_token: str = ""
    shared_memory: bool = False  # requests shared memory for its observations


class Step(Message, frozen=True, tag="STEP"):
    """Every row that is ready at a client.

    Tensors: keys: int64 [N, 5] (env, seat, episode, step, attempt); kind: uint8 [N]; flags: uint8 [N];
    reward: float32 [N] (since the session's last decision); observation: wire dtype [N, D]
    (ignored for TERMINATED and ABORTED); mask: uint8 [N, A] (1 = legal; ignored for ends);
    policy: uint8 [N], an index into `policies`, read with START only; temperature: float32 [N], optional (default 1),
    read with START only: the logits are divided by it; 0.001 to 100, and 1 with RECORD;
    label: int16 [N, K], optional, of recorded sessions of a game whose spec declares K > 0: what the opponent did when
    the session's last decision was made, 0 to C - 1, NO_LABEL or SAME_LABEL.
    """

    id: int
    policies: tuple[str, ...] = (LEARNER_POLICY,)
    deadline_ms: int = 0  # rows still waiting after this time are refused with ERR_DEADLINE; 0: no deadline
    observation_at: int = -1  # offset of the observations in shared memory, instead of the tensor; -1: the tensor


class Evaluate(Message, frozen=True, tag="EVALUATE"):
    """Policy and value without acting, for search and analysis: no session advances, nothing is recorded.

    Tensors: observation: wire dtype [N, D]; mask: uint8 [N, ceil(A / 8)], bits, the lowest bit of a byte first
    (1 = legal); session: int64 [N, 3] (env, seat, episode), optional: the row is evaluated with the state that the
    next step of this own session would read; env -1, or no tensor: with zero state.
    """

    id: int
    policy: str = LEARNER_POLICY


class Samples(Message, frozen=True, tag="SAMPLES"):
    """Positions of searched games for the learner's replay buffer; needs the run's training token.

    Tensors: observation: wire dtype [N, D]; mask: uint8 [N, ceil(A / 8)], bits as in EVALUATE;
    target_count: int32 [N], entries of the policy target of each row, 0 where only the value is learned;
    target_action: int32 [K], legal ids, each once a row, and target_probability: float32 [K], which add up to 1 a row,
    rows concatenated, K the sum of the counts; outcome: float32 [N], -1 to 1, for the observing seat;
    policy_version: int64 [N], of the weights that the search asked; ending: uint8 [N, E], where the game spec has it.

    Sent again under the same `id` until it is answered; the learner stores a message once.
    """

    id: int


class Ping(Message, frozen=True, tag="PING"):
    """Keepalive; answered by PONG."""

    id: int = 0


class StatusRequest(Message, frozen=True, tag="STATUS"):
    """Requests the server's figures; answered by FIGURES."""

    id: int = 0


class Close(Message, frozen=True, tag="CLOSE"):
    """The client leaves: its sessions end as aborted and its token becomes invalid."""


class SharedMemory(msgspec.Struct, frozen=True):
    """Memory that a process on the same machine may open: a file of `size` bytes that begins with `nonce`."""

    path: str
    size: int
    nonce: str


class Welcome(Message, frozen=True, tag="WELCOME"):
    """Answer to HELLO. `resumed`: the token was known and the sessions continue. `progress`: as in PONG."""

    protocol: str
    token: str
    resumed: bool
    game: str
    observation_size: int
    num_actions: int
    observation_dtype: str
    policies: tuple[str, ...]
    limits: dict[str, int]
    shared_memory: SharedMemory | None = None  # None: not requested, or not available
    progress: float = 0.0


class Actions(Message, frozen=True, tag="ACTIONS"):
    """Answers rows of the STEP message `id`, each exactly once; one STEP may be answered by several ACTIONS.

    Tensors: row: int32 [M] (position in the STEP message); action: int32 [M] (-1 acknowledges an end);
    log_prob: float32 [M] (of the distribution that was sampled, mask and temperature included); value: float32 [M];
    policy_version: int64 [M].
    """

    id: int


class Evaluated(Message, frozen=True, tag="EVALUATED"):
    """Answers rows of the EVALUATE message `id`, each exactly once; there may be several EVALUATED.

    Tensors: row: int32 [M] (position in the EVALUATE message); value: float32 [M]; priors: float32 [K], the
    probabilities of the legal actions only, in order of their ids, rows concatenated (temperature 1).
    """

    id: int
    policy_version: int


class RowErrors(msgspec.Struct, frozen=True):
    """Rows of one message that were refused for the same reason."""

    code: str
    message: str
    rows: tuple[int, ...]


class Sampled(Message, frozen=True, tag="SAMPLED"):
    """Answers the SAMPLES message `id` as a whole: `accepted` rows were taken, those of `errors` refused."""

    id: int
    accepted: int
    errors: tuple[RowErrors, ...] = ()


class Pong(Message, frozen=True, tag="PONG"):
    """Answer to PING. `progress`, to holders of the training token: share of the run's horizon that is learned."""

    id: int = 0
    policies: tuple[str, ...] = ()
    ready: bool = True
    progress: float = 0.0


class Figures(Message, frozen=True, tag="FIGURES"):
    """Answer to STATUS: the server's current figures."""

    id: int
    ready: bool
    policies: dict[str, int]  # policy_version by name, including those that serve bound sessions only
    sessions: int  # of all clients
    own_sessions: int
    clients: int
    waiting: int  # rows of STEP and EVALUATE waiting for a batch, of all clients
    own_waiting: int
    mean_batch: float  # rows of a batch since start; 0 before the first
    decisions: int  # answered since start
    limits: dict[str, int]
    batches: int = 0  # since start; with `decisions`, two answers give the mean batch between them


class Error(Message, frozen=True, tag="ERROR"):
    """A refusal. `rows`: positions in the STEP or EVALUATE message `id`; empty: the whole message, SAMPLES too."""

    code: str
    message: str
    id: int = -1
    rows: tuple[int, ...] = ()
    retry_after_ms: int = 0


TO_SERVER = Hello | Step | Evaluate | Samples | Ping | StatusRequest | Close
TO_CLIENT = Welcome | Actions | Evaluated | Sampled | Pong | Figures | Error
