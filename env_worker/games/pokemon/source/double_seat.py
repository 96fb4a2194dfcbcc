"""A policy's seat in doubles: every request becomes one decision of each slot that has a choice."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from simul.env_worker.games.pokemon.battle_view.seat_battle import Request, SeatDoubleBattle, SeatView
from simul.env_worker.games.pokemon.doubles.actions import FIRST_SWITCH, PASS, SlotChoices, slot_choices
from simul.env_worker.games.pokemon.doubles.encoder import DoubleEncoder
from simul.env_worker.games.pokemon.host.tally import Standing
from simul.env_worker.games.pokemon.source.request_steps import PreviewSteps, RequestSteps
from simul.env_worker.games.pokemon.source.seats import ReadingSeat
from simul.env_worker.games.pokemon.tables import doubles_layout as layout


class DoubleSteps:
    """One request: the left slot decides, then the right one, whose mask depends on the first choice.

    A slot that can only pass is not asked. The simulator gets both choices in one command.

    Attributes:
        slot: the one that decides, 0 left, 1 right.
        choices: its mask.
        others: choices of the other slot.
        first: the left slot's action, None while it decides itself.
        picks: actions of the slots that were asked, in order.
        complete: True = the last of them has decided.
    """

    def __init__(self, request: Request, position: Callable[[str], int], encoder: DoubleEncoder) -> None:
        self.slot = 0
        self.first: int | None = None
        self.picks: list[int] = []
        self.complete = False
        self._request = request
        self._position = position
        self._encoder = encoder
        self._commands: list[str] = []
        self.choices = self._of(0)
        self.others = self._of(1)
        if self.choices.idle:
            self._settle(PASS)

    def pick(self, action: int) -> str | None:
        """Takes a legal action; returns the command once both slots have decided."""
        self.picks.append(action)
        self._settle(action)
        return ", ".join(self._commands) if self.complete else None

    def refuse(self) -> None:
        """The simulator refused the command: take back the choice of the slot that decided last."""
        self.complete = False
        del self.picks[-1]
        del self._commands[self.slot :]
        if self.slot == 0:
            self.first = None

    def repeat(self, picks: Sequence[int]) -> None:
        """Repeat choices made in an earlier request of the same turn, as far as they are legal."""
        for action in picks:
            if self.complete or not self.choices.mask[action]:
                return
            self.pick(action)

    def encode(self) -> tuple[NDArray[np.float16], Standing]:
        """The observation of the slot that decides."""
        return self._encoder.encode(self._request, self), self._encoder.standing

    def _of(self, slot: int) -> SlotChoices:
        return slot_choices(self._request, slot, self._position, self.first)

    def _settle(self, action: int) -> None:
        """Take `action` for the slot that decides; a right slot that can only pass passes at once."""
        self._commands.append(self.choices.command(action))
        if self.slot == 1:
            self.complete = True
            return
        self.first = action
        right = self._of(1)
        if right.idle and not self.choices.idle:
            self._commands.append(right.command(PASS))
            self.complete = True
            return
        self.slot, self.others, self.choices = 1, self.choices, right


class DoubleSeat(ReadingSeat):
    """Reads the battle itself, as `ReadingSeat` does in singles."""

    def _make_battle(self, role: str) -> SeatView:
        battle = SeatDoubleBattle(role, self._gen)
        self._double_encoder = DoubleEncoder(battle, self._gen)
        return battle

    def _survey(self) -> Standing:
        return self._double_encoder.survey()

    def _steps_for(self, request: Request) -> RequestSteps:
        if "teamPreview" in request:
            return DoublePreviewSteps(self.battle, self._gen, request)
        # Only the slot that decides last can be refused for something hidden: the other's choice stands.
        settled = self._steps.picks[:-1] if self.redo and isinstance(self._steps, DoubleSteps) else []
        self.battle.sync(request)
        asked = DoubleSteps(request, self.battle.position, self._double_encoder)
        asked.repeat(settled)
        return asked


class DoublePreviewSteps(PreviewSteps):
    """Where all six come, both leads are picked."""

    leads = 2
    first_action = FIRST_SWITCH
    numbers_start = layout.PREVIEW_START
    slot = 0
    first: int | None = None

    def _open(self, role: str, gen: int) -> SeatView:
        self.choices: SlotChoices = SlotChoices()
        self.others = SlotChoices()
        battle = SeatDoubleBattle(role, gen)
        self._double_encoder = DoubleEncoder(battle, gen)
        return battle

    def _observe(self) -> tuple[NDArray[np.float16], Standing]:
        return self._double_encoder.encode(self._request, self), self._double_encoder.standing
