"""A simulator host of a test's own."""

from __future__ import annotations

import pytest

from env_worker.games.pokemon.host import SimHost
from env_worker.games.pokemon.node import find_node


@pytest.fixture
def own_host():
    host = SimHost(find_node().path, index=3)
    host.start()
    yield host
    host.close()
