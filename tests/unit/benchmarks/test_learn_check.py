"""The commands that a benchmark starts: they end with it, and their log is kept."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from simul.common.runtime.installation import ROOT

BENCHMARK = """
import sys; from pathlib import Path; from benchmarks import learn_check
log, learn_check.sys.executable = sys.argv[1:]
learn_check.simul(["up"], Path(log), 60.0)
"""
STAND_IN = '#!/bin/sh\necho "$@" >&2\ncat\necho ended >&2\n'


def _wait_for(log, words):
    deadline = time.monotonic() + 10.0
    while not (text := log.read_text()).endswith(words) and time.monotonic() < deadline:
        time.sleep(0.02)
    return text


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL, no sh")
def test_a_command_is_told_when_its_benchmark_is_killed(tmp_path):
    log, command = tmp_path / "up.log", tmp_path / "command"
    log.write_text("of a start before\n")
    command.write_text(STAND_IN)
    command.chmod(0o700)
    benchmark = subprocess.Popen([sys.executable, "-c", BENCHMARK, str(log), str(command)], cwd=ROOT)
    try:
        started = "of a start before\n-m simul.launch.cli --stop-at-eof up\n"
        assert _wait_for(log, started) == started
        with pytest.raises(subprocess.TimeoutExpired):
            benchmark.wait(0.3)
        assert log.read_text() == started
    finally:
        benchmark.kill()
        benchmark.wait()
    assert _wait_for(log, "ended\n") == f"{started}ended\n"
