"""Unrolls that lie in memory of servers on this machine: each is copied as it comes, then its place is free again."""

from __future__ import annotations

from collections.abc import Container

from simul.common.protocol.messages import Unroll, UnrollMemory
from simul.common.protocol.shared_memory import map_memory
from simul.common.protocol.unroll_layout import Tables, UnrollLayout, unroll_at
from simul.learner.batches import RejectedUnroll


class UnrollMemories:
    """One a server, by its peer. What a server that died had handed over can still be read."""

    def __init__(self, layout: UnrollLayout) -> None:
        self._layout = layout
        self._tables: dict[bytes, Tables] = {}

    def open(self, peer: bytes, memory: UnrollMemory, living: Container[bytes]) -> str:
        """Open a server's memory, if it can be had here. A sentence where it is not what this run's should be.

        That of servers not among the `living` is let go: whatever they had said has been read long ago.
        """
        self._tables = {name: tables for name, tables in self._tables.items() if name in living}
        layout, found = self._layout, (memory.unroll_length, memory.state_size, memory.memory.size)
        expected = (layout.unroll_length, layout.state_size, layout.size(max(memory.places, 0)))
        if found != expected:
            return (
                f"A server's memory has (unroll length, state size, bytes) {found}; expected {expected}. "
                "Its unrolls come through the socket."
            )
        try:
            mapped = map_memory(memory.memory, writable=False)
        except (OSError, ValueError):
            return ""  # another machine, user or container
        self._tables[peer] = layout.tables(mapped, memory.places)
        return ""

    def has(self, peer: bytes) -> bool:
        """This server's memory is open."""
        return peer in self._tables

    def tensors(self, peer: bytes, message: Unroll) -> Tables:
        """The tensors of an unroll, copied.

        Raises:
            RejectedUnroll: `no_memory`: it was meant for an earlier life of this learner; `taken_back`: the learner was
                silent for so long that the server wrote over it; `bad_shape`: there is no such place.
        """
        steps = message.length if 1 <= message.length <= self._layout.unroll_length else 0
        if (tables := self._tables.get(peer)) is None:
            raise RejectedUnroll("no_memory", "it lies in memory that this learner does not have open", steps)
        places = len(tables["serial"])
        if not steps or not 0 <= message.place < places:
            found, wanted = (message.length, message.place), (self._layout.unroll_length, places - 1)
            raise RejectedUnroll("bad_shape", f"(length, place) {found}; expected at most {wanted}", steps)
        copies = {name: view.copy() for name, view in unroll_at(tables, message.place, steps).items()}
        if tables["serial"][message.place] != message.serial:  # looked at last: it is changed before anything else is
            raise RejectedUnroll("taken_back", "the server took it back before it was read", steps)
        return copies
