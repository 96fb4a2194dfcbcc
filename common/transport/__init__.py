"""The only package that imports zmq. Sockets never block, never linger for ever, never steal an endpoint."""

from common.transport.curve import ClientKeys, client_keys, new_keys, server_keys
from common.transport.endpoints import check_endpoint, connectable
from common.transport.keeper import EndpointKeeper
from common.transport.poller import Poller
from common.transport.sockets import DealerSocket, PullSocket, PushSocket, RouterSocket, held
from common.transport.watch import Fate

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
