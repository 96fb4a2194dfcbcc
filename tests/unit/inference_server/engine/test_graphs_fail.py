"""Graphs that raise, that meet numbers without end, and that cannot be captured."""

from __future__ import annotations

import logging

import numpy as np
import pytest
import torch

from simul.common.nets.base import RecurrentNetwork
from tests.support.engines import act
from tests.support.graph_engines import SIZES, Sessions, act_alike, assert_same, captured, engine, network, table
from tests.support.graph_stand_in import StandInGraphs


def test_a_graph_that_raises_before_its_last_operation_has_written_nothing() -> None:
    device = StandInGraphs()
    graphs, eager = captured(device), engine(device)
    sessions = Sessions(graphs.zero_row)
    act_alike(graphs, eager, sessions.batch(8))
    before, batch = table(graphs), sessions.batch(6)
    operations = len(device.living()[0].operations)
    for number in range(operations):
        device.fail_at = number
        with pytest.raises(RuntimeError, match="out of luck"):
            act(graphs, *batch)
        np.testing.assert_array_equal(table(graphs), before)
    act_alike(graphs, eager, batch)


def test_a_batch_in_parts_that_raises_can_be_halved_and_done_again() -> None:
    """Its first part is written by then, to rows that no step reads before its turn is committed."""
    device = StandInGraphs()
    graphs, eager = captured(device), engine(device)
    sessions = Sessions(graphs.zero_row)
    act_alike(graphs, eager, sessions.batch(50))
    batch, launched = sessions.batch(50), device.launches
    read = graphs.states(batch[2])

    def second_part_fails() -> None:
        device.fail_at = 3 if device.launches == launched + 1 else None

    copy, device.copy = device.copy, lambda target, source: (second_part_fails(), copy(target, source))[1]
    with pytest.raises(RuntimeError, match="out of luck"):
        act(graphs, *batch)
    device.copy, device.fail_at = copy, None
    np.testing.assert_array_equal(graphs.states(batch[2]), read)
    for half in (slice(0, 25), slice(25, 50)):
        act_alike(graphs, eager, tuple(column[half] for column in batch))


def test_a_row_that_drives_the_network_out_of_the_numbers_harms_no_other() -> None:
    device = StandInGraphs()
    graphs, eager = captured(device), engine(device)
    sessions = Sessions(graphs.zero_row)
    act_alike(graphs, eager, sessions.batch(8))
    batch = sessions.batch(8)
    bad = batch[0].copy()
    bad[5] = 3e38
    read = graphs.states(batch[2])
    found = act(graphs, bad, *batch[1:])
    assert not np.isfinite(found.value[5])
    np.testing.assert_array_equal(graphs.states(batch[2]), read)  # whoever acts again finds the state before
    for part in (slice(0, 5), slice(6, 8), slice(0, 5)):  # as the actor does; the bad row still lies in the padding
        rows = tuple(column[part] for column in batch)
        expected = act(eager, *rows)
        assert np.isfinite(expected.value).all()
        assert_same(act(graphs, *rows), expected)
    kept = np.setdiff1d(np.arange(graphs.zero_row + 1), batch[3][5])
    np.testing.assert_array_equal(graphs.states(kept), eager.states(kept))


class Peeking(RecurrentNetwork):
    """Asks the device for a number while it runs."""

    def forward(self, observation, mask, state):
        offset = 1.0 if observation.sum().item() > 0 else 0.0
        return torch.full(mask.shape, offset), observation[:, 0] + offset, state


@pytest.mark.parametrize("why", ["peeking", "refused", "lies"])
def test_where_graphs_cannot_be_captured_the_operations_run_and_it_is_said(why: str, caplog) -> None:
    device = StandInGraphs()
    net = Peeking() if why == "peeking" else network()
    device.cannot_capture = lambda: why == "refused" and len(device.captured) == 3
    device.lies = why == "lies"
    made, eager = engine(device, net), engine(StandInGraphs(), net)
    with caplog.at_level(logging.WARNING):
        made.warm_up(SIZES)
    said = "gives other answers" if why == "lies" else "not permitted when stream is capturing"
    assert made.runner.startswith("eager: ")
    assert said in made.runner
    assert "\n" not in made.runner
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert said in caplog.text
    assert device.living() == []
    device.lies, sessions, launches = False, Sessions(made.zero_row), device.launches
    for n in (1, 7, 24, 30):
        act_alike(made, eager, sessions.batch(n))
    assert device.launches == launches
