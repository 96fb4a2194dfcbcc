"""Unroll tables that the learner on this machine can open: an unroll is handed over by the number of its place."""

from __future__ import annotations

from simul.common.protocol import messages
from simul.common.protocol.unroll_layout import UnrollLayout
from simul.inference_server.frontend.shared_memory import AnonymousFile
from simul.inference_server.unrolls.unroll_slots import Places

MOST_LENT_BYTES = 256 * 1024 * 1024


class UnrollMemory(AnonymousFile):
    """Places for `rows` unrolls in the making, and for as many that the learner reads, but at most MOST_LENT_BYTES.

    The system backs what is touched. Raises OSError where it has no such memory to give.
    """

    def __init__(self, layout: UnrollLayout, rows: int) -> None:
        count = rows + max(1, min(rows, MOST_LENT_BYTES // layout.place_bytes))
        super().__init__(layout.size(count), writable=True)
        self.rows = rows
        self.tables = layout.tables(self._memory, count)
        self.places = Places(rows, self.tables["serial"])
        self.message = messages.UnrollMemory(
            memory=self.grant, places=count, unroll_length=layout.unroll_length, state_size=layout.state_size
        )
