"""Who is let in by a Showdown server, and what is said where it takes too long."""

from __future__ import annotations

import argparse
import asyncio
from types import SimpleNamespace

import pytest
from poke_env.concurrency import POKE_LOOP

from simul.env_worker.games.pokemon.play.challenges import PlayEnded
from simul.env_worker.games.pokemon.play.guard import LOGIN_SEC, OWN_LOGIN_SEC, Guard, Login, login
from simul.env_worker.games.pokemon.play.play import _invitation


def nothing() -> None:
    """Nobody is told."""


async def _run(limits: Login, let_in: bool) -> None:
    async def work() -> None:
        """Done at once."""

    client = SimpleNamespace(username="Simul 1", logged_in=asyncio.Event())
    if let_in:
        client.logged_in.set()
    await Guard(limits).run(client, work())


@pytest.mark.parametrize(
    ("own", "right", "wrong"), [(True, "overloaded", "PASSWORD"), (False, "PASSWORD", "local server")]
)
def test_who_is_not_let_in_hears_what_can_help_at_that_server(own, right, wrong):
    limits = Login(0.01, login(0.0, own=own, done=nothing).advice)
    with pytest.raises(PlayEnded, match=right) as ended:
        asyncio.run_coroutine_threadsafe(_run(limits, let_in=False), POKE_LOOP).result(10)
    assert wrong not in str(ended.value)


def test_patience_is_for_the_first_login_too():
    assert login(0.0, own=False, done=nothing).limit_sec == LOGIN_SEC
    assert login(0.0, own=True, done=nothing).limit_sec == OWN_LOGIN_SEC
    assert login(300.0, own=True, done=nothing).limit_sec == 300.0


def test_the_address_is_told_with_the_name_once_others_can_see_us():
    told: list[str] = []
    options = argparse.Namespace(own="http://127.0.0.1:8000", challenge=None, accept=1)
    limits = login(0.0, own=True, done=lambda: told.append(_invitation(options, "Simul 1", "gen9randombattle")))
    assert told == []
    asyncio.run_coroutine_threadsafe(_run(limits, let_in=True), POKE_LOOP).result(10)
    assert "Open http://127.0.0.1:8000 and challenge Simul 1" in told[0]
