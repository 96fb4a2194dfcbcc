"""A scripted player's seat in a battle."""

from __future__ import annotations

from simul.env_worker.games.pokemon.battle_view.seat_battle import Request, SeatView
from simul.env_worker.games.pokemon.opponents.players import SeatPlayer


class ScriptedSeat:
    """A seat that a scripted player answers, inside this process."""

    scripted = True

    def __init__(self, seat: int, battle: SeatView, player: SeatPlayer, seed: int) -> None:
        self.seat = seat
        self.battle = battle
        self.request_number = 0
        self.turn = 0
        self._player = player
        self._seed = seed
        self._answers = 0

    def answer(self, request_number: int, request: Request) -> tuple[str, bool]:
        """(the command, True if the player fell back on `default`)."""
        self.request_number = request_number
        self.battle.parse_request(request)
        self.turn = self.battle._turn
        self._answers += 1
        choice = self._player.choose(self.battle, request, self._seed + self._answers)
        return choice.command, choice.defaulted
