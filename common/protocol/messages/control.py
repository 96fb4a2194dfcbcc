"""Between the run's owner and the inference server, on its control socket.

`token` of a request is the run's: without it nothing is done.
"""

from __future__ import annotations

import msgspec

from simul.common.protocol.messages.base import Message


class LoadPolicy(Message, frozen=True, tag="LOAD_POLICY"):
    """Serve a checkpoint's weights, frozen, under a name of its own."""

    name: str
    checkpoint: str  # absolute path of a checkpoint directory
    token: str = ""


class UnloadPolicy(Message, frozen=True, tag="UNLOAD_POLICY"):
    """Serve a policy no longer. Refused while sessions are bound to it, unless they may `drain`: play to their end."""

    name: str
    drain: bool = False
    token: str = ""


class ListPolicies(Message, frozen=True, tag="LIST_POLICIES"):
    """Ask which policies are served."""

    token: str = ""


class Shutdown(Message, frozen=True, tag="SHUTDOWN"):
    """Answer what waits, then stop, as on SIGTERM."""

    token: str = ""


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


TO_CONTROL = LoadPolicy | UnloadPolicy | ListPolicies | Shutdown
FROM_CONTROL = ControlAnswer
