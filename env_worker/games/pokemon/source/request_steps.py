"""A request as the decisions it takes: usually one; several at a team preview and in doubles.

asking = Turn(request, battle, encoder)
while True:
    observation, standing = asking.encode()
    command = asking.pick(an action that asking.choices.mask allows)
    if command is not None: the simulator is told, once for all of them
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from simul.env_worker.games.pokemon.battle_view.seat_battle import Request, SeatView
from simul.env_worker.games.pokemon.encoding.actions import legal_choices
from simul.env_worker.games.pokemon.encoding.encoder import SeatEncoder
from simul.env_worker.games.pokemon.source.rewards import Standing


class Masked(Protocol):
    """Whatever has a mask: uint8 [A] as a bytearray, 1 = legal."""

    mask: bytearray


class Asking(Protocol):
    """See the module."""

    @property
    def choices(self) -> Masked:
        """What the open decision may answer."""
        ...

    @property
    def complete(self) -> bool:
        """True = nothing more is to be decided."""
        ...

    def pick(self, action: int) -> str | None:
        """Takes a legal action; the simulator's words after the last one."""
        ...

    def refuse(self) -> None:
        """The simulator refused those words: the last action is taken back. The caller masks it."""
        ...

    def encode(self) -> tuple[NDArray[np.float16], Standing]:
        """The observation of the open decision."""
        ...


class Turn:
    """An ordinary request of singles: one decision."""

    def __init__(self, request: Request, battle: SeatView, encoder: SeatEncoder) -> None:
        """`battle` is in sync with the request."""
        self.choices = legal_choices(request, battle.position)
        self.complete = False
        self._request = request
        self._encoder = encoder

    def pick(self, action: int) -> str:
        self.complete = True
        return self.choices.command(action)

    def refuse(self) -> None:
        self.complete = False

    def encode(self) -> tuple[NDArray[np.float16], Standing]:
        return self._encoder.encode(self._request, self.choices), self._encoder.standing
