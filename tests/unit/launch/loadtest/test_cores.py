"""What our own children burn is not put on the neighbours."""

import subprocess
import sys

from simul.launch.loadtest.cores import OtherProcesses, allowed_cores, read_times

BURN = "import time\nwhile time.process_time() < 0.3: pass"


def test_share_is_what_the_cores_did_besides_our_work() -> None:
    readings = iter([(100.0, 50.0, 1.0), (110.0, 62.0, 9.0), (120.0, 62.0, 19.0)])
    neighbours = OtherProcesses([0, 1], lambda cores: next(readings))
    assert neighbours.share() == 0.2  # 12 of 20 core seconds, 8 of them ours
    assert neighbours.share() == 0.0


def test_a_child_that_was_waited_for_is_ours() -> None:
    before = read_times(allowed_cores())
    subprocess.run([sys.executable, "-c", BURN], check=True)
    after = read_times(allowed_cores())
    assert after[0] > before[0]
    assert after[1] >= before[1]
    assert round(after[2] - before[2], 2) >= 0.29  # ticks of 10 ms; their sums are not exact in binary
