"""The loops against a policy that answers when and how the test says. No sockets."""

from __future__ import annotations

import numpy as np
import pytest

from simul.common.client.columns import Answer, Columns
from simul.common.client.load import driver as driver_module
from simul.common.client.load.driver import LoadDriver, PoissonSchedule, SessionRows, masks
from simul.common.client.load.windows import Window, WindowClock
from simul.common.errors import InferenceError
from simul.common.protocol.messages import START, Error
from simul.common.protocol.specs import GameSpec, Slice, random_observations

SPEC = GameSpec(name="test/numbers", observation_size=3, num_actions=4)
LAYOUT = (Slice("a", 0, 2, low=-2.0, high=-1.0), Slice("b", 2, 3, kind="id", vocabulary=7))
MIXED = GameSpec("test/mixed", 5, 6, observation_dtype="float16", layout=LAYOUT)


def test_every_arrival_comes_once_and_in_order_however_one_looks() -> None:
    often, once = PoissonSchedule(20_000.0, 5.0, seed=3), PoissonSchedule(20_000.0, 5.0, seed=3)
    parts = [often.due(now) for now in np.linspace(5.0, 6.0, 57)]
    together = once.due(6.0)
    assert np.array_equal(np.concatenate(parts), together)
    assert bool((np.diff(together) >= 0).all())
    assert together[0] > 5.0
    assert together[-1] <= 6.0 < once.next


def test_gaps_are_exponential_with_the_offered_rate() -> None:
    times = PoissonSchedule(1000.0, 0.0, seed=1).due(60.0)
    gaps = np.diff(times)
    assert len(times) == pytest.approx(60_000, rel=0.02)
    assert gaps.std() == pytest.approx(gaps.mean(), rel=0.02)  # of an exponential they are equal


def test_observations_keep_to_the_layout() -> None:
    drawn = random_observations(MIXED, 200, np.random.default_rng(0))
    assert drawn.dtype == np.float16
    assert drawn[:, :2].min() >= -2.0
    assert drawn[:, :2].max() <= -1.0
    assert set(np.unique(drawn[:, 2:]).tolist()) == set(range(7))


def test_every_mask_leaves_an_action() -> None:
    drawn = masks(MIXED, 500, np.random.default_rng(0))
    assert drawn.sum(axis=1).min() >= 1
    assert 0.4 < drawn.mean() < 0.7


def test_all_seats_cost_no_copy_and_some_are_theirs() -> None:
    seats = SessionRows(MIXED, 4, seed=1)
    everyone = seats.rows(np.arange(4))
    assert everyone is seats.rows(np.arange(4))
    some = seats.rows(np.array([3, 1]))
    assert some.keys[:, 0].tolist() == [3, 1]
    assert np.array_equal(some.observation, everyone.observation[[3, 1]])
    shuffled = seats.rows(np.array([1, 0, 3, 2]))
    assert shuffled.keys[:, 0].tolist() == [1, 0, 3, 2]


def test_steps_and_episodes() -> None:
    seats = SessionRows(MIXED, 3, seed=1)
    seats.advance(np.array([0, 2]))
    seats.advance(np.array([2]))
    seats.restart(np.array([2]))
    rows = seats.rows(np.arange(3))
    assert rows.keys[:, 2].tolist() == [0, 0, 1]
    assert rows.keys[:, 3].tolist() == [1, 0, 0]
    assert rows.flags.tolist() == [0, START, START]


