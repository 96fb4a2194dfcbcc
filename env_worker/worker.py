"""The env worker's main loop: gather what is ready, send it as one message, apply the actions that come back."""

from __future__ import annotations

import time
from collections.abc import Iterable
from logging import Logger
from typing import Any

from simul.common.client.client import InferenceClient, Replies
from simul.common.protocol.decisions import Decision, Failure
from simul.common.role.lifecycle import StopFlag, Stopped
from simul.common.role.reports import Reporter
from simul.common.runtime.metrics import Stages
from simul.env_worker.calibration import ValueCalibration
from simul.env_worker.game_watch import GameWatch
from simul.env_worker.refusals import FAULTS_OF_GAMES, RefusedRows
from simul.env_worker.source import SERVER_LOST, CurriculumSource, EnvSource, SearchingSource
from simul.env_worker.spectator import Spectator

WAIT_SEC = 0.05
DRAIN_SEC = 2.0
MOST_SAMPLES_WAITING = 4096  # while the server has taken no more, nothing is searched
STAGES = ("wait", "step", "submit", "receive", "report")


class Worker:
    """Steps the envs of one source: one STEP message for all decisions that are ready."""

    def __init__(
        self, source: EnvSource, client: InferenceClient, reporter: Reporter, log: Logger,
        max_failed_share: float = 1.0, watch: GameWatch | None = None, calibration: ValueCalibration | None = None,
        spectator: Spectator | None = None,
    ) -> None:  # fmt: skip
        """`max_failed_share`: of episodes with refused rows, see RefusedRows. `watch`: is told that the loop turns.

        `calibration`: sees all decisions and answers, and its figures are reported. `spectator`: shows a game to a
        page that asks for it.
        """
        self._spectator = spectator
        self._calibration = calibration
        self._source = source
        self._client = client
        self._reporter = reporter
        self._log = log
        self._watch = watch
        self._decisions = 0
        self._refused: dict[str, int] = {}
        self._refused_rows = RefusedRows(source.spec.name, source.envs, max_failed_share)
        self._event = ""
        self._actions = 0
        self._searching = source if isinstance(source, SearchingSource) else None
        self._stages = Stages(STAGES if self._searching is None else (*STAGES, "search"))
        self._encoded_before = 0.0  # seconds that the source took for observations before the loop
        self._evaluations: dict[int, int] = {}  # numbers of the source's requests, by the client's

    def run(self, stop: StopFlag) -> None:
        """Step games until `stop` is set or the source is idle."""
        self._tell_source()
        try:
            with stop.interrupting():
                self._source.start()
        except Stopped:
            self._source.close()
            self._reporter.send(self.metrics(), state="stopped")
            return
        self._encoded_before = self._source.metrics().get("encode_sec", 0.0)
        self._stages.start()
        self._reporter.send(self.metrics(), state="ready")
        while not stop and not (self._source.idle() and not self._unanswered()):
            self._run_once(WAIT_SEC)
        self._source.drain()
        self._reporter.send(self.metrics(), state="draining")
        deadline = time.monotonic() + DRAIN_SEC
        while self._unanswered() and time.monotonic() < deadline:
            self._run_once(WAIT_SEC)
        if self._spectator is not None:
            self._spectator.close()
        self._source.close()
        self._reporter.send(self.metrics(), state="stopped")

    def metrics(self) -> dict[str, Any]:
        """Counters since process start, the source's included."""
        source = dict(self._source.metrics())
        seconds = self._stages.seconds
        encode_sec = source.pop("encode_sec", 0.0) - self._encoded_before
        encode_sec = min(encode_sec, seconds["step"]) if self._searching is None else 0.0  # searches encode, too
        return {
            "decisions": self._decisions,
            "answered": self._client.answered,
            "refused": dict(self._refused),
            "unanswered": {"waiting": self._client.waiting, "lost": {"server_lost": self._client.forgotten}},
            "resent": self._client.resent,
            "busy": self._client.busy,
            "connected": self._client.connected,
            "actions": self._actions,
            "stage_sec": {**seconds, "step": seconds["step"] - encode_sec, "encode": encode_sec},
            "loop_sec": self._stages.elapsed_sec,
            **source,
            **({"calibration": self._calibration.figures()} if self._calibration is not None else {}),
            **({"samples": self._sample_counts()} if self._searching is not None else {}),
        }

    def _run_once(self, wait_sec: float) -> None:
        if self._watch is not None:
            self._watch.beat()
        stages = self._stages
        decisions = self._source.poll()
        stages.lap("step")
        if self._spectator is not None and self._spectator.watching:
            for message in self._spectator.admit(decisions):
                self._submit(message)
        elif decisions:
            self._submit(decisions)
        stages.lap("submit")
        if self._searching is not None:
            self._submit_searches(self._searching)
        replies = self._client.poll()
        stages.lap("receive")
        self._apply(replies)
        stages.lap("step")
        now = time.monotonic()
        if self._reporter.due(now):
            self._tell_source()
            self._reporter.send(self.metrics(), event=self._event)
            self._event = ""
            if self._spectator is not None:
                self._submit(self._spectator.look(now))
        stages.lap("report")
        if not (decisions or replies.actions or replies.evaluations):  # what was just applied may have made rows ready
            self._client.poller.set_files(self._source.files())
            self._client.poller.wait(wait_sec)
            stages.lap("wait")

    def _tell_source(self) -> None:
        """What the server said last: the policies that it offers, and how far the learner is."""
        self._source.set_policies(self._client.policies)
        if isinstance(self._source, CurriculumSource):
            self._source.set_progress(self._client.progress)

    def _submit(self, decisions: list[Decision]) -> None:
        if decisions:
            self._decisions += len(decisions)
            if self._calibration is not None:
                self._calibration.take_decisions(decisions)
            self._client.submit(decisions)

    def _unanswered(self) -> int:
        """Rows and samples that the server has not answered."""
        samples = self._client.samples.waiting if self._searching is not None else 0
        return self._client.waiting + samples + (self._spectator.held if self._spectator is not None else 0)

    def _sample_counts(self) -> dict[str, Any]:
        samples = self._client.samples
        return {
            "submitted": samples.submitted,
            "accepted": samples.accepted,
            "refused": dict(samples.refused),
            "waiting": samples.waiting,
        }

    def _submit_searches(self, source: SearchingSource) -> None:
        """Send the leaves and the samples that are ready."""
        client, stages = self._client, self._stages
        if client.samples.waiting <= MOST_SAMPLES_WAITING:
            requests = source.evaluations(client.rows_per_message)
            stages.lap("search")
            for request in requests:
                number = client.evaluate(request.observation, request.mask, policy=request.policy, packed=True)
                self._evaluations[number] = request.number
        if samples := source.take_samples():
            client.submit_samples(samples)
        stages.lap("submit")

    def _apply(self, replies: Replies) -> None:
        spectator = self._spectator
        if spectator is not None and replies.lost:
            spectator.forget()
        if spectator is not None and replies.evaluations:
            self._submit(spectator.take_evaluations(replies.evaluations))
        if self._searching is not None:
            for evaluation in replies.evaluations:
                self._searching.take_evaluation(self._evaluations.pop(evaluation.id), evaluation)
            self._stages.lap("search")
        if replies.lost:
            self._event = "the inference server forgot our sessions; their games start again"
            self._log.warning(self._event)
            self._source.abort(_every_env(self._source), SERVER_LOST)
            return
        if replies.actions:
            ends = [action.action for action in replies.actions].count(-1)  # acknowledged, nothing is stepped
            self._actions += len(replies.actions) - ends
            if self._calibration is not None:
                self._calibration.take_actions(replies.actions)
            if spectator is not None and spectator.watching:
                spectator.take_actions(replies.actions)
            self._source.act(replies.actions)
        if replies.failures:
            self._abort_refused(replies.failures)

    def _abort_refused(self, failures: list[Failure]) -> None:
        """Abort the episodes of refused rows. Raises FailingEnvError where too many are the game's fault."""
        for failure in failures:
            if failure.code not in self._refused:
                self._log.warning("env %d seat %d: %s: %s", failure.env, failure.seat, failure.code, failure.message)
            self._refused[failure.code] = self._refused.get(failure.code, 0) + 1
        by_code: dict[str, set[int]] = {}
        for failure in failures:
            if self._source.episode(failure.env) == failure.episode:  # else that episode is over already
                by_code.setdefault(failure.code, set()).add(failure.env)
        for code, envs in by_code.items():
            self._source.abort(envs, code)
        if not FAULTS_OF_GAMES.isdisjoint(failure.code for failure in failures):
            said = self._refused_rows.add(failures, self._source.metrics()["episodes"])
            self._event = "; ".join([self._event, *said] if self._event else said)


def _every_env(source: EnvSource) -> Iterable[int]:
    return range(source.envs)
