"""Whose life a client's name is, and what a client is told of the end of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from simul.common.errors import InferenceError
from tests.support.stand import Stand, exchange

pytestmark = pytest.mark.usefixtures("patience")


@pytest.fixture
def stand() -> Iterator[Stand]:
    with Stand() as running:
        yield running


def test_who_is_outlived_by_a_newer_life_is_told(stand):
    older = stand.client("worker-0", run_id=1)
    stand.client("worker-0", run_id=2)
    with pytest.raises(InferenceError, match="an older life"):
        exchange(older, [stand.decision(0, 0)])


@pytest.mark.parametrize("name", ["", "x" * 65, "a\nb", "\x1b[2J"])
def test_a_clients_name_is_short_and_printable(stand, name):
    with pytest.raises(InferenceError, match="printable"):
        stand.client(name)
