"""Our seat in a room: the battle as decisions, and a session that can begin anew within it.

decision = await seat.see(request_number, lines, request)
while True:
    answer = await seat.order(request_number, an action that decision.mask allows)
    if isinstance(answer, str): send it to the server, unless it is empty
    else: decision = answer
"""

from __future__ import annotations

from typing import Any

from simul.common.errors import EnvError
from simul.common.protocol.decisions import Decision
from simul.env_worker.games.pokemon.host.host_messages import SeatChoice, SeatRow
from simul.env_worker.games.pokemon.play.room_follower import RoomFollower
from simul.env_worker.games.pokemon.source.own_seat import OwnSeat
from simul.env_worker.games.pokemon.source.rewards import RewardWeights
from simul.env_worker.games.pokemon.source.seats import PolicySeat


class OnlineSeat(PolicySeat):
    """Tracked and encoded by the following process. What is awaited raises RoomLost, and OwnCodeError as PolicySeat."""

    def __init__(
        self, rooms: RoomFollower, env: int, seat: int, episode: int, policy: str, flags: int,
        own: OwnSeat | None = None,
    ) -> None:  # fmt: skip
        super().__init__(env, seat, episode, policy, flags, RewardWeights(), own)
        self._rooms = rooms
        self._room = rooms.follow(seat)

    async def see(self, request_number: int, lines: str, request: dict[str, Any]) -> Decision:
        """The decision that a request asks for; `lines`: since the last one."""
        if self.own is not None:
            self.own.read(lines, request)
        answer = await self._rooms.see(self._room, self.seat, request_number, lines, request)
        assert isinstance(answer, SeatRow)
        return self.decide(answer)

    async def refused(self) -> Decision | None:
        """The open request without the choice that the server has refused; None where there is no other."""
        self.redo = True
        answer = await self._rooms.refuse(self._room, self.seat, self.request_number)
        return self.decide(answer) if isinstance(answer, SeatRow) else None

    def unavailable(self) -> None:
        """The server has refused the choice; its next request asks again."""
        self.redo = True
        self._rooms.unavailable(self._room, self.seat, self.request_number)

    async def order(self, request_number: int, action: int) -> str | Decision:
        """The choice in the simulator's words, empty where another request is open by now; or the next decision."""
        self.waiting = False
        answer = await self._rooms.act(self._room, self.seat, request_number, action)
        if isinstance(answer, SeatChoice):
            return answer.choice
        if isinstance(answer, SeatRow):
            return self.decide(answer)
        if answer.kind == "stale":
            return ""
        raise EnvError(answer.message)

    def start_over(self) -> Decision:
        """The open request once more, as the first decision of a new session; the policy's recurrent state is lost."""
        self.episode += 1
        self.step = -1
        self.redo = False
        assert self._row is not None
        return self.decide(self._row)

    def close(self) -> None:
        """The room is over."""
        self._rooms.forget(self._room)
