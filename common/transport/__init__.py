"""The only package that imports zmq. Sockets never block, never linger for ever, never steal an endpoint."""

from simul.common.transport.curve import ClientKeys, client_keys, new_keys, server_keys
from simul.common.transport.endpoints import EndpointKeeper, check_endpoint, connectable
from simul.common.transport.socket_monitor import Fate
from simul.common.transport.sockets import DealerSocket, Poller, PullSocket, PushSocket, RouterSocket, held

__all__ = [
    "ClientKeys",
    "DealerSocket",
    "EndpointKeeper",
    "Fate",
    "Poller",
    "PullSocket",
    "PushSocket",
    "RouterSocket",
    "check_endpoint",
    "client_keys",
    "connectable",
    "held",
    "new_keys",
    "server_keys",
]
