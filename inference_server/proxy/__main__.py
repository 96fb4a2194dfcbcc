"""`python -m simul.inference_server.proxy CONTROL SERVER LIMITS`: started by the server, between it and public peers.

libzmq gives a program a message only when all of it has arrived, and takes as many frames and bytes as there are until
then: where it reads from any peer, neither memory nor the time until the next message has a bound. This process reads
instead, and the server gets of a peer's bytes only what is within the limits. It imports neither torch, numpy nor zmq.
"""

from __future__ import annotations

import contextlib
import signal
import socket
import sys

from simul.inference_server.proxy.framing import Limits
from simul.inference_server.proxy.relay import Relay


def main() -> int:
    """CONTROL: descriptor of a socket pair's end; SERVER: path of its socket; LIMITS: JSON."""
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1"):  # sent to a whole group; the server says when it is over
        with contextlib.suppress(AttributeError):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    control, server, limits = sys.argv[1:]
    Relay(socket.socket(fileno=int(control)), server, Limits.from_text(limits)).run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
