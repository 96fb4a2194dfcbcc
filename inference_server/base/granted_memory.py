"""The server's side of shared memory: clients on this machine write their observations where the server reads them.

Memory is a sealed anonymous file whose size is fixed: a client can write nonsense into it, as into a message,
but cannot remove a page that the server reads. Only processes of the same user can open it (through /proc), and it is
gone with the last who has it. Linux only; elsewhere, and to clients from other machines, none is granted.
"""

from __future__ import annotations

import mmap
import os
import secrets
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simul.common.errors import ERR_SHAPE, ERR_VALUE, ProtocolError
from simul.common.protocol import messages
from simul.common.protocol.codec import Tensors
from simul.common.protocol.shared_memory import ALIGNMENT, anonymous_file, can_share_memory, shared_path
from simul.common.protocol.specs import GameSpec

MESSAGES = 2  # of the most rows have room
MAX_BYTES = 256 * 1024 * 1024  # reserved for a client at most; the system backs what is touched
NONCE_BYTES = 16


class AnonymousFile:
    """A sealed file of `size` zeros behind its nonce, mapped. Raises OSError where the system has none to give."""

    def __init__(self, size: int, *, writable: bool) -> None:
        nonce = secrets.token_hex(NONCE_BYTES)
        self._file = anonymous_file(nonce.encode(), size, writable=True)
        try:
            self._memory = mmap.mmap(self._file, size, prot=mmap.PROT_READ | mmap.PROT_WRITE * writable)
        except OSError:
            self.close()
            raise
        self.grant = messages.SharedMemory(path=shared_path(self._file), size=size, nonce=nonce)

    def close(self) -> None:
        """Close the file: it can no longer be opened; existing mappings stay valid."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


class ClientMemory(AnonymousFile):
    """One client's memory, which it writes and the server reads."""

    def __init__(self, size: int) -> None:
        super().__init__(size, writable=False)

    def observation(self, spec: GameSpec, offset: int, rows: int) -> NDArray[Any]:
        """A view of the observations at `offset`, wire dtype [rows, D]. Raises ProtocolError ERR_VALUE.

        The client can write here at any time: nothing is judged by what stands here. Each row is read once, when it is
        copied into its batch, and checked, forwarded and recorded from the copy.
        """
        size = rows * spec.observation_size * spec.dtype().itemsize
        if offset < ALIGNMENT or offset % ALIGNMENT or offset + size > self.grant.size:
            raise ProtocolError(
                ERR_VALUE,
                f"observation_at {offset} with {size} bytes; expected a multiple of {ALIGNMENT} from {ALIGNMENT} up, "
                f"and an end within {self.grant.size}",
            )
        flat = np.frombuffer(self._memory, spec.dtype(), rows * spec.observation_size, offset)
        return flat.reshape(rows, spec.observation_size)


def memory_size(endpoint: str, spec: GameSpec, rows: int) -> int:
    """Bytes of a client's memory at `endpoint`, with STEP messages of at most `rows`; 0: none is granted here."""
    if not can_share_memory(endpoint):
        return 0
    return min(MAX_BYTES, ALIGNMENT + MESSAGES * rows * spec.observation_size * spec.dtype().itemsize)


def with_observation(memory: ClientMemory | None, spec: GameSpec, offset: int, tensors: Tensors) -> Tensors:
    """The tensors of a STEP whose observation lies at `offset` of its client's memory. Raises ProtocolError."""
    if memory is None:
        raise ProtocolError(ERR_VALUE, "observation_at needs shared memory, and WELCOME granted none; send the tensor")
    if "observation" in tensors:
        raise ProtocolError(ERR_SHAPE, "the observation came twice, as a tensor and by observation_at; expected one")
    keys = tensors.get("keys")
    rows = len(keys) if keys is not None and keys.ndim else 0
    return {**tensors, "observation": memory.observation(spec, offset, rows)}
