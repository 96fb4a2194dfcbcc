"""Challenges that are accepted or made, and their outcomes until a battle begins."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from poke_env.concurrency import POKE_LOOP
from poke_env.player import Player

from simul.common.errors import EnvError
from simul.env_worker.games.pokemon.showdown.client import ShowdownClient, user_id

BEGIN_SEC = 10.0  # between a challenge that is accepted and its battle
CHALLENGE_EVERY_SEC = 10.5  # rate limit of public servers
TOO_SOON = "less than 10 seconds after your last challenge"
STANDS = "You are already challenging someone"  # the server did not notice that the connection was lost
OVER, SILENCE, LOST = "over", "silence", "lost"


class PlayEnded(EnvError):
    """Play cannot go on; the sentence says why. Caught by `play`: printed, exit code 2."""


class Challenges:
    """One player's challenges. Lives on poke-env's event loop.

    Attributes:
        room_for_more: released by the player when a battle is over; limits the battles at once.
        popups: what the server says in popups.
        partner: id of the user whose challenge was accepted last, or set by the player: whom the server says that we
            challenge.
        challenge_over: set by the player when a challenge between the partner and us is over, accepted or not.
        nothing_began: set by the player after a reconnect during which no battle began. A server that notices a loss
            cancels our challenges.
    """

    def __init__(self, player: Player, concurrency: int) -> None:
        self._player = player
        self.room_for_more = asyncio.Semaphore(concurrency)
        self.popups: asyncio.Queue[str] = asyncio.Queue()
        self.partner = ""
        self.challenge_over = asyncio.Event()
        self.nothing_began = asyncio.Event()

    async def accept(self, battles: int) -> None:
        """Accept `battles` challenges and wait until their battles are over."""
        accepted = 0
        while accepted < battles:
            await self.room_for_more.acquire()
            user = await self._player._challenge_queue.get()
            self.partner = user_id(user)
            await self._listen_anew()
            await self._player.ps_client.accept_challenge(user, self._player.next_team)
            if await self._begins(BEGIN_SEC):  # the challenge was withdrawn
                self.room_for_more.release()
            else:
                accepted += 1
        await self._player._battle_count_queue.join()

    async def challenge(self, user: str, battles: int) -> None:
        """Challenge `user` `battles` times and wait until the battles are over. Raises PlayEnded."""
        for _ in range(battles):
            await self.room_for_more.acquire()
            while trouble := await self._challenge_once(user):
                if TOO_SOON not in trouble:
                    raise PlayEnded(trouble)
                await asyncio.sleep(CHALLENGE_EVERY_SEC)
        await self._player._battle_count_queue.join()

    async def _challenge_once(self, user: str) -> str:
        """Empty once the battle runs, else a sentence."""
        answer = LOST
        while answer == LOST:
            await self._listen_anew()
            await self._player.ps_client.challenge(user, self._player.format, self._player.next_team)
            answer = await self._begins(None)
            if STANDS in answer:
                answer = await self._begins(None)
        if answer == OVER:
            return f"{user} turned the challenge down."
        return f"The server refuses the challenge to {user}: {answer}" if answer else ""

    async def _listen_anew(self) -> None:
        client = self._player.ps_client
        assert isinstance(client, ShowdownClient)
        await client.ready()
        self.challenge_over.clear()
        self.nothing_began.clear()
        while not self.popups.empty():
            self.popups.get_nowait()

    async def _begins(self, seconds: float | None) -> str:
        """Wait for a battle to begin: empty when one did, else the server's message, or OVER, LOST or SILENCE."""
        begin = POKE_LOOP.create_task(self._player._battle_semaphore.acquire())
        popup = POKE_LOOP.create_task(self.popups.get())
        over = POKE_LOOP.create_task(self.challenge_over.wait())
        lost = POKE_LOOP.create_task(self.nothing_began.wait())
        tasks = (begin, popup, lost)
        try:
            await _first((*tasks, over), seconds)
            if over.done():  # if it was accepted, the battle follows at once
                await _first(tasks, BEGIN_SEC)
            if not self._player.ps_client.logged_in.is_set():  # one of them follows the reconnect
                await _first(tasks, None)
            if begin.done():
                return ""
            if popup.done():
                return popup.result()
            return LOST if lost.done() else OVER if over.done() else SILENCE
        finally:
            for task in (*tasks, over):
                task.cancel()


async def _first(tasks: Iterable[asyncio.Task[Any]], seconds: float | None) -> None:
    await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
