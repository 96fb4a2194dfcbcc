"""What an error means for the author of a client, and how to fix it. Pure."""

from __future__ import annotations

from simul.common.errors import (
    ERR_CAPACITY,
    ERR_DENIED,
    ERR_HELLO,
    ERR_LIMIT,
    ERR_MALFORMED,
    ERR_MASK,
    ERR_NO_SESSION,
    ERR_NOT_READY,
    ERR_ORDER,
    ERR_POLICY,
    ERR_SHAPE,
    ERR_SPEC,
    ERR_STALE_RUN,
    ERR_VALUE,
    ERR_VERSION,
)
from simul.common.protocol.messages import Error

FIXES = {
    ERR_VERSION: "use a client and a server of the same version of Simul (`simul connect` comes with both)",
    ERR_SPEC: "the client encodes for another game or encoder; encode for this one and send its fingerprint in HELLO",
    ERR_NOT_READY: "wait until it has weights (`simul status` shows it), then try again",
    ERR_STALE_RUN: "send that life's token in HELLO, or another `client` name, or a higher `run_id` (the time in ns)",
    ERR_DENIED: "leave `training_token` empty and RECORD out, or hold this run's training token",
    ERR_HELLO: "send HELLO first on every connection, and again, with the token, after each reconnect",
    ERR_MALFORMED: "compare your frames with section 2 of docs/protocol.md and the vectors in tests/golden/protocol",
    ERR_LIMIT: "send less in one message; WELCOME names the limits",
    ERR_SHAPE: "send every tensor of section 3 of docs/protocol.md with the dtype and shape it has there",
    ERR_VALUE: "send finite numbers only, and a kind from 0 to 3",
    ERR_MASK: "send one byte an action, 1 legal and 0 not, at least one of them 1",
    ERR_NO_SESSION: "open the session with flag START (1) at step 0",
    ERR_ORDER: "count the steps of a session 0, 1, 2, ...; wait for each answer; the end is one step after the last",
    ERR_POLICY: "choose a policy that WELCOME names",
    ERR_CAPACITY: "end sessions that are over; the limits are server.max_sessions, max_sessions_of_client, max_clients",
}


def explain_error(error: Error) -> str:
    """The server's message, and how to fix its cause."""
    fix = FIXES.get(error.code)
    waiting = f" The server advises to wait {error.retry_after_ms} ms." if error.retry_after_ms else ""
    return f"{error.code}: {error.message}." + (f" Fix: {fix}." if fix else "") + waiting
