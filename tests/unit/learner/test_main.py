"""The learner's process: how it ends, by what has ended its loop."""

from __future__ import annotations

import logging
import sys
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from simul.common.errors import CheckpointError, ConfigError, DivergedError, NothingLearnedError
from simul.common.role.lifecycle import EXIT_ENDS_RUN, EXIT_RANK_LOST, StopFlag
from simul.learner import __main__ as process
from simul.learner.ranks import RankLostError


def ended(monkeypatch, how: BaseException | bool, *, stopped: bool = False) -> tuple[int, list[tuple[str, str]]]:
    """Exit code of a learner whose `run` returns or raises this, and (state, event) of its reports."""
    stop, reports = StopFlag(), []
    if stopped:
        stop.set()

    def run() -> bool:
        if isinstance(how, BaseException):
            raise how
        return how

    def send(metrics: dict[str, object], *, state: str = "", event: str = "") -> None:
        reports.append((state, event))

    @contextmanager
    def open_learner(*_: object):
        yield SimpleNamespace(run=run)

    monkeypatch.setattr(sys, "argv", ["simul.learner", "--run-dir", "nowhere"])
    monkeypatch.setattr(process, "set_up", logging.getLogger)
    monkeypatch.setattr(process, "StopFlag", lambda *_, **__: SimpleNamespace(install=lambda: stop))
    monkeypatch.setattr(process, "Reporter", lambda *_: SimpleNamespace(send=send, close=lambda: None))
    monkeypatch.setattr(process, "open_learner", open_learner)
    return process.main(), reports


@pytest.mark.parametrize(
    ("how", "code", "failed"),
    [
        (True, 0, False),
        (False, 1, False),
        (ConfigError("why"), 2, True),
        (CheckpointError("why"), 2, True),
        (DivergedError("why"), 1, False),
        (NothingLearnedError("why"), EXIT_ENDS_RUN, False),
        (RankLostError("why"), EXIT_RANK_LOST, False),
    ],
    ids=lambda value: type(value).__name__,
)
def test_the_exit_code_says_whether_it_may_start_again(monkeypatch, caplog, how, code, failed) -> None:
    found, reports = ended(monkeypatch, how)
    assert found == code
    assert reports == [("starting", ""), *([("failed", "why")] if failed else [])]
    assert [record.message for record in caplog.records] == ["why"] * isinstance(how, BaseException)
    assert not any(record.exc_info for record in caplog.records), "a sentence, no traceback"


def test_a_rank_that_is_lost_while_all_stop_is_no_failure(monkeypatch) -> None:
    assert ended(monkeypatch, RankLostError("why"), stopped=True)[0] == 0
