"""The worker's part of a game that is watched: evaluates the decisions of one seat before their STEP, and reports them.

A decision is held while an EVALUATE of its session is answered, because the state that it reads is that of the session
at that moment; the other decisions of the worker go on. The policy, the draws and what is learned stay as they are.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Literal, NamedTuple

import numpy as np

from simul.common.client.client import InferenceClient
from simul.common.client.evaluation import NO_SESSION, Evaluation
from simul.common.errors import ConfigError
from simul.common.protocol.decisions import Action, Decision
from simul.common.protocol.messages import ABORTED, DECISION, TERMINATED, TRUNCATED
from simul.common.role.spectating import (
    ANY_SEAT,
    TOO_LARGE,
    RecordSender,
    RequestReader,
    SpectatorRecord,
    SpectatorRequest,
)
from simul.env_worker.source import EnvSource, ShownPosition, SpectatedSource

LOOK_EVERY_SEC = 1.0
DECISIONS_PER_SEC = 2.0  # that are evaluated, in the mean
MOST_SHARE = 0.01  # of the worker's time, spent on evaluated decisions: costly ones are fewer
# Decisions in a row that are evaluated, so that short episodes are shown whole: at most, and to begin an episode with.
BURST, LEAST_BURST = 12.0, 6.0
HOLD_SEC = 1.0  # for the answer of the server; then the decision goes on without it
MOST_ACTIONS = 10
MOST_NUMBERS = 4096  # of an observation
MOST_LETTERS, MOST_PICTURE, MOST_BATTLE = 20_000, 200_000, 400_000
_KINDS: dict[int, Literal["decision", "terminated", "truncated", "aborted"]] = {
    DECISION: "decision", TERMINATED: "terminated", TRUNCATED: "truncated", ABORTED: "aborted",
}  # fmt: skip


class _Asked(NamedTuple):
    """A decision that is evaluated. held: its STEP waits for the answer, `until` a time of the clock."""

    number: int
    decision: Decision
    record: SpectatorRecord
    held: bool
    until: float


class Spectator:
    """Evaluates the decisions of one seat while a request for it is there. All times are those of `clock`, in seconds.

    Without a request a worker looks for one at most every LOOK_EVERY_SEC, and does nothing else.

    Attributes:
        watching: a request counts.
    """

    def __init__(
        self,
        requests: RequestReader,
        source: EnvSource,
        client: InferenceClient,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.watching = False
        self._requests = requests
        self._source = source
        self._shown = source if isinstance(source, SpectatedSource) else None
        self._client = client
        self._clock = clock
        self._look_at = -math.inf
        self._request: SpectatorRequest | None = None
        self._sender: RecordSender | None = None
        self._asked: _Asked | None = None
        self._numbers: set[int] = set()  # of requests whose answers have not come
        self._seat_of: tuple[int, int] = (-1, -1)  # (episode, seat) of the policy that decided first
        self._last = (-1, -1)  # (episode, seat) of the last evaluated decision
        self._answered: SpectatorRecord | None = None  # waits for its action
        self._credit = 0.0  # decisions that may be evaluated now
        self._credit_at = -math.inf
        self._price = 0.0  # credit that the last evaluated decision took
        self._spent_sec = 0.0  # on it
        self._skipped = 0

    @property
    def held(self) -> int:
        """Decisions that wait for an evaluation, and were not submitted."""
        return int(self._asked is not None and self._asked.held)

    def look(self, now: float) -> list[Decision]:
        """Look for a request, where that is due. Returns a decision that is held no longer."""
        if now < self._look_at:
            return []
        self._look_at = now + LOOK_EVERY_SEC
        request = self._requests.read()
        if request == self._request:
            return []
        released = self._stop()
        if request is not None:
            self._begin(request)
        return released

    def admit(self, decisions: list[Decision]) -> list[list[Decision]]:
        """What is to be submitted of the decisions that are ready, a list for each message; called while `watching`."""
        released: list[Decision] = []
        ready: list[Decision] = []
        for decision in decisions:
            if not self._is_watched(decision):
                ready.append(decision)
                continue
            released += self._release()  # a row of the session behind one that is held: both as if it were not watched
            if decision.kind != DECISION:
                self._end(decision)
                ready.append(decision)
            elif not self._ask(decision, held=True):
                ready.append(decision)
        if self._shown is not None and (searched := self._shown.searched_decisions()):
            self._observe([decision for decision in searched if self._is_watched(decision)])
        if self._asked is not None and self._clock() >= self._asked.until:
            released += self._release()
        return [part for part in (released, ready) if part]

    def take_evaluations(self, evaluations: list[Evaluation]) -> list[Decision]:
        """Take its own answers out of `evaluations`. Returns a decision that is held no longer."""
        released: list[Decision] = []
        for evaluation in list(evaluations):
            if evaluation.id in self._numbers:
                evaluations.remove(evaluation)
                self._numbers.discard(evaluation.id)
                if self._asked is not None and self._asked.number == evaluation.id:
                    released += self._answer(self._asked, evaluation)
        return released

    def take_actions(self, actions: Iterable[Action]) -> None:
        """Before they are applied: the one that answers the decision of the last record."""
        record = self._answered
        if record is None:
            return
        wanted = (record.env, record.seat, record.episode, record.step)
        for action in actions:
            if (action.env, action.seat, action.episode, action.step) == wanted and action.action >= 0:
                record.chosen = self._name(record.env, record.seat, action.action)
                self._send_answered()
                return

    def forget(self) -> None:
        """The server lost all sessions: what is held belongs to none."""
        self._asked = self._answered = None

    def close(self) -> None:
        """Watch no longer; nothing is submitted any more."""
        self._stop()

    def _begin(self, request: SpectatorRequest) -> None:
        try:
            self._sender = self._requests.connect(request)
        except ConfigError:
            return  # the page is gone already; the request is looked at again
        self._request = request
        envs, seats = self._source.envs, self._source.spec.seats
        if request.env >= envs or request.seat >= seats:
            what = f"this worker has games 0 to {envs - 1}, with seats 0 to {seats - 1}"
            self._sender.send(SpectatorRecord(said=f"{what}; asked for game {request.env}, seat {request.seat}"))
            return
        self.watching = True
        self._seat_of = self._last = (-1, -1)
        self._credit, self._credit_at = BURST, self._clock()
        if self._shown is not None:
            self._shown.spectate(request.env)

    def _stop(self) -> list[Decision]:
        released = self._release()
        if self.watching and self._shown is not None:
            self._shown.spectate(None)
        if self._sender is not None:
            self._sender.close()
        self._sender = self._request = self._answered = None
        self.watching = False
        self._skipped = 0
        return released

    def _observe(self, decisions: Sequence[Decision]) -> None:
        """Decisions that a search answers, whatever is evaluated here; the game has gone on to the last one."""
        for number, decision in enumerate(decisions, 1):
            self._release()
            if decision.kind != DECISION:
                self._end(decision)
            elif number < len(decisions):
                self._skipped += 1
            else:
                self._ask(decision, held=False)

    def _is_watched(self, decision: Decision) -> bool:
        request = self._request
        if request is None or decision.env != request.env:
            return False
        if request.seat == ANY_SEAT:
            if decision.episode != self._seat_of[0] and decision.kind == DECISION:
                self._seat_of = (decision.episode, decision.seat)
            return (decision.episode, decision.seat) == self._seat_of
        return decision.seat == request.seat

    def _ask(self, decision: Decision, *, held: bool) -> bool:
        """Send an EVALUATE. False: the decision is not evaluated, because it is not due, or one that is asked again."""
        now = self._clock()
        # A session that is asked again steps from the state before its last step, which no EVALUATE reads.
        if decision.attempt or not self._is_due(decision, now):
            self._skipped += 1
            return False
        assert decision.observation is not None
        assert decision.mask is not None
        self._send_answered()
        begin, self._spent_sec, self._price = time.perf_counter(), 0.0, 0.0
        of_session = (decision.env, decision.seat, decision.episode) if held and decision.step else NO_SESSION
        try:
            number = self._client.evaluate(
                decision.observation[None], decision.mask[None], policy=decision.policy, sessions=[of_session]
            )
        except ValueError:  # arrays that do not fit: `submit` says so
            return False
        self._numbers.add(number)
        self._last = decision.episode, decision.seat
        self._asked = _Asked(number, decision, self._record(decision), held, now + HOLD_SEC)
        self._spend(time.perf_counter() - begin)
        return True

    def _is_due(self, decision: Decision, now: float) -> bool:
        """An episode is followed from its begin, where that is possible, to its end, or until the credit is spent."""
        earned = DECISIONS_PER_SEC * (now - self._credit_at)
        self._credit, self._credit_at = min(self._credit + earned, BURST), now
        if (decision.episode, decision.seat) == self._last:
            return self._credit >= 1.0
        return self._credit >= (LEAST_BURST if decision.step == 0 else BURST)

    def _record(self, decision: Decision) -> SpectatorRecord:
        observation, mask = decision.observation, decision.mask
        assert observation is not None
        assert mask is not None
        numbers = np.asarray(observation[:MOST_NUMBERS], np.float64).round(4)
        shown, said = self._position(decision)
        skipped, self._skipped = self._skipped, 0
        return SpectatorRecord(
            "decision", decision.env, decision.seat, decision.episode, decision.step, policy=decision.policy,
            legal=int(np.count_nonzero(mask)), reward=decision.reward, skipped=skipped,
            observation=[number if math.isfinite(number) else None for number in numbers.tolist()],
            text=shown.text, svg=shown.svg, battle=shown.battle, said=said,
        )  # fmt: skip

    def _position(self, decision: Decision) -> tuple[ShownPosition, str]:
        if self._shown is None:
            return ShownPosition(), ""
        try:
            return _bounded(self._shown.position(decision.env))
        except Exception as error:  # noqa: BLE001 - a user's game may raise anything
            return ShownPosition(), f"the game cannot show its position: {type(error).__name__}: {error}"[:500]

    def _name(self, env: int, seat: int, action: int) -> str:
        if self._shown is not None:
            try:
                return str(self._shown.action_name(env, seat, action))[:200]
            except Exception:  # noqa: BLE001 - a user's game may raise anything; its number is a name, too
                pass
        return str(action)

    def _answer(self, asked: _Asked, evaluation: Evaluation) -> list[Decision]:
        begin, decision, record = time.perf_counter(), asked.decision, asked.record
        self._asked = None
        if evaluation.errors:
            record.said = "the server did not evaluate it: {1} ({0})".format(*next(iter(evaluation.errors.values())))
        elif self._source.episode(decision.env) == decision.episode:  # else names would be those of another game
            assert decision.mask is not None
            legal, priors = np.flatnonzero(decision.mask), evaluation.legal_priors
            best = np.argsort(-priors, kind="stable")[:MOST_ACTIONS]
            record.actions = [
                (self._name(decision.env, decision.seat, int(legal[i])), round(float(priors[i]), 5)) for i in best
            ]
            record.value = float(evaluation.value[0])
            record.policy_version = int(evaluation.policy_version[0])
        self._answered = record
        if not asked.held:
            self._send_answered()
        self._spend(time.perf_counter() - begin)
        return [decision] if asked.held else []

    def _release(self) -> list[Decision]:
        """The decision that is held, which goes on without an answer."""
        asked, self._asked = self._asked, None
        if asked is None:
            return []
        asked.record.said = asked.record.said or "the server has not evaluated it in time"
        self._send(asked.record)
        return [asked.decision] if asked.held else []

    def _end(self, decision: Decision) -> None:
        """Report the end of an episode of which a decision was reported."""
        self._send_answered()
        if (decision.episode, decision.seat) != self._last:
            return
        skipped, self._skipped = self._skipped, 0
        end = SpectatorRecord(_KINDS[decision.kind], decision.env, decision.seat, decision.episode, decision.step)
        end.reward, end.skipped = decision.reward, skipped
        self._send(end)

    def _send_answered(self) -> None:
        record, self._answered = self._answered, None
        if record is not None:
            self._send(record)

    def _send(self, record: SpectatorRecord) -> None:
        begin = time.perf_counter()
        if self._sender is not None:
            self._sender.send(record)
        self._spend(time.perf_counter() - begin)

    def _spend(self, seconds: float) -> None:
        """Take the price of the last evaluated decision from the credit: one, or more where it was costly."""
        self._spent_sec += seconds
        price = max(1.0, self._spent_sec * DECISIONS_PER_SEC / MOST_SHARE)
        self._credit -= price - self._price
        self._price = price


def _bounded(shown: ShownPosition) -> tuple[ShownPosition, str]:
    """What is sent of a position, and a sentence where that is not all. Raises TypeError."""
    if wrong := [type(part).__name__ for part in shown if not isinstance(part, str)]:
        raise TypeError(f"a part of it is {wrong[0]}; expected text")
    fits = len(shown.svg) <= MOST_PICTURE and len(shown.battle) <= MOST_BATTLE
    text, svg, battle = shown.text[:MOST_LETTERS], shown.svg, shown.battle
    return (ShownPosition(text, svg, battle), "") if fits else (ShownPosition(text), TOO_LARGE)
