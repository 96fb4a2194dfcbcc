"""Processes that may end at any moment."""

from __future__ import annotations

import psutil


def alive(pid: int) -> bool:
    """Whether it runs; a zombie does not."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
