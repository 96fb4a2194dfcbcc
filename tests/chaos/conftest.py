"""What the fault tests share: one server a module, and a client that sends whatever it is told."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from simul.common.client.client import InferenceClient
from simul.common.protocol.messages import Close
from tests.support.faults import Neighbour, unharmed
from tests.support.raw_client import RawClient
from tests.support.stand import Stand, wait_for_the_silent
from tests.support.waiting import PATIENCE_SEC


@pytest.fixture(scope="module", autouse=True)
def patience() -> Iterator[None]:
    """The tests of what happens to a silent peer set their own limits."""
    with pytest.MonkeyPatch.context() as patch:
        wait_for_the_silent(patch)
        yield


@pytest.fixture(scope="module")
def stand() -> Iterator[Stand]:
    with Stand() as one:
        yield one


@pytest.fixture(autouse=True)
def neighbour(request: pytest.FixtureRequest) -> Iterator[Neighbour | None]:
    """Around every test that is marked `counts`: nobody else notices the fault, and it is counted."""
    marker = request.node.get_closest_marker("counts")
    if marker is None:
        yield None
        return
    with unharmed(request.getfixturevalue("stand"), *marker.args, **marker.kwargs) as one:
        yield one


@pytest.fixture
def raw(stand: Stand) -> Iterator[RawClient]:
    with RawClient(stand.run_dir.endpoint("data"), stand.spec) as client:
        client.hello("raw", run_id=time.time_ns())
        yield client
        client.send(Close())


@pytest.fixture
def client(stand: Stand) -> Iterator[InferenceClient]:
    one = InferenceClient(stand.run_dir.endpoint("data"), name="a", spec=stand.spec)
    one.connect(PATIENCE_SEC)
    yield one
    one.close()
