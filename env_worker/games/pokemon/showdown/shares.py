"""One worker's share of the connections that all workers may have together."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import msgspec

from simul.common.config.games.pokemon import ShowdownAddress
from simul.common.errors import ConfigError


def share_of(servers: Sequence[ShowdownAddress], index: int, workers: int) -> tuple[ShowdownAddress, ...]:
    """The servers that worker `index` of `workers` uses, each with this worker's connections.

    Connections come in pairs. Pairs are numbered across all servers and dealt out one by one, so that no server sees
    more than its `max_connections` and no worker has two pairs more than another.

    Raises:
        ConfigError: there are fewer pairs than workers, so that one would have none.
    """
    pairs = [server.max_connections // 2 for server in servers]
    if servers and sum(pairs) < workers:
        raise ConfigError(
            f"pokemon.servers allow {sum(pairs)} pairs of connections, and there are {workers} workers, each of which "
            f"needs one. Raise max_connections to {2 * workers} in all, or set workers.count to {sum(pairs)}."
        )
    ends = list(accumulate(pairs))
    own = [sum(number % workers == index for number in range(end - count, end)) for count, end in zip(pairs, ends)]
    return tuple(
        msgspec.structs.replace(server, max_connections=2 * count) for server, count in zip(servers, own) if count
    )
