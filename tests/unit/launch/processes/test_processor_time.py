"""Processor time of real processes."""

from __future__ import annotations

import os
import subprocess
import sys

from simul.launch.processes.processor_time import ProcessTree

BURN = "import time\nwhile time.process_time() < 0.2: pass\nprint(flush=True)\ninput()"


def test_processes_and_their_time_are_found():
    tree = ProcessTree(os.getpid())
    before, running = tree.sample([os.getpid()]), tree.look()
    with subprocess.Popen([sys.executable, "-c", BURN], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        child.stdout.readline()
        assert tree.look() == running + 1
        assert tree.started == 1
        during = tree.sample([os.getpid(), child.pid])
        child.communicate(b"\n")
    least = 0.15  # of 0.2: the system counts in hundredths of a second
    assert least <= during.roles[child.pid].own
    of_children = during.roles[os.getpid()].children - before.roles[os.getpid()].children
    assert during.roles[child.pid].own <= round(of_children, 2)  # both are counted in hundredths of a second
    assert during.run - before.run >= least
    assert during.machine - before.machine >= least
    assert tree.look() == running
    assert tree.started == 1
    after = tree.sample([os.getpid(), child.pid])
    assert child.pid not in after.roles
    assert after.run >= during.run, "what has ended is not forgotten"
