"""What a benchmark starts ends with it."""

from __future__ import annotations

import subprocess
import sys
import time

import psutil
import pytest

from simul.common.runtime.installation import ROOT

PAGE = """
import sys; from pathlib import Path; from benchmarks.learn_check import simul
simul(["page", "--port", "0"], Path(sys.argv[1]), 60.0)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL")
def test_a_command_ends_with_a_benchmark_that_is_killed_and_its_log_is_kept(tmp_path):
    log = tmp_path / "page.log"
    log.write_text("of a start before\n")
    benchmark = subprocess.Popen([sys.executable, "-c", PAGE, str(log)], cwd=ROOT)
    deadline = time.monotonic() + 30.0
    while not (children := psutil.Process(benchmark.pid).children()) and time.monotonic() < deadline:
        time.sleep(0.05)
    benchmark.kill()
    benchmark.wait()
    children[0].wait(30.0)
    assert log.read_text().startswith("of a start before\n")
