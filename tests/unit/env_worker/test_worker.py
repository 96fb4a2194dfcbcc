"""The worker's loop against scripted replies: what it applies, what it gives up, what it leaves alone."""

from __future__ import annotations

import logging
import time
from collections import Counter
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from simul.common.client.client import Replies
from simul.common.client.evaluation import unanswered
from simul.common.errors import FailingEnvError
from simul.common.protocol.decisions import Action, Failure
from simul.common.protocol.specs import GameSpec
from simul.common.role.lifecycle import STOP_SIGNAL, StopFlag
from simul.env_worker.source import EvaluationRequest
from simul.env_worker.worker import MOST_SAMPLES_WAITING, Worker


class ScriptedClient:
    """Hands out prepared replies and remembers what was submitted."""

    def __init__(self, *replies: Replies) -> None:
        self.policies = ("learner",)
        self.progress = 0.25
        self.waiting = self.answered = self.forgotten = self.resent = self.busy = 0
        self.connected = True
        self.submitted: list[Any] = []
        self.poller = self
        self._replies = list(replies)

    def submit(self, decisions: Any) -> None:
        self.submitted.append(decisions)

    def poll(self) -> Replies:
        return self._replies.pop(0) if self._replies else Replies([], [])

    def set_files(self, files: Any) -> None:
        pass

    def wait(self, timeout_sec: float) -> bool:
        return False


class ScriptedSource:
    """Four envs, env e in episode 10 + e; remembers every call."""

    envs = 4
    spec = GameSpec("script", 2, 3)

    def __init__(self) -> None:
        self.calls: list[tuple[str, Any]] = []
        self.aborted: Counter[str] = Counter()

    def episode(self, env: int) -> int:
        return 10 + env

    def poll(self) -> list[Any]:
        return []

    def files(self) -> list[int]:
        return []

    def act(self, actions: Any) -> None:
        self.calls.append(("act", [action.env for action in actions]))

    def abort(self, envs: Any, cause: str) -> None:
        self.calls.append((cause, sorted(envs)))
        self.aborted[cause] += len(envs)

    def metrics(self) -> dict[str, Any]:
        return {"episodes": {"finished": 0, "aborted": self.aborted}}

    def set_policies(self, names: Any) -> None:
        self.calls.append(("policies", list(names)))

    def set_progress(self, share: float) -> None:
        self.calls.append(("progress", share))

    def start(self) -> None:
        self.calls.append(("start", None))

    def drain(self) -> None:
        self.calls.append(("drain", None))

    def close(self) -> None:
        self.calls.append(("close", None))

    def idle(self) -> bool:
        return False


class ScriptedReporter:
    """Remembers what was sent; `due`: at every pass."""

    def __init__(self, due: bool = False) -> None:
        self._due = due
        self.metrics: list[dict[str, Any]] = []
        self.states: list[str] = []
        self.events: list[str] = []

    def due(self, now: float) -> bool:
        return self._due

    def send(self, metrics: Any, *, state: str = "", event: str = "") -> None:
        self.metrics.append({**metrics, "at": time.perf_counter()})
        self.states.append(state)
        self.events.append(event)


def _worker(source: Any, client: Any, reporter: ScriptedReporter | None = None, *more: Any) -> Worker:
    return Worker(source, client, reporter or ScriptedReporter(), logging.getLogger("test"), *more)  # type: ignore[arg-type]


class SearchingScript(ScriptedSource):
    """Asks for two rows once, and has one sample after their answer."""

    def __init__(self) -> None:
        super().__init__()
        self.requests = [EvaluationRequest(7, "past/1", np.zeros((2, 2)), np.full((2, 1), 7, np.uint8))]
        self.samples: list[Any] = []

    def evaluations(self, most_rows: int) -> list[EvaluationRequest]:
        self.calls.append(("evaluations", most_rows))
        requests, self.requests = self.requests, []
        return requests

    def take_evaluation(self, number: int, evaluation: Any) -> None:
        self.calls.append(("answer", (number, evaluation.id)))
        self.samples = ["sample"]

    def take_samples(self) -> list[Any]:
        samples, self.samples = self.samples, []
        return samples


class SearchingClient(ScriptedClient):
    """Numbers evaluations from 100."""

    rows_per_message = 32

    def __init__(self, *replies: Replies) -> None:
        super().__init__(*replies)
        self.samples = SimpleNamespace(waiting=0)
        self.evaluated: list[Any] = []

    def evaluate(self, observation: Any, mask: Any, *, policy: str, packed: bool) -> int:
        assert packed
        self.evaluated.append((observation.shape, mask.shape, policy))
        return 100

    def submit_samples(self, samples: Any) -> None:
        self.submitted.append(samples)


def test_leaves_are_evaluated_and_samples_sent() -> None:
    answer = unanswered(100, np.full((2, 1), 7, np.uint8), 3)
    client, source = SearchingClient(Replies([], []), Replies([], [], evaluations=[answer])), SearchingScript()
    worker = _worker(source, client)
    for _ in range(3):
        worker._run_once(0.0)
    assert client.evaluated == [((2, 2), (2, 1), "past/1")]
    assert ("answer", (7, 100)) in source.calls
    assert ("evaluations", 32) in source.calls
    assert client.submitted == [["sample"]]


def test_nothing_is_searched_while_too_many_samples_wait() -> None:
    client, source = SearchingClient(Replies([], [])), SearchingScript()
    client.samples.waiting = MOST_SAMPLES_WAITING + 1
    worker = _worker(source, client)
    worker._run_once(0.0)
    assert source.calls == []
    client.samples.waiting = MOST_SAMPLES_WAITING
    worker._run_once(0.0)
    assert client.evaluated


