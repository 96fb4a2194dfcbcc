"""Between a run's owner and its roles, on the server's control socket and the supervisor's status socket.

`token` is the run's: a request or a report without it is refused.
"""

from __future__ import annotations

from typing import Any

import msgspec

from simul.common.protocol.messages.base import Message


class LoadPolicy(Message, frozen=True, tag="LOAD_POLICY"):
    """Serve a checkpoint's frozen weights under `name`."""

    name: str
    checkpoint: str  # absolute path of a checkpoint directory
    token: str = ""
    trust: bool = False  # its network may be a class of any module


class UnloadPolicy(Message, frozen=True, tag="UNLOAD_POLICY"):
    """Stop serving a policy. Refused while sessions are bound to it, unless `drain` lets them play to their end."""

    name: str
    drain: bool = False
    token: str = ""


class ListPolicies(Message, frozen=True, tag="LIST_POLICIES"):
    """Ask which policies are served."""

    token: str = ""


class Shutdown(Message, frozen=True, tag="SHUTDOWN"):
    """Answer waiting requests, then stop, as on SIGTERM."""

    token: str = ""


class PolicyFacts(msgspec.Struct, frozen=True):
    """A served policy. `source`: learner, league, opponent or checkpoint; `open`: new sessions may be bound to it.

    `memory`: its network keeps a state for each session.
    """

    name: str
    policy_version: int
    sessions: int
    source: str
    open: bool
    memory: bool = False


class ControlAnswer(Message, frozen=True, tag="CONTROL_ANSWER"):
    """Answer to every control request: done, or (`ok` False) the reason in `text`; `policies`: those served now."""

    ok: bool
    text: str
    policies: tuple[PolicyFacts, ...]


TO_CONTROL = LoadPolicy | UnloadPolicy | ListPolicies | Shutdown
FROM_CONTROL = ControlAnswer


class Report(Message, frozen=True, tag="REPORT"):
    """A role's figures, twice a second. `metrics`: numbers, strings, small dicts; docs/metrics.md names them."""

    role: str
    index: int
    run_id: int
    pid: int
    state: str  # starting | ready | stuck | draining | stopped | failed
    metrics: dict[str, Any] = msgspec.field(default_factory=dict)
    event: str = ""  # one sentence for the view, sent once
    token: str = ""  # the run's token: a report without it is refused
    time: float = 0.0  # when the figures were counted, in seconds since the epoch; 0: not said
    endpoints: dict[str, str] = msgspec.field(default_factory=dict)  # that it has bound for other machines, by name


TO_SUPERVISOR = Report
