"""The only package that imports zmq. Sockets never block, and never take over a bound endpoint."""

from simul.common.transport.curve import ClientKeys, ServerKeys, client_keys, new_keys, new_run_keys, server_keys
from simul.common.transport.endpoints import EndpointMonitor, check_endpoint, connectable
from simul.common.transport.socket_monitor import ConnectionState, explain_silence
from simul.common.transport.sockets import DealerSocket, Poller, PullSocket, PushSocket, RouterSocket, probe_bind

__all__ = [
    "ClientKeys",
    "ConnectionState",
    "DealerSocket",
    "EndpointMonitor",
    "Poller",
    "PullSocket",
    "PushSocket",
    "RouterSocket",
    "ServerKeys",
    "check_endpoint",
    "client_keys",
    "connectable",
    "explain_silence",
    "new_keys",
    "new_run_keys",
    "probe_bind",
    "server_keys",
]
