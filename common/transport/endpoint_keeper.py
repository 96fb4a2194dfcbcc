"""Files of bound endpoints that vanish while their owner lives: cleaners of temporary files take them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Protocol

from simul.common.protocol.errors import ConfigError
from simul.common.transport.bound import BoundEndpoint

LOOK_EVERY_SEC = 1.0


class Owner(Protocol):
    """Owns endpoints: a socket of ZeroMQ, or the server's proxy."""

    @property
    def bound(self) -> Sequence[BoundEndpoint]:
        """Those that it has."""


class EndpointKeeper:
    """Looks once a second, and makes again what has vanished. Without it nobody new would reach the owner."""

    def __init__(self, *owners: Owner) -> None:
        self._bound = [bound for owner in owners for bound in owner.bound]
        self._next = 0.0
        self._said: dict[BoundEndpoint, str] = {}

    def look(self, now: float) -> list[str]:
        """Sentences on what has vanished since the last look. Never raises: who is connected plays on."""
        if now < self._next:
            return []
        self._next = now + LOOK_EVERY_SEC
        return [sentence for bound in self._bound if (sentence := self._keep(bound))]

    def _keep(self, bound: BoundEndpoint) -> str:
        """A sentence where it has vanished; one only while it cannot be mended for the same reason."""
        former = self._said.pop(bound, "")
        gone = [file for file in bound.files if not os.path.exists(file)]
        if not gone:
            return ""
        try:
            bound.bind_again()
        except ConfigError as error:
            self._said[bound] = str(error)
            return "" if former == str(error) else f"{gone[0]} has vanished. {error}"
        return f"{gone[0]} had vanished and was made again: something removes files of running programs there."
