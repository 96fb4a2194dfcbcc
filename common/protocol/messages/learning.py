"""Between the inference server and the learner, a socket each: unrolls one way, weights the other."""

from __future__ import annotations

from simul.common.protocol.messages.base import Message
from simul.common.protocol.messages.serving import SharedMemory

MOST_VERSION = 10**9 - 1  # of a policy: nine digits, as in the names of checkpoints


class Unroll(Message, frozen=True, tag="UNROLL"):
    """`length` consecutive steps of one session and the bootstrap row behind them.

    Tensors: observation: wire dtype [length + 1, D]; mask: uint8 [length + 1, A];
    action: int32 [length]; log_prob: float32 [length] (recorded when it was sampled);
    value: float32 [length + 1] (the last bootstraps; 0 where `terminated`);
    reward: float32 [length] (what the action of the same row earned);
    policy_version: int64 [length]; state: float32 [state_size], the recurrent state before the first row.
    The last row only bootstraps and is never learned from. Where the episode terminated it is all zeros.

    To a learner that has the server's memory open the tensors do not travel: they lie there, at `place`, until it says
    in CREDIT that this unroll was taken. What lies there is this unroll while `serial` is the number written beside it.
    """

    length: int
    first_step: int
    terminated: bool
    truncated: bool
    spec_fingerprint: str
    place: int = -1  # -1: the tensors are with the message
    serial: int = 0


class UnrollMemory(Message, frozen=True, tag="UNROLL_MEMORY"):
    """After SERVER_HELLO, on the unroll socket: where a server on this machine keeps unrolls, `places` of them.

    `simul.common.protocol.unroll_layout` tells from (game spec, `unroll_length`, `state_size`) where each tensor lies.
    """

    memory: SharedMemory
    places: int
    unroll_length: int
    state_size: int


class ServerHello(Message, frozen=True, tag="SERVER_HELLO"):
    """A server asks for weights; it has served `served_version` last (-1: none).

    `token` is the run's. The learner refuses a server that does not show it on a socket, and whatever it sends there.
    """

    protocol: str
    spec_fingerprint: str
    served_version: int = -1
    shared_memory: bool = False  # it would rather read weights out of memory that both can reach
    token: str = ""


class WeightsAck(Message, frozen=True, tag="WEIGHTS_ACK"):
    """Weights were staged (or refused, with the reason)."""

    policy: str
    policy_version: int
    accepted: bool
    reason: str = ""
    unreadable: bool = False  # they were not to be had where they should lie: please send the bytes


class Credit(Message, frozen=True, tag="CREDIT"):
    """Sign of life of the learner; `total` is the number of unrolls the server may have sent since it connected.

    `taken`: so many of them it has, in the order they were sent; their places in memory are the server's again.
    """

    total: int
    taken: int = 0
    memory: bool = False  # it has the memory of UNROLL_MEMORY open: unrolls may come by their place


class Weights(Message, frozen=True, tag="WEIGHTS"):
    """Immutable weights of a policy. Tensor: safetensors: uint8 [bytes]. `fingerprint` is SHA-256 over those bytes.

    `policy` is `learner`, or the name of a frozen past self. `resident` names every policy that shall stay loaded.

    To a server that asked for it the tensor does not travel: it is the file `path`, which nobody can change, until the
    learner has newer weights of this policy. Whatever else is found there has another `file_number`.
    """

    policy: str
    policy_version: int
    fingerprint: str
    resident: tuple[str, ...] = ()
    path: str = ""  # empty: the tensor is with the message
    file_number: int = 0


TO_LEARNER = Unroll | UnrollMemory | ServerHello | WeightsAck
FROM_LEARNER = Credit | Weights
