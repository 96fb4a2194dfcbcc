"""Runs of `simul ...` with stand-ins for the roles, and peers that are not silent because the machine stands still."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.browser import Browser
from tests.support.stand_ins import Simul


@pytest.fixture
def patience(monkeypatch):
    """Peers of servers and learners in this process have time."""
    from tests.support.stand import wait_for_the_silent  # with torch, which most of these tests do without

    wait_for_the_silent(monkeypatch)


@pytest.fixture
def simul(tmp_path):
    started = []

    def start(*arguments: str, **options) -> Simul:
        started.append(Simul(tmp_path / "run", *arguments, **options))
        return started[-1]

    yield start
    for one in started:
        one.end_now()


@pytest.fixture
def up(simul, tmp_path):
    def start(*more: str, **options) -> Simul:
        return simul("up", "configs/cartpole.yaml", "--run-dir", str(tmp_path / "run"), "--plain", *more, **options)

    return start


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    browser = Browser()
    yield browser
    browser.driver.quit()
