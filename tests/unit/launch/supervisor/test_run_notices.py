"""What the notices of a run say, and when a milestone is one."""

from __future__ import annotations

import threading

import msgspec
import pytest

from simul.common.config.schema import Config
from simul.common.role.run_directory import RunDir
from simul.launch.monitoring.notices.notifier import MOST_CHARACTERS, Notice, NoticeKind
from simul.launch.supervisor import run_notices as module
from simul.launch.supervisor.run_notices import CurvePicture, RunNotices, last_words, milestone_text
from tests.support.recorded_run import snapshot

FIGURES = {
    "evaluation/score": 0.75, "evaluation/best_score": 0.8, "evaluation/policy_version": 42.0,
    "evaluation/win_rate/random": 0.9, "evaluation/win_rate_low/random": 0.85, "evaluation/win_rate_high/random": 0.95,
    "evaluation/win_rate/new": 0.6,
}  # fmt: skip


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    monkeypatch.setattr(module, "DRAW_LIMIT_SEC", 1e6)


def made(root, **settings) -> tuple[RunNotices, list[Notice]]:
    """A run's notices, and those that are posted."""
    notices = RunNotices(msgspec.structs.replace(Config(), **settings), RunDir(root))
    sent: list[Notice] = []
    notices._notifier.post = sent.append
    return notices, sent


@pytest.fixture
def posted(tmp_path):
    return made(tmp_path, notice_every_decisions=1000)


def test_a_milestone_has_the_last_evaluation_and_the_recent_results():
    now = snapshot(figures=FIGURES, run_decisions=3_000_123.0, training_sec=3723.9, rates_over_sec=10.0)
    lines = milestone_text(now, 3_000_000.0).splitlines()
    assert lines == [
        "3,000,000 decisions, 1:02:03 of training over all starts",
        "decisions/s 12,346 (last 10 s), policy_version 123,456",
        "last evaluation 0.75, best 0.80 (policy_version 42)",
        "won against random 90.0% (95% interval 85.0% to 95.0%)",
        "won against new 60.0% (95% interval 60.0% to 60.0%)",
        "recent wins max_base_power 100% of 200, random 75% of 200",
        "simple_heuristics 100% of 200",
    ]


def test_each_milestone_comes_once_and_none_of_an_earlier_start(posted):
    notices, sent = posted
    notices.started(2999.0)
    for decisions in (2999.0, 3000.0, 3500.0, 3999.0, 7001.0, 7002.0):
        notices.update(snapshot(run_decisions=decisions, learner={}))
    assert [(notice.kind, notice.text.partition(" ")[0]) for notice in sent[1:]] == [
        (NoticeKind.MILESTONE, "3,000"),
        (NoticeKind.MILESTONE, "7,000"),
    ]
    assert "resumed at 2,999 decisions" in sent[0].text


def test_milestones_may_be_off_and_have_no_picture_without_curves(tmp_path):
    for changes, expected in (({"notice_every_decisions": 0}, []), ({"metrics": ()}, [None])):
        notices, sent = made(tmp_path, **changes)
        notices.started(0.0)
        notices.update(snapshot(run_decisions=1_000_000.0, learner={}))
        assert [notice.draw for notice in sent[1:]] == expected


def test_a_store_is_lost_and_back_once_whatever_the_learner_does_meanwhile(posted):
    notices, sent = posted
    for state in ("", "ok", "ok", "unreachable", "unreachable", "", "unreachable", "ok", "taken_over", "taken_over"):
        notices.update(snapshot(learner={"store_state": state}))
    lost, back = NoticeKind.STORE_LOST, NoticeKind.STORE_BACK
    assert [notice.kind for notice in sent] == [lost, back, lost]
    assert "cannot be reached" in sent[0].text
    assert "newer run" in sent[2].text


def test_last_words_keep_the_first_line_and_the_end():
    assert last_words("short\nlog") == "short\nlog"
    text = "the learner died\n" + "\n".join(f"line {n}" for n in range(1000))
    kept = last_words(text)
    assert len(kept) == MOST_CHARACTERS
    assert kept.startswith("the learner died\n...\n")
    assert kept.endswith("line 998\nline 999")
    assert len(last_words("x" * 10_000)) <= MOST_CHARACTERS


def test_a_run_that_did_not_end_cleanly_says_so(posted):
    notices, sent = posted
    notices.stopped("summary " * 1000, clean=False)
    assert sent[0].text.endswith("\nA process did not end cleanly, see simul-supervisor.log.")
    assert len(sent[0].text) == MOST_CHARACTERS


CURVES = "decisions,training_sec,time,episodes/return_mean\n1,1,1,10\n2,2,2,20\n"


def test_the_curves_are_drawn_once(tmp_path):
    (tmp_path / "curves.csv").write_text(CURVES)
    draw = CurvePicture(tmp_path, threading.Event())
    png, problem = draw()
    assert problem == ""
    assert png.startswith(b"\x89PNG")
    (tmp_path / "curves.csv").unlink()
    assert draw().png == png


def test_without_curves_and_without_matplotlib_the_reason_stands_in_place_of_the_picture(tmp_path, monkeypatch):
    assert "has no curves: expected" in CurvePicture(tmp_path, threading.Event())().problem
    (tmp_path / "curves.csv").write_text(CURVES)
    (tmp_path / "hidden").mkdir()
    (tmp_path / "hidden" / "matplotlib.py").write_text("raise ModuleNotFoundError(\"No module named 'matplotlib'\")")
    environment = module.role_environment(1)
    environment["PYTHONPATH"] = f"{tmp_path / 'hidden'}:{environment['PYTHONPATH']}"
    monkeypatch.setattr(module, "role_environment", lambda threads: environment)
    drawn = CurvePicture(tmp_path, threading.Event())()
    assert drawn == (b"", "ModuleNotFoundError: No module named 'matplotlib'")


def test_drawing_ends_with_the_run(tmp_path, monkeypatch):
    ending = threading.Event()
    draw = CurvePicture(tmp_path, ending)
    monkeypatch.setattr(draw, "_run", lambda line: CurvePicture._run(draw, ["/bin/sleep", "1000000"]))
    threading.Timer(0.2, ending.set).start()
    assert draw().problem == "the run ended meanwhile"
