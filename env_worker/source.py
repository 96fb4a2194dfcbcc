"""EnvSource: what a game must offer so that a worker can host many of its envs at once.

The worker's loop calls it like this, and nothing else:

    source.start()
    while running:
        decisions = source.poll()           # all that are ready now, from all envs; never blocks
        client.submit(decisions)            # ONE Step message
        source.act(client.poll())           # as actions come
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from simul.common.protocol.decisions import Action, Decision
from simul.common.protocol.specs import GameSpec


class EnvSource(Protocol):
    """Hosts many envs. Numbers its envs 0..n-1, its seats, and each env's episodes 0, 1, 2, ... by itself."""

    spec: GameSpec
    envs: int  # number of envs it hosts

    def start(self) -> None:
        """Start every env. Raises ConfigError where the game cannot run at all."""

    def poll(self) -> list[Decision]:
        """Decisions and ends that became ready since the last call. Never blocks.

        A finished env starts its next episode by itself, unless the source is draining.
        """

    def act(self, actions: Sequence[Action]) -> None:
        """Apply answers. Those of an episode that is over, and acknowledged ends (-1), are ignored."""

    def episode(self, env: int) -> int:
        """Number of the env's running episode, -1 where none runs."""

    def abort(self, envs: Iterable[int], cause: str) -> None:
        """The server no longer knows these envs' sessions: count the episodes as aborted by `cause`, start new ones.

        No END rows are sent for sessions the server already lost; those of the env's other seats are ended as ABORTED.
        """

    def set_policies(self, names: Sequence[str]) -> None:
        """Policies that the server offers now; a source draws opponents from them when an episode starts."""

    def drain(self) -> None:
        """Start no new episodes. The running ones go on until `close`."""

    def idle(self) -> bool:
        """True when no episode is running (after `drain`, or when a fixed number of episodes is done)."""

    def files(self) -> list[int]:
        """File descriptors that become readable when poll() has something new (may change after a restart)."""

    def metrics(self) -> dict[str, Any]:
        """Counters since start. At least `episodes`: {started, finished, aborted: {cause: n}, alive}."""

    def close(self) -> None:
        """Stop everything; running episodes count as aborted by `shutdown`."""
