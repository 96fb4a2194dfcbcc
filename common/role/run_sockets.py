"""Binds the sockets of a role: at ipc on one machine; with CURVE at a port of its address on several machines."""

from __future__ import annotations

from typing import Any

import msgspec

from simul.common.errors import ConfigError
from simul.common.role.run_directory import RunDir, address_name
from simul.common.transport import PullSocket, RouterSocket


def bind_router(run_dir: RunDir, name: str, index: int = 0, **options: Any) -> RouterSocket:
    """The bound socket called `name` of this process. Its `endpoint` is what `Report.endpoints` says to the others.

    On several machines a process that starts again takes the port that it had, if it is free: the others find it there.

    Args:
        index: of the inference server, or rank of the learner, that it belongs to.
        options: of RouterSocket, without its keys.

    Raises ConfigError.
    """
    book = run_dir.addresses()
    if book is None:
        return RouterSocket(run_dir.endpoint(name, index), **options)
    keys = run_dir.keys_to_bind(name)
    former = book.endpoints.get(address_name(name, index), "")
    if former.startswith(f"tcp://{book.host}:"):
        try:
            return RouterSocket(former, keys=keys, **options)
        except ConfigError:
            pass  # the port was given to another process meanwhile
    return RouterSocket(f"tcp://{book.host}:*", keys=keys, **options)


def bind_reports(run_dir: RunDir) -> PullSocket:
    """The supervisor's socket for reports. On several machines its address is written to the address book.

    It is also bound at its ipc endpoint, whose lock says that a supervisor runs in this directory. Raises ConfigError.
    """
    socket = PullSocket(run_dir.local_endpoint("status"), keys=run_dir.keys_to_bind("status"))
    book = run_dir.addresses()
    if book is not None:
        try:
            endpoint = socket.bind_also(f"tcp://{book.host}:*")
        except ConfigError:
            socket.close()
            raise
        run_dir.write_addresses(msgspec.structs.replace(book, endpoints={**book.endpoints, "status": endpoint}))
    return socket
