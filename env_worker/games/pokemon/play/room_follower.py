"""The following process for rooms on poke-env's event loop: each command is awaited.

number = rooms.follow(seat)
row = await rooms.see(number, seat, request_number, lines, request)
choice = await rooms.act(number, seat, request_number, an action that row.mask allows)
rooms.forget(number)
"""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import Callable
from itertools import count
from typing import Any

from poke_env.concurrency import POKE_LOOP

from simul.common.errors import SimulError
from simul.env_worker.games.pokemon.host.follower import Follower
from simul.env_worker.games.pokemon.host.host_messages import CommandError, SeatChoice, SeatRow

LOOK_SEC = 0.25  # how long a dead process, or one that hangs, may go unnoticed
Answer = SeatRow | SeatChoice | CommandError


class RoomLost(SimulError):
    """A room that is not followed any more. Caught by the agent, which forfeits it unless it is over."""


class RoomFollower:
    """Many rooms, each with one seat. Lives on the loop; `follower` has been started.

    `on_trouble`: called with one sentence when the process dies again and again.
    """

    def __init__(self, follower: Follower, on_trouble: Callable[[str], None]) -> None:
        self._follower = follower
        self._on_trouble = on_trouble
        self._numbers = count(1)
        self._open: dict[int, dict[int, deque[asyncio.Future[Answer]]]] = {}  # by room and request number
        self._listening: asyncio.Task[None] | None = None

    def follow(self, seat: int) -> int:
        """A room, our `seat` in it; returns its number."""
        if self._listening is None:
            self._listening = POKE_LOOP.create_task(self._listen())
        number = next(self._numbers)
        self._open[number] = defaultdict(deque)
        self._follower.follow(number, (seat == 0, seat == 1))
        return number

    async def see(self, room: int, seat: int, request_number: int, lines: str, request: dict[str, Any]) -> Answer:
        """Lines and a request: its row. Raises RoomLost, as do `act` and `refuse`."""
        self._follower.see(room, seat, request_number, lines, request)
        return await self._answer(room, request_number)

    async def act(self, room: int, seat: int, request_number: int, action: int) -> Answer:
        """An action: the choice, the row of the request's next decision, or an error: the request is not open."""
        self._follower.act(room, seat, request_number, action)
        return await self._answer(room, request_number)

    async def refuse(self, room: int, seat: int, request_number: int) -> Answer:
        """The server refuses the choice: a row without it, or an error: there is no other."""
        self._follower.refuse(room, seat, request_number, "invalid")
        return await self._answer(room, request_number)

    def unavailable(self, room: int, seat: int, request_number: int) -> None:
        """The server refuses the choice and sends another request."""
        self._follower.refuse(room, seat, request_number, "unavailable")

    def forget(self, room: int) -> None:
        """The room is over; what it waits for raises RoomLost."""
        self._follower.forget(room)
        self._lose(room, "it is over")

    def close(self) -> None:
        """Stop the process."""
        if self._listening is not None:
            self._listening.cancel()
        self._follower.close()

    async def _answer(self, room: int, request_number: int) -> Answer:
        if room not in self._open:
            raise RoomLost("it is not followed any more")
        future: asyncio.Future[Answer] = POKE_LOOP.create_future()
        self._open[room][request_number].append(future)
        self._follower.flush()
        return await future

    async def _listen(self) -> None:
        try:
            while True:
                self._poll()
                await _readable(self._follower.files())
        except Exception as error:  # nobody awaits this task, and every room awaits its answers
            self._on_trouble(f"Battles cannot be followed any more: {error!r}.")
            raise

    def _poll(self) -> None:
        tick = self._follower.poll()
        answers: list[Answer] = [*tick.rows, *tick.choices, *tick.errors]
        for answer in answers:
            self._give(answer)
        for end in tick.ended:
            self._lose(end.battle, "what the server sent could not be read")

    def _give(self, answer: Answer) -> None:
        waiting = self._open.get(answer.battle or 0, {}).get(answer.request_number or 0)
        if waiting and not (future := waiting.popleft()).done():
            future.set_result(answer)

    def _lose(self, room: int, why: str) -> None:
        for waiting in self._open.pop(room, {}).values():
            for future in waiting:
                if not future.done():
                    future.set_exception(RoomLost(why))


async def _readable(files: list[int]) -> None:
    """Until one of the files is readable, or LOOK_SEC."""
    ready = asyncio.Event()
    for file in files:
        POKE_LOOP.add_reader(file, ready.set)
    try:
        async with asyncio.timeout(LOOK_SEC):
            await ready.wait()
    except TimeoutError:
        pass
    finally:
        for file in files:
            POKE_LOOP.remove_reader(file)
