"""Logs are for rare events: one line with time, role and level, on stderr."""

from __future__ import annotations

import logging
import os
import sys

NODE_VARIABLE = "SIMUL_NODE"  # environment: name of this machine in a run on several
MAX_A_MINUTE = 20


class RateLimitFilter(logging.Filter):
    """Limits each line of code to MAX_A_MINUTE records a minute: a fault of every row would fill the disk."""

    def __init__(self) -> None:
        super().__init__()
        self._minutes: dict[
            tuple[str, int], tuple[float, int]
        ] = {}  # (path, line) -> (start of the minute, records in it)

    def filter(self, record: logging.LogRecord) -> bool:
        """True if the record is written."""
        place = record.pathname, record.lineno
        began, lines = self._minutes.get(place, (record.created, 0))
        if record.created - began >= 60.0:
            began, lines = record.created, 0
        self._minutes[place] = began, lines + 1
        if lines + 1 == MAX_A_MINUTE:
            record.msg = f"{record.msg} (further ones within this minute are not logged)"
        return lines < MAX_A_MINUTE


def set_up(role: str, level: int = logging.INFO) -> logging.Logger:
    """The role's logger, e.g. `simul-inference-0`; everything else logs warnings only.

    In a run on several machines each line names the machine: `simul-inference-0@10.0.0.2`.
    """
    handler = logging.StreamHandler(sys.stderr)
    node = f"@{name}" if (name := os.environ.get(NODE_VARIABLE)) else ""
    handler.setFormatter(logging.Formatter(f"%(asctime)s %(name)s{node} %(levelname)s %(message)s"))
    handler.addFilter(RateLimitFilter())
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logger = logging.getLogger(role)
    logger.setLevel(level)
    return logger
