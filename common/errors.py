"""The error tree. Each class names its handler; a message says what was expected, what came and what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class SimulError(Exception):
    """Base of everything Simul raises on purpose."""


class ConfigError(SimulError):
    """Bad configuration or start-up condition. Caught by `main()`: printed as a sentence, exit code 2."""


class ProtocolError(SimulError):
    """A message that breaks the wire contract. Caught by the receiver: answered with `code`, counted, never fatal."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class StaleRunError(SimulError):
    """A message of an older run_id of a client. Caught by the receiver: ignored and counted."""


class WeightsError(SimulError):
    """Weights that fail verification. Caught by the weight update: the old weights stay and the reason is logged."""


class UnreadableWeightsError(WeightsError):
    """Weights are not, or no longer, at the given path. Caught by the weight update: it requests the bytes."""


class CheckpointError(SimulError):
    """A checkpoint that cannot be used. Caught at start-up: the one before is tried, or the sentence is printed."""


class StoreError(SimulError):
    """A store that cannot be used now. Caught by the mirror, which tries again, and at start-up: printed, exit code 2.

    Attributes:
        refused: trying again would not help: a setting, an extra, the credentials or the bucket is wrong.
    """

    def __init__(self, message: str, *, refused: bool = False) -> None:
        super().__init__(message)
        self.refused = refused


class DivergedError(SimulError):
    """Weights that are no longer finite. Ends the learner, which is started again from its newest checkpoint."""


class NothingLearnedError(SimulError):
    """No gradient is finite any longer. Ends the learner and the run: a restart would receive the same unrolls."""


class EnvError(SimulError):
    """An env or its simulator failed. Caught by the worker: the env's episode is aborted and a new one starts."""


class FailingEnvError(SimulError):
    """Too many episodes fail, or none can begin. Ends the worker and the run: a restart would meet the same."""


class InferenceError(SimulError):
    """The server answered a row with an error, or is gone. Raised to the caller of the client."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code


# Stable error codes of the wire protocol (docs/protocol.md explains each).
ERR_MALFORMED = "ERR_MALFORMED"
ERR_VERSION = "ERR_VERSION"
ERR_HELLO = "ERR_HELLO"
ERR_SPEC = "ERR_SPEC"
ERR_LIMIT = "ERR_LIMIT"
ERR_SHAPE = "ERR_SHAPE"
ERR_VALUE = "ERR_VALUE"
ERR_MASK = "ERR_MASK"
ERR_NO_SESSION = "ERR_NO_SESSION"
ERR_ORDER = "ERR_ORDER"
ERR_POLICY = "ERR_POLICY"
ERR_CAPACITY = "ERR_CAPACITY"
ERR_BUSY = "ERR_BUSY"
ERR_DEADLINE = "ERR_DEADLINE"
ERR_DENIED = "ERR_DENIED"
ERR_STALE_RUN = "ERR_STALE_RUN"
ERR_NOT_READY = "ERR_NOT_READY"
ERR_INTERNAL = "ERR_INTERNAL"


def nearest_name(value: object, known: Iterable[str], cutoff: float = 0.6) -> str:
    """The nearest of the known names, whatever the case; empty where none is as similar as `cutoff`.

    A name of the same letters is nearer than any other.
    """
    folded, wanted = {name.casefold(): name for name in known}, str(value).casefold()
    close = difflib.get_close_matches(wanted, folded, cutoff=cutoff)
    close.sort(key=lambda name: sorted(name) != sorted(wanted))
    return folded[close[0]] if close else ""


def did_you_mean(value: object, known: Iterable[str], shown: str = "{}", cutoff: float = 0.6) -> str:
    """`; did you mean NAME?`, of the nearest of the known names, as in `shown`; empty where none is near."""
    near = nearest_name(value, known, cutoff)
    return f"; did you mean {shown.format(near)}?" if near else ""