class FakePolicy:
    """Answers each message in two halves, and checks the contract: one row a session on its way, steps without gaps."""

    def __init__(self, refuse_every: int = 0) -> None:
        self.refusals: list[Error] = []
        self.rows = 0
        self.refused = 0
        self._refuse_every = refuse_every
        self._on_their_way: set[int] = set()
        self._expected: dict[int, tuple[int, int]] = {}
        self._messages: list[tuple[int, list[int], list[int]]] = []
        self._number = 0
        self.now = 50.0  # the driver's clock; a look at the answers takes 0.1 ms

    def submit(self, columns: Columns) -> int:
        self._number += 1
        envs = columns.keys[:, 0].tolist()
        for env, episode, step, flags in zip(
            envs, columns.keys[:, 2].tolist(), columns.keys[:, 3].tolist(), columns.flags.tolist()
        ):
            assert env not in self._on_their_way
            self._on_their_way.add(env)
            assert (episode, step) == self._expected.get(env, (0, 0))
            assert (flags == START) == (step == 0)
            self._expected[env] = (episode, step + 1)
        self.rows += len(envs)
        rows = list(range(len(envs)))
        half = len(rows) // 2
        self._messages += [(self._number, part, envs) for part in (rows[half:], rows[:half]) if part]
        return self._number

    def poll(self) -> list[Answer]:
        self.now += 0.0001
        if not self._messages:
            return []
        number, rows, envs = self._messages.pop(0)
        self._on_their_way -= {envs[row] for row in rows}
        if self._refuse_every and self._number % self._refuse_every == 0:
            self.refused += len(rows)
            for row in rows:
                self._expected[envs[row]] = (self._expected[envs[row]][0] + 1, 0)
            self.refusals.append(Error(code="ERR_BUSY", message="", id=number, rows=tuple(rows)))
            return []
        index = np.array(rows, np.int32)
        zeros = np.zeros(len(rows), np.float32)
        return [Answer(number, index, index, zeros, zeros, index.astype(np.int64))]

    def wait(self, timeout_sec: float) -> None:
        if not self._messages:
            self.now += timeout_sec


def _drive(policy: FakePolicy, mode: str, envs: int = 7, rate: float = 3000.0) -> list[Window]:
    windows: list[Window] = []

    def tick(window: Window) -> bool:
        windows.append(window)
        return len(windows) == 3

    start = policy.now
    windows_clock = WindowClock(start, 0.01, 0.05)
    driver = LoadDriver(policy, SessionRows(SPEC, envs, seed=0), windows_clock, clock=lambda: policy.now)
    if mode == "closed":
        driver.closed_loop(envs, tick)
    else:
        driver.open_loop(envs, PoissonSchedule(rate, start, seed=0), tick)
    return windows


@pytest.mark.parametrize("mode", ["closed", "open"])
def test_sessions_go_on_step_by_step_and_begin_anew_where_they_were_refused(mode: str) -> None:
    policy = FakePolicy(refuse_every=3)
    windows = _drive(policy, mode)
    answered = sum(sum(window.latencies.values()) for window in windows)
    refused = sum(window.errors.get("ERR_BUSY", 0) for window in windows)
    assert answered > 0
    assert 0 < refused <= policy.refused
    assert answered + refused <= policy.rows


def test_open_loop_counts_the_wait_for_a_free_session() -> None:
    """One session answers 900 rows a second here; 5000 are due: the queue shows in the latency."""

    class Slow(FakePolicy):
        def poll(self) -> list[Answer]:
            self.now += 0.001
            return super().poll()

    windows = _drive(Slow(), "open", envs=1, rate=5000.0)
    last = windows[-1]
    assert max(last.latencies) > max(windows[0].latencies)  # buckets: the backlog grows
    assert max(last.send_lags) > 32 * 13  # sent more than 8 ms late


def test_open_loop_offers_the_rate_whatever_the_server_does() -> None:
    windows = _drive(FakePolicy(), "open", envs=64, rate=2000.0)
    assert sum(sum(window.latencies.values()) for window in windows) == pytest.approx(300, rel=0.2)


def test_a_server_that_falls_silent_ends_the_load(monkeypatch: pytest.MonkeyPatch) -> None:
    class Silent(FakePolicy):
        def poll(self) -> list[Answer]:
            self.now += 0.0001
            return []

    monkeypatch.setattr(driver_module, "SILENT_SEC", 0.03)
    policy = Silent()
    with pytest.raises(InferenceError, match="answered nothing"):
        _drive(policy, "closed")


def test_an_error_that_belongs_to_no_message_ends_the_load() -> None:
    policy = FakePolicy()
    policy.refusals.append(Error(code="ERR_HELLO", message="say HELLO first"))
    with pytest.raises(InferenceError, match="say HELLO first"):
        _drive(policy, "closed")
