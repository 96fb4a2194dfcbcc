"""Serves an agent's decisions: the main thread's half of `simul play`."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any

import msgspec
from poke_env.concurrency import POKE_LOOP

from simul.common.client.client import InferenceClient
from simul.common.launch.evaluation.result import wilson
from simul.common.protocol.errors import ERR_NO_SESSION, InferenceError
from simul.common.runtime.lifecycle import StopFlag
from simul.env_worker.games.pokemon.showdown.agent import AgentPlayer
from simul.env_worker.games.pokemon.showdown.async_bridge import Desk

SILENT_SEC = 60.0  # the inference server may be away for so long
WAIT_SEC = 0.5
LEAVE_SEC = 5.0
SHOW_EVERY_SEC = 5.0


class Table:
    """Between the desk and the inference server."""

    def __init__(self, agent: AgentPlayer, desk: Desk, client: InferenceClient, *, quiet: bool) -> None:
        self._agent = agent
        self._desk = desk
        self._client = client
        self._quiet = quiet
        self._heard_at = time.monotonic()
        self._shown = ""

    def serve(self, work: Coroutine[Any, Any, None], stop: StopFlag) -> None:
        """Until `work` is done or `stop` is set. Raises PlayEnded, InferenceError."""
        future: Future[None] = asyncio.run_coroutine_threadsafe(work, POKE_LOOP)
        show_at = time.monotonic() + SHOW_EVERY_SEC
        while not stop and not future.done():
            self.turn()
            if time.monotonic() >= show_at:
                show_at += SHOW_EVERY_SEC
                self._show()
        if future.done():
            future.result()
        else:
            future.cancel()

    def turn(self) -> None:
        """Pass decisions one way and actions the other. Raises InferenceError where the server cannot serve us."""
        decisions = self._desk.take()
        if decisions:
            self._client.submit(decisions)
        replies = self._client.poll()
        if replies.lost:
            self._desk.lose()
        self._desk.answer(replies.actions)
        for failure in replies.failures:
            if failure.code != ERR_NO_SESSION:
                raise InferenceError(failure.code, failure.message)
        self._desk.lose((f.env, f.seat, f.episode) for f in replies.failures)
        self._watch_server()
        if not decisions and not replies.actions:
            self._client.poller.set_files([self._desk.fileno()])
            self._client.poller.wait(WAIT_SEC)

    def close(self) -> None:
        """Forfeit what is running, hang up, say goodbye to the inference server."""
        leaving = asyncio.run_coroutine_threadsafe(self._agent.leave(LEAVE_SEC), POKE_LOOP)
        while not leaving.done():
            with contextlib.suppress(InferenceError):  # what is wrong with it was said before
                self.turn()
        self._client.close()

    def _watch_server(self) -> None:
        now = time.monotonic()
        if self._client.connected:
            self._heard_at = now
        elif now - self._heard_at > SILENT_SEC:
            raise InferenceError("ERR_TIMEOUT", f"the inference server is silent for {SILENT_SEC:.0f} s")

    def _show(self) -> None:
        tally = self._agent.tally
        line = f"{len(self._agent.running())} battles running, {tally['wins']} won, {tally['losses']} lost"
        if not self._quiet and line != self._shown and self._agent.ps_client.logged_in.is_set():
            sys.stderr.write(line + "\n")
            self._shown = line


def report(agent: AgentPlayer, *, as_json: bool) -> str:
    """The record so far. Battles that were not played out count for nothing."""
    back = agent.comeback
    tally = {name: agent.tally[name] for name in ("wins", "losses", "ties")}
    games = sum(tally.values())
    cut_off = sum(not battle.given_up for battle in agent.running())
    low, high = wilson(tally["wins"], games)
    rate = tally["wins"] / games if games else None
    if as_json:
        result = {
            "battles": games, **tally, "win_rate": rate, "wilson_95": (low, high),
            "given_up": agent.given_up, "cut_off": cut_off, "defaults": agent.defaulted,
            "rejoined": back.rejoined, "started_over": back.started_over, "vanished": back.vanished,
        }  # fmt: skip
        return msgspec.json.encode(result).decode() + "\n"
    words = f"{games} battles: " + ", ".join(f"{count} {name}" for name, count in tally.items())
    if rate is not None:
        words += f"; win rate {rate:.3f} (95%: {low:.3f} to {high:.3f})"
    if agent.given_up:
        words += f"\n{agent.given_up} more were forfeited when play was stopped."
    if cut_off:
        words += f"\n{cut_off} more were cut off."
    if back.vanished:
        words += f"\n{back.vanished} more were gone when the connection was back."
    if back.rejoined:
        words += f"\nAfter lost connections battles were joined again {back.rejoined} times"
        words += f", {back.started_over} times with a policy that began anew." if back.started_over else "."
    if agent.defaulted:
        words += f"\n{agent.defaulted} choices were left to the server, which refused each of ours."
    return words + "\n"
