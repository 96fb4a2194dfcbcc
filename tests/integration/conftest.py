"""Runs of `simul ...` with stand-ins for the roles, and peers that are not silent because the machine stands still."""

from __future__ import annotations

import pytest

from tests.support.stand_ins import Simul


@pytest.fixture
def patience(monkeypatch):
    """Servers and learners in this process count as silent after as long as a test waits: nothing is sent again."""
    from tests.support.stand import PATIENCE_SEC  # with torch, which most of these tests do without

    for limit in (
        "simul.common.client.client.SILENT_AFTER_SEC",
        "simul.common.client.client.RESEND_AFTER_SEC",
        "simul.inference_server.unrolls.learner_link.SILENT_AFTER_SEC",
    ):
        monkeypatch.setattr(limit, PATIENCE_SEC)


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
