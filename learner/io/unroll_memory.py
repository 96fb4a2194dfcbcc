"""Unrolls in the memory of servers on this machine. I/O thread only."""

from __future__ import annotations

from collections.abc import Container

from simul.common.protocol.messages import Unroll, UnrollMemory
from simul.common.protocol.shared_memory import map_memory
from simul.common.protocol.unroll_layout import Tables, UnrollLayout, unroll_at
from simul.learner.io.rejected import RejectedError


class UnrollMemories:
    """Shared memory of local servers by peer, readable after their death. Unrolls are copied as they arrive."""

    def __init__(self, layout: UnrollLayout) -> None:
        self._layout = layout
        self._tables: dict[bytes, Tables] = {}

    def map_memory_of(self, peer: bytes, memory: UnrollMemory, living: Container[bytes]) -> str:
        """Map a server's memory if this machine has it. Returns a sentence where it does not fit this run.

        Drops the memory of servers not in `living`; all their messages have been read.
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

    def is_mapped(self, peer: bytes) -> bool:
        """True when this server's memory is mapped."""
        return peer in self._tables

    def copy_unroll(self, peer: bytes, message: Unroll) -> Tables:
        """The tensors of an unroll, copied.

        Raises:
            RejectedError: `no_memory`: the unroll was sent to an earlier life of this learner; `taken_back`: the
                server reused the place because the learner was silent; `bad_shape`: there is no such place.
        """
        steps = message.length if 1 <= message.length <= self._layout.unroll_length else 0
        if (tables := self._tables.get(peer)) is None:
            raise RejectedError("no_memory", "it is in memory that this learner has not mapped", steps)
        places = len(tables["serial"])
        if not steps or not 0 <= message.place < places:
            found, wanted = (message.length, message.place), (self._layout.unroll_length, places - 1)
            raise RejectedError("bad_shape", f"(length, place) {found}; expected at most {wanted}", steps)
        copies = {name: view.copy() for name, view in unroll_at(tables, message.place, steps).items()}
        if tables["serial"][message.place] != message.serial:  # read last: the server changes it before the rows
            raise RejectedError("taken_back", "the server took it back before it was read", steps)
        return copies
