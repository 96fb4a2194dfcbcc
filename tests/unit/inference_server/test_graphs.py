"""Batches as graph replays against the same batches run one operation at a time, to the last bit."""

from __future__ import annotations

import logging
import threading
import weakref

import numpy as np
import pytest
import torch

from common import rng
from common.config import NetworkConfig
from common.nets.base import RecurrentNetwork
from common.nets.build import build_network
from common.nets.weights import fingerprint, weights_to_bytes
from common.specs import GameSpec
from inference_server.engine.backends import DeviceBackend
from inference_server.engine.graphs import GRAPH_BUCKETS, GraphEngine
from inference_server.weights import stage
from tests.support.graph_stand_in import StandInGraphs

SPEC = GameSpec(name="test", observation_size=6, num_actions=5)
HALF = GameSpec(name="half", observation_size=7, num_actions=3, observation_dtype="float16")
SLOTS = 200
MAX_BATCH = 20
BUCKETS = (1, 2, 4, 8, 16, 24)
SIZES = (1, 2)
LOG = logging.getLogger("test")


def network(seed: int = 0, spec: GameSpec = SPEC) -> RecurrentNetwork:
    return build_network(NetworkConfig(options={"hidden": 16}), spec, seed=seed)


def engine(device: StandInGraphs, net: RecurrentNetwork | None = None, spec: GameSpec = SPEC, **more) -> GraphEngine:
    options = {"precision": torch.float32, "max_batch": MAX_BATCH, "max_sessions": SLOTS} | more
    net = net or network(spec=spec)
    made = GraphEngine(net, spec, device=torch.device("cpu"), graphs=device, log=LOG, **options)
    made._backend = DeviceBackend(made._run, made._table, spec.num_actions)  # what runs where no graph does
    return made


def captured(device: StandInGraphs, *args, **more) -> GraphEngine:
    made = engine(device, *args, **more)
    made.warm_up(SIZES)
    assert made.runner.endswith(" graphs")
    return made


class Sessions:
    """What an engine's rows belong to: every slot's newest row and its spare one, as the server keeps them."""

    def __init__(self, zero_row: int, spec: GameSpec = SPEC, seed: int = 0) -> None:
        self.newest = np.full(SLOTS, zero_row)
        self.spare = 2 * np.arange(SLOTS)
        self._zero, self._spec = zero_row, spec
        self._draw = np.random.default_rng(seed)

    def batch(self, n: int, redo_share: float = 0.2):
        """Arguments of `act` for n sessions: first steps, next steps, steps that are done again."""
        draw, spec = self._draw, self._spec
        slots = draw.permutation(SLOTS)[:n]
        first = self.newest[slots] == self._zero
        redo = (draw.random(n) < redo_share) & ~first
        read, write = self.newest[slots], self.spare[slots]
        read, write = np.where(redo, write, read), np.where(redo, read, write)
        self.newest[slots], self.spare[slots] = write, write ^ 1
        noise = rng.gumbel(slots.astype(np.uint64), np.zeros(n, np.uint64), np.zeros(n, np.uint64), spec.num_actions)
        noise[draw.random(n) < 0.3] = 0.0
        mask = (draw.random((n, spec.num_actions)) < 0.6).astype(np.uint8)
        mask[:, 0] = 1
        observation = draw.standard_normal((n, spec.observation_size)).astype(spec.dtype())
        temperature = draw.choice([0.5, 1.0, 2.0], n).astype(np.float32)
        return observation, mask, read, write, noise, temperature


def table(made: GraphEngine) -> np.ndarray:
    """Everything but the scratch row."""
    return made.states(np.arange(made.zero_row + 1))


def assert_same(found, expected) -> None:
    for name in ("action", "log_prob", "value"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), err_msg=name)
        assert getattr(found, name).dtype == getattr(expected, name).dtype


def act_alike(graphs: GraphEngine, eager: GraphEngine, batch) -> None:
    assert_same(graphs.act(*batch), eager.act(*batch))
    np.testing.assert_array_equal(table(graphs), table(eager))


