"""A policy's seat in doubles: every request becomes one decision of each slot that has a choice."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from simul.env_worker.games.pokemon.battle_view.seat_battle import Request, SeatView
from simul.env_worker.games.pokemon.doubles import layout
from simul.env_worker.games.pokemon.doubles.actions import FIRST_SWITCH, SlotChoices
from simul.env_worker.games.pokemon.doubles.battle import SeatDoubleBattle
from simul.env_worker.games.pokemon.doubles.encoder import DoubleEncoder
from simul.env_worker.games.pokemon.doubles.round import Round
from simul.env_worker.games.pokemon.encoding.preview import Preview
from simul.env_worker.games.pokemon.source.request_steps import Asking
from simul.env_worker.games.pokemon.source.rewards import Standing
from simul.env_worker.games.pokemon.source.seat import ReadingSeat


class DoubleSeat(ReadingSeat):
    """Reads the battle itself, as `ReadingSeat` does in singles."""

    def _make_battle(self, role: str) -> SeatView:
        battle = SeatDoubleBattle(role, self._gen)
        self._double_encoder = DoubleEncoder(battle, self._gen)
        return battle

    def _survey(self) -> Standing:
        return self._double_encoder.survey()

    def _ask(self, request: Request) -> Asking:
        if "teamPreview" in request:
            return DoublePreview(self.battle, self._gen, request)
        # Only the slot that decides last can be refused for something hidden: the other's choice stands.
        settled = self._asking.picks[:-1] if self.redo and isinstance(self._asking, Round) else []
        self.battle.sync(request)
        asked = Round(request, self.battle.position, self._double_encoder)
        asked.repeat(settled)
        return asked


class DoublePreview(Preview):
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
