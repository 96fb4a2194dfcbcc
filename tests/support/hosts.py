"""What the tests of the simulator host share."""

from __future__ import annotations

import select

import pytest

GEN9 = "gen9randombattle"


def wait(host, seconds=100.0):
    """Waits for the host, writing on where the pipe was full."""
    ready, _, _ = select.select([host.fileno()], [host.write_fileno()] if host.wants_write else [], [], seconds)
    return host.poll() if ready or host.wants_write else pytest.fail("the host says nothing")
