"""From every role to its supervisor, on the status socket."""

from __future__ import annotations

from typing import Any

import msgspec

from simul.common.protocol.messages.base import Message


class Report(Message, frozen=True, tag="REPORT"):
    """A role's figures, twice a second. `metrics`: numbers, strings, small dicts; docs/metrics.md names them."""

    role: str
    index: int
    run_id: int
    pid: int
    state: str  # starting | ready | stuck | draining | stopped | failed
    metrics: dict[str, Any] = msgspec.field(default_factory=dict)
    event: str = ""  # a sentence for the view, once
    token: str = ""  # the run's: a report without it is refused


TO_SUPERVISOR = Report
