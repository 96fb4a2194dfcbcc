"""Whom the reaper takes for gone."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from simul.inference_server.ops.reaper import EVERY_SEC, STALL_SEC, Reaper
from simul.inference_server.sessions.clients import ClientTable

TIMEOUT_SEC = 1.5


@pytest.fixture
def clients() -> ClientTable:
    return ClientTable("secret")


@pytest.fixture
def reaper(clients) -> Reaper:
    nothing = SimpleNamespace(
        idle=lambda since: [], close_sessions_of=lambda client, cause: None, drop_unsendable=lambda now: None,
        remove_retired=lambda bound_to, now: None, bound_to=None, restore_missing=lambda now: [],
    )  # fmt: skip
    parts = (cast(Any, nothing),) * 5
    return Reaper(clients, *parts, idle_timeout_sec=99.0, client_timeout_sec=TIMEOUT_SEC)


def test_a_silent_client_is_forgotten(clients, reaper) -> None:
    clients.register_client("a", 1, "", b"1", 100.0)
    reaper.reap(101.0)
    assert len(clients) == 1
    reaper.reap(102.0)
    assert len(clients) == 0


def test_after_a_stall_what_clients_sent_meanwhile_is_read_first(clients, reaper) -> None:
    for name in ("alive", "gone"):
        clients.register_client(name, 1, "", name.encode(), 100.0)
    reaper.reap(100.0)
    reaper.reap(later := 100.0 + STALL_SEC + 0.5)
    assert len(clients) == 2
    clients.of_peer(b"alive").heard_at = later
    reaper.reap(later + EVERY_SEC)
    assert [client.name for client in clients] == ["alive"]
