"""Logs are for rare events: one line with time, role and level, on stderr."""

from __future__ import annotations

import logging
import sys


def set_up(role: str, level: int = logging.INFO) -> logging.Logger:
    """The role's logger, e.g. `simul-inference-0`; everything else logs warnings only."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(name)s %(levelname)s %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logger = logging.getLogger(role)
    logger.setLevel(level)
    return logger
