"""One seat as the user's observation and reward see it: poke-env's `Battle`, fed with the seat's lines."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from poke_env.battle.abstract_battle import AbstractBattle

from simul.common.runtime.error_place import describe_error
from simul.env_worker.games.pokemon.opponents.stock_battle import StockReader
from simul.env_worker.games.pokemon.source.own_code import OwnCode, OwnCodeError


class OwnSeat:
    """What is computed of one seat's battle. All methods raise OwnCodeError.

    seat.read(lines, request)          # before the decision that the request asks for
    seat.observe(row), seat.reward(parts)
    seat.finish(outcome, parts)        # after the last lines

    Attributes:
        paid: what the user's reward has paid.
    """

    def __init__(self, code: OwnCode, seat: int, battle: StockReader) -> None:
        self.paid = 0.0
        self._code = code
        self._seat = seat
        self._battle = battle
        self._before: AbstractBattle | None = None

    @property
    def reward_name(self) -> str:
        """Of the user's reward; empty where there is none."""
        return "" if self._code.reward is None else self._code.reward.name

    def read(self, lines: str, request: dict[str, Any] | None) -> None:
        """Lines since the last request, and the request; None: the battle is over."""
        try:
            self._battle.feed(lines, strict=True)
            if request is not None:
                self._battle.parse_request(request)
        except Exception as error:
            raise OwnCodeError(f"poke-env's Battle: {describe_error(error, ())}") from error

    def observe(self, builtin: NDArray[np.float16]) -> NDArray[Any]:
        """What is sent of a decision. `builtin`: the host's row."""
        observation = self._code.observation
        return builtin if observation is None else observation.observe(builtin, self._battle)

    def begin(self) -> None:
        """The session's first decision is made: rewards count from here."""
        self._keep()

    def reward(self, parts: Mapping[str, float]) -> float:
        """What was earned since the last decision; `parts`: of it, the built-in rewards."""
        if self._code.reward is None:
            return 0.0
        reward = self._code.reward.pay(self._battle, self._before, self._seat, parts)
        self.paid += reward
        self._keep()
        return reward

    def finish(self, outcome: int, parts: Mapping[str, float]) -> float:
        """The same at the end of a battle that was played out: 1 won, 0 tied, -1 lost."""
        if self._code.reward is None:
            return 0.0
        if outcome:
            name = self._battle.player_username
            self._battle.won_by(name if outcome > 0 else f"not {name}")
        else:
            self._battle.tied()
        return self.reward(parts)

    def _keep(self) -> None:
        if self._code.reward is not None and self._code.reward.wants_before:
            self._before = copy.deepcopy(self._battle)
