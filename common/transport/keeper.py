"""Files of bound endpoints that vanish while their owner lives: cleaners of temporary files take them."""

from __future__ import annotations

import os

from common.errors import ConfigError
from common.transport.base import Socket

LOOK_EVERY_SEC = 1.0


class EndpointKeeper:
    """Looks once a second, and makes again what has vanished. Without it nobody new would reach the owner."""

    def __init__(self, *sockets: Socket) -> None:
        self._sockets = sockets
        self._next = 0.0
        self._said: dict[Socket, str] = {}

    def look(self, now: float) -> list[str]:
        """Sentences on what has vanished since the last look. Never raises: who is connected plays on."""
        if now < self._next:
            return []
        self._next = now + LOOK_EVERY_SEC
        return [sentence for socket in self._sockets if (sentence := self._keep(socket))]

    def _keep(self, socket: Socket) -> str:
        """A sentence where it has vanished; one only while it cannot be mended for the same reason."""
        former = self._said.pop(socket, "")
        gone = [file for file in socket.files if not os.path.exists(file)]
        if not gone:
            return ""
        try:
            socket.bind_again()
        except ConfigError as error:
            self._said[socket] = str(error)
            return "" if former == str(error) else f"{gone[0]} has vanished. {error}"
        return f"{gone[0]} had vanished and was made again: something removes files of running programs there."
