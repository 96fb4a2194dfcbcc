"""py-spy as a program that works, that is refused, and that is missing; tests/integration has the real one."""

from __future__ import annotations

import pytest

from simul.launch.monitoring.profiling import flame_graphs
from simul.launch.monitoring.profiling.flame_graphs import FlameGraphs

WORKS = 'for last; do :; done; echo "$@" >"$last"'
REFUSED = "echo 'Permission Denied: Try running again with elevated permissions' >&2; exit 1"
HANGS = "exec sleep 600"


@pytest.fixture
def py_spy(tmp_path):
    def make(script: str) -> str:
        program = tmp_path / "py-spy"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        return str(program)

    return make


def test_a_picture_of_each_process(py_spy, tmp_path):
    with FlameGraphs(py_spy(WORKS)) as graphs:
        graphs.start({"simul-worker-0": 7, "simul-learner-0": 8}, 2.5, tmp_path / "profile")
        pictures, sentence = graphs.finish()
    assert [picture.name for picture in pictures] == ["profile-simul-worker-0.svg", "profile-simul-learner-0.svg"]
    assert sentence == ""
    assert "record --pid 8 --duration 3 " in pictures[1].read_text()


def test_where_it_is_refused_one_sentence_says_so(py_spy, tmp_path):
    with FlameGraphs(py_spy(REFUSED)) as graphs:
        graphs.start({"simul-worker-0": 7, "simul-learner-0": 8}, 1.0, tmp_path / "profile")
        pictures, sentence = graphs.finish()
    assert pictures == []
    assert sentence == (
        "No flame graph of simul-worker-0, simul-learner-0: py-spy says 'Permission Denied'. "
        "Where ptrace is not allowed, run as root, or set kernel.yama.ptrace_scope=0 (Linux); in a container allow "
        "SYS_PTRACE."
    )


def test_one_that_hangs_is_ended(py_spy, tmp_path, monkeypatch):
    monkeypatch.setattr(flame_graphs, "FINISH_SEC", 0.05)
    with FlameGraphs(py_spy(HANGS)) as graphs:
        graphs.start({"simul-worker-0": 7}, 1.0, tmp_path / "profile")
        assert "still at work" in graphs.finish()[1]
        recorder = graphs._recorders[0][2]
        assert recorder.poll() is None
    assert recorder.returncode is not None
