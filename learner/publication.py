"""One version of a policy's weights on its way to servers: in memory for those on this machine, else by the socket."""

from __future__ import annotations

import os

import msgspec
import numpy as np

from simul.common.protocol.codec import Frame, encode
from simul.common.protocol.messages import Weights
from simul.common.protocol.shared_memory import anonymous_file, file_number, shared_path


class Publication:
    """Weights that are published. Nothing of them lies in memory before a server asks for it, nor after `close`."""

    def __init__(self, message: Weights, weights: bytes) -> None:
        self.version = message.policy_version
        self._message = message
        self._weights = weights
        self._file = -1

    def frames(self, *, in_memory: bool) -> list[Frame]:
        """The message: where the weights lie in memory, if the system has any to give; else with all their bytes."""
        if in_memory and self._lies_in_memory():
            place = {"path": shared_path(self._file), "file_number": file_number(self._file)}
            return encode(msgspec.structs.replace(self._message, **place))
        return encode(self._message, {"safetensors": np.frombuffer(self._weights, np.uint8)})

    def close(self) -> None:
        """Nobody can open the memory any longer; who reads it still has it."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _lies_in_memory(self) -> bool:
        if self._file < 0:
            try:
                self._file = anonymous_file(self._weights, len(self._weights), writable=False)
            except OSError:
                return False
        return True
