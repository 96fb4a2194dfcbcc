"""`simul down`: which summary it names."""

from __future__ import annotations

import os
import time

from simul.launch.commands.status import _written_since


def test_only_a_summary_of_this_stop_is_named(tmp_path):
    summary = tmp_path / "summary.json"
    now = time.time()
    assert not _written_since(summary, now)
    summary.touch()
    os.utime(summary, (now - 60, now - 60))
    assert not _written_since(summary, now)
    os.utime(summary, (now + 1, now + 1))
    assert _written_since(summary, now)
