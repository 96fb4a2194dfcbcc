"""A request as a sequence of decisions: usually one; several at a team preview and in doubles.

steps = SingleStep(request, battle, encoder)
while True:
    observation, standing = steps.encode()
    command = steps.pick(an action that steps.choices.mask allows)
    if command is not None: send it to the simulator, once for all decisions
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from simul.env_worker.games.pokemon.battle_view.seat_battle import Request, SeatBattle, SeatView
from simul.env_worker.games.pokemon.encoding.actions import Choices, legal_choices, picks_wanted
from simul.env_worker.games.pokemon.encoding.encoder import SeatEncoder
from simul.env_worker.games.pokemon.host.tally import Standing
from simul.env_worker.games.pokemon.tables import layout


class HasMask(Protocol):
    """Has a mask: uint8 [A] as a bytearray, 1 = legal."""

    mask: bytearray


class RequestSteps(Protocol):
    """The decisions of one request; the module shows the loop."""

    @property
    def choices(self) -> HasMask:
        """The legal actions of the open decision."""
        ...

    @property
    def complete(self) -> bool:
        """True = no decision is open."""
        ...

    def pick(self, action: int) -> str | None:
        """Takes a legal action; returns the simulator command after the last one."""
        ...

    def refuse(self) -> None:
        """The simulator refused the command: take the last action back. The caller masks it."""
        ...

    def encode(self) -> tuple[NDArray[np.float16], Standing]:
        """The observation of the open decision."""
        ...


class SingleStep:
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


class PreviewSteps:
    """A team preview: who leads, and where only some Pokemon may come, who follows.

    Each pick is a decision: action i picks own.i. Where all six come, one pick (the lead) is made and the others follow
    in team order. The command is sent after the last pick. The preview is encoded from a battle of its own; the real
    one begins with the first turn.

    Attributes:
        choices: the mask of the next pick.
    """

    leads = 1
    first_action = 0  # picks own.0
    numbers_start = layout.PREVIEW_START

    def __init__(self, battle: SeatView, gen: int, request: Request, extras: layout.Extras = layout.PLAIN) -> None:
        """`battle` has been fed what came before `request`."""
        self._extras = extras
        self._request = request
        self._picks: list[int] = []
        self._wanted = picks_wanted(request, self.leads)
        shown = self._open(battle._player_role or "", gen)
        shown._teampreview_opponent_team = battle._teampreview_opponent_team
        shown._team_size = battle._team_size
        shown.sync(request)
        for mon in shown._team.values():
            mon._active = False  # the request calls the first ones active
        for position in range(min(len(shown._team), layout.TEAM_SIZE)):
            self.choices.mask[self.first_action + position] = 1

    @property
    def complete(self) -> bool:
        """True = the last pick is made."""
        return len(self._picks) == self._wanted

    def pick(self, action: int) -> str | None:
        """Takes a legal pick; returns the command after the last one. Pokemon that it does not name follow in order."""
        self._picks.append(action - self.first_action)
        self.choices.mask[action] = 0
        return "team " + ",".join([str(position + 1) for position in self._picks]) if self.complete else None

    def refuse(self) -> None:
        """The simulator refused the command: take the last pick back."""
        del self._picks[-1]

    def encode(self) -> tuple[NDArray[np.float16], Standing]:
        """The observation of the next pick."""
        observation, standing = self._observe()
        order = [0.0] * layout.TEAM_SIZE
        for place, position in enumerate(self._picks, start=1):
            order[position] = place / 6
        start = self.numbers_start
        observation[start : start + 2 + len(order)] = (1.0, self._wanted / 6, *order)
        return observation, standing

    def _open(self, role: str, gen: int) -> SeatView:
        """A fresh battle, with choices and an encoder to go with it."""
        self.choices: HasMask = Choices()
        battle = SeatBattle(role, gen)
        self._encoder = SeatEncoder(battle, gen, self._extras)
        return battle

    def _observe(self) -> tuple[NDArray[np.float16], Standing]:
        """The observation without the preview's own numbers."""
        assert isinstance(self.choices, Choices)
        return self._encoder.encode(self._request, self.choices), self._encoder.standing
