"""The only package that imports zmq. Sockets never block, never linger for ever, never steal an endpoint."""

from simul.common.transport.curve import ClientKeys, client_keys, new_keys, server_keys
from simul.common.transport.endpoint_keeper import EndpointKeeper
from simul.common.transport.endpoints import check_endpoint, connectable
from simul.common.transport.poller import Poller
from simul.common.transport.sockets import DealerSocket, PullSocket, PushSocket, RouterSocket, held
from simul.common.transport.watch import Fate

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
