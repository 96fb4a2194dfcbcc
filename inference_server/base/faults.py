"""Contains unforeseen exceptions out of one message: a defect costs that message, not the server."""

from __future__ import annotations

import logging

from simul.inference_server.base.statistics import Statistics

_log = logging.getLogger("simul-inference")
FAULT_TEXT = "the server failed on this message, by a fault of its own; the sessions of its rows ended as aborted"


def record_fault(error: Exception, statistics: Statistics) -> None:
    """Count the exception and log its traceback (throttled, see `simul.common.runtime.logs`).

    The caller answers ERR_INTERNAL and leaves its tables consistent. DeviceLost is raised again: no batch can succeed.
    """
    from simul.inference_server.engine.engine import DeviceLost  # imports torch, which the mock server does without

    if isinstance(error, DeviceLost):
        raise error
    statistics.faults += 1
    statistics.fault = f"{type(error).__name__}: {error}"[:200]
    _log.error("an exception out of one message, which is refused; or its batch, whose sessions end", exc_info=error)
