"""Battles whose connection was lost: their rooms are joined again, and tell all that has happened."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from poke_env.ps_client import PSClient

from simul.common.protocol.decisions import Decision
from simul.env_worker.games.pokemon.showdown.room_battle import RoomBattle


class Comeback:
    """One player's. Lives on poke-env's event loop.

    Attributes:
        rejoined: battles whose room was joined again.
        started_over: of those, such that were not as we knew them: the policy began anew.
        vanished: battles that the server did not know any more.
    """

    def __init__(self, tell: Callable[[Decision], None]) -> None:
        """`tell` takes the ends of sessions."""
        self.rejoined = self.started_over = self.vanished = 0
        self._tell = tell

    async def join(self, client: PSClient, rooms: Iterable[str]) -> None:
        """We are logged in again."""
        for room in rooms:
            await client.send_message(f"/join {room}")

    def begin(self, battle: RoomBattle, kinds: set[str]) -> bool:
        """A room's message with lines of these `kinds` is about to be read: True = it is the whole log once more."""
        battle.heard = "sentchoice" in kinds
        if "init" in kinds:
            battle.join_again()
        return "init" in kinds

    def end(self, battle: RoomBattle) -> None:
        """That log has been read."""
        self.rejoined += 1
        end = battle.joined()
        if end is not None:
            self.started_over += 1
            self._tell(end)

    def lose(self, battle: RoomBattle) -> None:
        """There is no such room any more: not won, not lost, and nothing more will come of it."""
        self.vanished += 1
        end = battle.vanish()
        if end is not None:
            self._tell(end)
