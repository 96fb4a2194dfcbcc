"""How battles come about: challenges that are accepted or made, and what may become of them before a battle begins."""

from __future__ import annotations

import asyncio

from poke_env.concurrency import POKE_LOOP
from poke_env.player import Player

from common.errors import EnvError

BEGIN_SEC = 10.0  # between a challenge that is accepted and its battle
CHALLENGE_EVERY_SEC = 10.5  # what a server with limits asks for
TOO_SOON = "less than 10 seconds after your last challenge"
OVER, SILENCE = "over", "silence"


class PlayEnded(EnvError):
    """Play cannot go on; the sentence says why. Caught by `play`: printed, exit code 2."""


class Lobby:
    """One player's challenges. Lives on poke-env's event loop.

    Attributes:
        room_for_more: released by the player when a battle is over; so many battles run at once.
        popups: what the server says in popups.
        challenge_over: set by the player when a challenge is over, accepted or not.
    """

    def __init__(self, player: Player, concurrency: int) -> None:
        self._player = player
        self.room_for_more = asyncio.Semaphore(concurrency)
        self.popups: asyncio.Queue[str] = asyncio.Queue()
        self.challenge_over = asyncio.Event()

    async def accept(self, battles: int) -> None:
        """Accept so many challenges and wait until their battles are over."""
        accepted = 0
        while accepted < battles:
            await self.room_for_more.acquire()
            user = await self._player._challenge_queue.get()
            self._listen_anew()
            await self._player.ps_client.accept_challenge(user, self._player.next_team)
            if await self._begins(BEGIN_SEC):  # the challenge was withdrawn
                self.room_for_more.release()
            else:
                accepted += 1
        await self._player._battle_count_queue.join()

    async def challenge(self, user: str, battles: int) -> None:
        """Challenge `user` so many times and wait until the battles are over. Raises PlayEnded."""
        for _ in range(battles):
            await self.room_for_more.acquire()
            while trouble := await self._challenge_once(user):
                if TOO_SOON not in trouble:
                    raise PlayEnded(trouble)
                await asyncio.sleep(CHALLENGE_EVERY_SEC)
        await self._player._battle_count_queue.join()

    async def _challenge_once(self, user: str) -> str:
        """Empty once the battle runs, else a sentence."""
        self._listen_anew()
        await self._player.ps_client.challenge(user, self._player.format, self._player.next_team)
        answer = await self._begins(None)
        if answer == OVER:
            return f"{user} turned the challenge down."
        return f"The server refuses the challenge to {user}: {answer}" if answer else ""

    def _listen_anew(self) -> None:
        self.challenge_over.clear()
        while not self.popups.empty():
            self.popups.get_nowait()

    async def _begins(self, seconds: float | None) -> str:
        """Wait for a battle to begin: empty when one did, else the server's words, or `over` or `silence`."""
        begin = POKE_LOOP.create_task(self._player._battle_semaphore.acquire())
        popup = POKE_LOOP.create_task(self.popups.get())
        over = POKE_LOOP.create_task(self.challenge_over.wait())
        tasks = (begin, popup, over)
        try:
            await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            if over.done() and not begin.done():  # if it was accepted, the battle follows at once
                await asyncio.wait((begin, popup), timeout=BEGIN_SEC, return_when=asyncio.FIRST_COMPLETED)
            if begin.done():
                return ""
            return popup.result() if popup.done() else OVER if over.done() else SILENCE
        finally:
            for task in tasks:
                task.cancel()
