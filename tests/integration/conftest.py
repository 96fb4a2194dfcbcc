"""Runs of `simul ...` with stand-ins for the roles."""

from __future__ import annotations

import pytest

from tests.support.stand_ins import Simul


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
