"""What servers send and the learner does not learn from."""

from __future__ import annotations

from simul.common.errors import SimulError


class RejectedError(SimulError):
    """An unroll, or samples, that cannot be learned from. Caught by the intake: dropped, and counted by `cause`.

    `rows`: steps of the unroll, 0 where that is unknown; or how many samples.
    """

    def __init__(self, cause: str, message: str, rows: int) -> None:
        super().__init__(message)
        self.cause = cause
        self.rows = rows