@pytest.mark.parametrize(
    ("precision", "spec"),
    [(torch.float32, SPEC), (torch.bfloat16, SPEC), (torch.float16, SPEC), (torch.float32, HALF)],
    ids=("float32", "bfloat16", "float16", "float16-on-the-wire"),
)
def test_replays_give_what_the_operations_give(precision: torch.dtype, spec: GameSpec) -> None:
    device = StandInGraphs()
    graphs, eager = captured(device, precision=precision, spec=spec), engine(device, precision=precision, spec=spec)
    sessions, before = Sessions(graphs.zero_row, spec), device.replays
    sizes = [*range(1, 27), 24, 48, 49, 70, 3, 1]  # every bucket, full and with padding; more than the largest
    for n in sizes:
        act_alike(graphs, eager, sessions.batch(n))
    assert device.replays - before == sum(-(-n // BUCKETS[-1]) for n in sizes)
    assert np.count_nonzero(table(graphs)[graphs.zero_row]) == 0


@pytest.mark.parametrize("precision", [torch.float32, torch.bfloat16])
def test_weights_copied_in_between_replays_serve_from_the_next_one_on(precision: torch.dtype) -> None:
    device = StandInGraphs()
    graphs, eager = captured(device, precision=precision), engine(device, precision=precision)
    sessions, values = Sessions(graphs.zero_row), []
    for seed in range(4):
        data = weights_to_bytes(network(seed))
        for made in (graphs, eager):
            made.load(stage(data, fingerprint(data), network()))
        for n in (3, 17):
            act_alike(graphs, eager, sessions.batch(n))
        alone = np.ones((1, 6), np.float32), np.ones((1, 5), np.uint8), np.array([graphs.zero_row]), np.array([0])
        values.append(graphs.act(*alone, np.zeros((1, 5), np.float32)).value[0])
        eager.act(*alone, np.zeros((1, 5), np.float32))
    assert len(set(values)) == 4
    assert graphs.runner == f"{len(BUCKETS)} graphs"


def test_policies_have_graphs_of_their_own() -> None:
    device = StandInGraphs()
    pairs = [(captured(device, network(seed)), engine(device, network(seed))) for seed in (1, 2, 3)]
    assert device.lanes == 3
    sessions = [Sessions(graphs.zero_row, seed=i) for i, (graphs, _) in enumerate(pairs)]
    for n in (1, 5, 24, 2, 31):
        for (graphs, eager), own in zip(pairs, sessions):
            act_alike(graphs, eager, own.batch(n))


def test_a_batch_of_another_policy_may_come_between_forward_and_sample() -> None:
    device = StandInGraphs()
    (first, expected), (second, other) = [(captured(device, network(i)), engine(device, network(i))) for i in (1, 2)]
    a, b = (Sessions(first.zero_row, seed=i).batch(5) for i in (1, 2))
    expected_a = expected.act(*a)
    staging = first.stage(5)
    staging.observation[:5], staging.mask[:5], staging.read_rows[:5], staging.write_rows[:5] = a[:4]
    staging.noise[:5], staging.temperature[:5] = a[4:]
    first.forward(5)
    assert_same(second.act(*b), other.act(*b))
    assert_same(first.sample(), expected_a)


def test_answers_stay_what_they_are_when_the_next_batch_comes() -> None:
    device = StandInGraphs()
    graphs, eager = captured(device), engine(device)
    sessions = Sessions(graphs.zero_row)
    batches = [sessions.batch(6) for _ in range(3)]
    found = [graphs.act(*batch) for batch in batches]
    for answers, batch in zip(found, batches):
        assert_same(answers, eager.act(*batch))


def test_evaluating_reads_the_table_and_disturbs_no_batch() -> None:
    device = StandInGraphs()
    graphs, eager = captured(device), engine(device)
    sessions = Sessions(graphs.zero_row)
    for n in (5, 12, 12, 5):
        act_alike(graphs, eager, sessions.batch(n))
        observation, mask, rows, *_ = sessions.batch(n)
        before = table(graphs)
        for found, expected in zip(graphs.evaluate(observation, mask, rows), eager.evaluate(observation, mask, rows)):
            np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(table(graphs), before)


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
            graphs.act(*batch)
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
        graphs.act(*batch)
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
    found = graphs.act(bad, *batch[1:])
    assert not np.isfinite(found.value[5])
    np.testing.assert_array_equal(graphs.states(batch[2]), read)  # whoever acts again finds the state before
    for part in (slice(0, 5), slice(6, 8), slice(0, 5)):  # as the actor does; the bad row still lies in the padding
        rows = tuple(column[part] for column in batch)
        expected = eager.act(*rows)
        assert np.isfinite(expected.value).all()
        assert_same(graphs.act(*rows), expected)
    kept = np.setdiff1d(np.arange(graphs.zero_row + 1), batch[3][5])
    np.testing.assert_array_equal(graphs.states(kept), eager.states(kept))


def test_every_bucket_is_captured_the_largest_first_into_one_lane() -> None:
    device = StandInGraphs()
    rows = []
    made = engine(device)
    made.warm_up(SIZES)
    for graph in device.living():
        rows.append(graph.operations[0][3][0].shape[0])
    assert rows == sorted(BUCKETS, reverse=True)
    assert device.lanes == 1
    assert made.least_forward_sec > 0
    assert np.count_nonzero(table(made)) == 0


@pytest.mark.parametrize(
    ("max_batch", "largest"), [(1, 1), (100, 112), (256, 256), (257, 512), (4096, 4096), (9999, 4096)]
)
def test_the_largest_bucket_takes_a_full_batch(max_batch: int, largest: int) -> None:
    assert engine(StandInGraphs(), max_batch=max_batch).largest_batch == largest
    assert largest in GRAPH_BUCKETS


def test_deterministic_engines_have_one_graph() -> None:
    device = StandInGraphs()
    graphs, eager = captured(device, deterministic=True), engine(device, deterministic=True)
    assert graphs.runner == "1 graphs"
    sessions = Sessions(graphs.zero_row)
    for n in (1, 63, 64, 65, 130):
        act_alike(graphs, eager, sessions.batch(n))


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


def test_graphs_go_when_their_engine_goes() -> None:
    device = StandInGraphs()
    made, other = captured(device), captured(device, network(1))
    made.act(*Sessions(made.zero_row).batch(5))
    gone = weakref.ref(made)
    assert len(device.living()) == 2 * len(BUCKETS)
    del made
    assert gone() is None
    assert len(device.living()) == len(BUCKETS)
    other.act(*Sessions(other.zero_row).batch(5))


def test_a_policy_that_joins_runs_without_graphs_until_they_are_there() -> None:
    device, hold = StandInGraphs(), threading.Event()
    device.before_capture = lambda: hold.wait(20)
    graphs, eager = engine(device), engine(StandInGraphs())
    sessions = Sessions(graphs.zero_row)
    graphs.warm_up_beside()
    for n in (5, 30):
        act_alike(graphs, eager, sessions.batch(n))
    assert device.launches == 0
    batch = sessions.batch(7)
    staging = graphs.stage(7)  # filled before the graphs are there, forwarded after
    staging.observation[:7], staging.mask[:7], staging.read_rows[:7], staging.write_rows[:7] = batch[:4]
    staging.noise[:7], staging.temperature[:7] = batch[4:]
    hold.set()
    (thread,) = [thread for thread in threading.enumerate() if thread.name == "graph-capture"]
    thread.join(20)
    assert graphs.runner == f"{len(BUCKETS)} graphs"
    graphs.forward(7)
    assert_same(graphs.sample(), eager.act(*batch))
    launches = device.launches
    for n in (5, 30):
        act_alike(graphs, eager, sessions.batch(n))
    assert device.launches == launches + 3