def _turn(*replies: Replies) -> ScriptedSource:
    source = ScriptedSource()
    worker = _worker(source, ScriptedClient(*replies))
    for _ in replies:
        worker._run_once(0.0)
    return source


def _failure(env: int, episode: int, code: str = "ERR_ORDER") -> Failure:
    return Failure(env, 0, episode, 3, code, "why")


def test_actions_go_to_the_source() -> None:
    action = Action(2, 0, 12, 3, 0, 1, -0.1, 0.0, 5)
    assert _turn(Replies([action], [])).calls == [("act", [2])]


SLEEPS = {"poll": 0.008, "observe": 0.005, "act": 0.02, "submit": 0.006, "receive": 0.004, "wait": 0.01}
PASSES = 5


class SleepingSource(ScriptedSource):
    """Sleeps in every second `poll`, a part of it for its observations, and in `act`; is idle after so many passes."""

    def __init__(self) -> None:
        super().__init__()
        self.passes = 0
        self.encode_sec = 1.0  # before the loop

    def poll(self) -> list[Any]:
        self.passes += 1
        if self.passes % 2 == 0:
            return []
        time.sleep(SLEEPS["poll"])
        begin = time.perf_counter()
        time.sleep(SLEEPS["observe"])
        self.encode_sec += time.perf_counter() - begin
        return ["decision"]

    def act(self, actions: Any) -> None:
        time.sleep(SLEEPS["act"])

    def idle(self) -> bool:
        return self.passes == 2 * PASSES

    def metrics(self) -> dict[str, Any]:
        return {"encode_sec": self.encode_sec}


class SleepingClient(ScriptedClient):
    """Sleeps in each call; answers every second `poll`."""

    def submit(self, decisions: Any) -> None:
        super().submit(decisions)
        time.sleep(SLEEPS["submit"])

    def poll(self) -> Replies:
        time.sleep(SLEEPS["receive"])
        return super().poll()

    def wait(self, timeout_sec: float) -> bool:
        time.sleep(SLEEPS["wait"])
        return False


def test_the_stages_of_a_source_that_sleeps_known_times_are_these_times_and_add_up_to_the_wall_clock() -> None:
    actions = [Action(0, 0, 10, 3, 0, 1, -0.1, 0.0, 5), Action(1, 0, 11, 3, 0, -1, 0.0, 0.0, 5)]  # -1: an end
    client = SleepingClient(*[Replies(actions, []), Replies([], [])] * PASSES)
    reports = ScriptedReporter()
    _worker(SleepingSource(), client, reports).run(StopFlag())
    first, last, _ = reports.metrics
    stages = {stage: sec - first["stage_sec"][stage] for stage, sec in last["stage_sec"].items()}
    least = {
        "step": SLEEPS["poll"] + SLEEPS["act"], "encode": SLEEPS["observe"], "submit": SLEEPS["submit"],
        "receive": 2 * SLEEPS["receive"], "wait": SLEEPS["wait"],
    }  # fmt: skip
    for stage, seconds in least.items():
        assert stages[stage] >= PASSES * seconds * 0.99, stage
    assert 0.95 * (last["at"] - first["at"]) <= sum(stages.values()) <= last["loop_sec"]
    assert last["loop_sec"] - first["loop_sec"] == pytest.approx(last["at"] - first["at"], rel=0.05)
    assert last["actions"] == PASSES, "ends are no actions"
    assert "encode_sec" not in last


def test_a_refused_row_ends_its_game_and_no_later_one() -> None:
    failures = [_failure(0, 10), _failure(1, 10), _failure(3, 13, "ERR_MASK")]
    assert _turn(Replies([], failures)).calls == [("ERR_ORDER", [0]), ("ERR_MASK", [3])]


def test_rows_that_are_refused_for_what_the_game_gave_are_named_and_end_the_worker_where_they_are_too_many() -> None:
    """Of every kind of source: only the server has looked at the numbers of one that a user wrote."""

    replies = [Replies([], [_failure(1, 11, "ERR_VALUE")]), Replies([], [_failure(0, 10, "ERR_ORDER")])]
    replies += [Replies([], [_failure(1, 11, "ERR_VALUE")]) for _ in range(30)]
    reporter = ScriptedReporter(due=True)
    worker = _worker(ScriptedSource(), ScriptedClient(*replies), reporter, 0.5)
    sentence = "script: env 1 seat 0 step 3: the server refused the row, why (ERR_VALUE)"
    with pytest.raises(FailingEnvError, match=r"^19 of the last 20 episodes were .*max_failed_share 0\.5\.") as end:
        [worker._run_once(0.0) for _ in replies]
    assert sentence in str(end.value)
    said = [event for event in reporter.events if event]
    assert said == [f"{sentence}; the episode is aborted", f"{sentence}, 10 times so far; the episode is aborted"]


def test_lost_sessions_start_every_game_again() -> None:
    assert _turn(Replies([], [], lost=True)).calls == [("server_lost", [0, 1, 2, 3])]


def test_a_stop_while_the_source_starts_ends_the_worker_before_its_first_turn() -> None:
    """As where a simulator host hangs that should greet us."""

    class Frozen(ScriptedSource):
        def start(self) -> None:
            stop._on_signal(STOP_SIGNAL, None)  # as the signal itself; whatever waits is interrupted
            super().start()

    source, stop, reporter = Frozen(), StopFlag(), ScriptedReporter()
    _worker(source, ScriptedClient(), reporter).run(stop)
    assert source.calls[:-1] == [("policies", ["learner"]), ("progress", 0.25)]
    assert source.calls[-1][0] == "close"
    assert reporter.states == ["stopped"]
