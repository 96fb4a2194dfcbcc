"""Between the inference server and the learner: one socket for unrolls, one for weights."""

from __future__ import annotations

from simul.common.protocol.messages.base import Message
from simul.common.protocol.messages.serving import SharedMemory

MOST_VERSION = 10**9 - 1  # largest policy version: nine digits, as in checkpoint names


class Unroll(Message, frozen=True, tag="UNROLL"):
    """`length` consecutive steps of one session and the bootstrap row behind them.

    Tensors: observation: wire dtype [length + 1, D]; mask: uint8 [length + 1, A], of 1024 actions and more
    [length + 1, ceil(A / 8)], packed (see `simul.common.protocol.masks`);
    action: int32 [length]; log_prob: float32 [length] (recorded when it was sampled);
    value: float32 [length + 1] (the last bootstraps; 0 where `terminated`);
    reward: float32 [length] (what the action of the same row earned);
    policy_version: int64 [length]; state: float32 [state_size], the recurrent state before the first row;
    label: int16 [length, K], only where the game spec declares K > 0: what the opponent did at each row, -1: unknown.
    The last row only bootstraps and is never learned from. Where the episode terminated it is all zeros.

    Where the learner has the server's memory open, the tensors stay at `place` until CREDIT says that the unroll was
    taken. The content is this unroll while the number stored at the place equals `serial`.

    `session` is the same in all unrolls of one session, and in no other's; `first_step` counts its steps.
    """

    length: int
    first_step: int
    terminated: bool
    truncated: bool
    spec_fingerprint: str
    place: int = -1  # -1: the tensors are with the message
    serial: int = 0
    session: int = 0


class LentUnrolls(Message, frozen=True, tag="LENT_UNROLLS"):
    """Several UNROLL whose tensors lie at their places, in sending order: each costs one credit, all one message."""

    unrolls: tuple[Unroll, ...]


class SampleBatch(Message, frozen=True, tag="SAMPLE_BATCH"):
    """The accepted rows of one SAMPLES message, `length` of them; it costs one credit, as an unroll does.

    Tensors: those of SAMPLES. `batch` names the client's message: the same number again is the same samples.
    """

    length: int
    batch: int
    spec_fingerprint: str


class UnrollMemory(Message, frozen=True, tag="UNROLL_MEMORY"):
    """After SERVER_HELLO, on the unroll socket: where a server on this machine keeps unrolls, at `places` places.

    `simul.common.protocol.unroll_layout` tells from (game spec, `unroll_length`, `state_size`) where each tensor lies.
    """

    memory: SharedMemory
    places: int
    unroll_length: int
    state_size: int


class ServerHello(Message, frozen=True, tag="SERVER_HELLO"):
    """A server requests weights; `served_version` is the last one it served (-1: none).

    `token` is the run's. The learner refuses every message of a server that has not shown it on that socket.
    `connection` is the same on both sockets: where one is closed, the learner forgets the other.
    """

    protocol: str
    spec_fingerprint: str
    served_version: int = -1
    shared_memory: bool = False  # the server prefers to read weights from shared memory
    token: str = ""
    connection: str = ""  # a name that no other pair of connections has


class WeightsAck(Message, frozen=True, tag="WEIGHTS_ACK"):
    """Weights were staged (or refused, with the reason). The learner sends the next ones only after it."""

    policy: str
    policy_version: int
    accepted: bool
    reason: str = ""
    unreadable: bool = False  # the weights cannot be read at `path`: requests the bytes
    overtaken: bool = False  # newer ones arrived before these were verified; they are not served


class Credit(Message, frozen=True, tag="CREDIT"):
    """Keepalive of the learner; `total`: unrolls and sample batches that the server may have sent since it connected.

    With several servers it may be lower than before, and lower than what was sent: nothing more is sent until it is
    higher.
    `taken`: those received so far, in sending order; their places in memory are free again.
    """

    total: int
    taken: int = 0
    memory: bool = False  # the learner has the memory of UNROLL_MEMORY open: unrolls may be sent by place


class Weights(Message, frozen=True, tag="WEIGHTS"):
    """Immutable weights of a policy. Tensor: safetensors: uint8 [bytes]. `fingerprint` is SHA-256 over those bytes.

    `policy` is `learner`, or the name of a frozen past self. `resident` names every policy that stays loaded.
    `progress` of the learner's is the share of the run's horizon that it has learned from, 0 to 1.

    To a server that requested it the tensor is not sent: it is the sealed file `path`, which exists until the server
    has sent WEIGHTS_ACK. Any other file at that path has another `file_number`.
    """

    policy: str
    policy_version: int
    fingerprint: str
    resident: tuple[str, ...] = ()
    progress: float = 0.0
    path: str = ""  # empty: the tensor is with the message
    file_number: int = 0


TO_LEARNER = Unroll | LentUnrolls | SampleBatch | UnrollMemory | ServerHello | WeightsAck
FROM_LEARNER = Credit | Weights
