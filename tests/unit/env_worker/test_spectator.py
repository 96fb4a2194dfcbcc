"""A watched game in the worker: what is evaluated, held and reported; without a request nothing is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simul.common.client.client import Replies
from simul.common.client.evaluation import NO_SESSION, Evaluation, unanswered
from simul.common.errors import ConfigError
from simul.common.protocol.decisions import Action, Decision
from simul.common.protocol.masks import pack_masks
from simul.common.protocol.messages import ABORTED, TERMINATED
from simul.common.protocol.specs import GameSpec
from simul.common.role.spectating import SpectatorRecord, SpectatorRequest
from simul.env_worker.source import ShownPosition
from simul.env_worker.spectator import (
    BURST,
    DECISIONS_PER_SEC,
    HOLD_SEC,
    LEAST_BURST,
    LOOK_EVERY_SEC,
    MOST_BATTLE,
    MOST_PICTURE,
    MOST_SHARE,
    Spectator,
)
from tests.unit.env_worker.test_worker import ScriptedClient, ScriptedSource, _worker

MASK = np.array([1, 0, 1], np.uint8)
REQUEST = SpectatorRequest("0123abcd", 1, 0)


class Page:
    """Asks for `request`, and keeps what it is sent."""

    def __init__(self, request: SpectatorRequest | None) -> None:
        self.request = request
        self.looks = 0
        self.records: list[SpectatorRecord] = []
        self.closed = 0
        self.refused = False

    def read(self) -> SpectatorRequest | None:
        self.looks += 1
        return self.request

    def connect(self, request: SpectatorRequest) -> Page:
        if self.refused:
            raise ConfigError("gone")
        return self

    def send(self, record: SpectatorRecord) -> None:
        self.records.append(record)

    def close(self) -> None:
        self.closed += 1


class Client:
    """Keeps what is to be evaluated, numbered from 50."""

    def __init__(self) -> None:
        self.asked: list[tuple[float, str, Any]] = []

    def evaluate(self, observation: Any, mask: Any, *, policy: str, sessions: Any) -> int:
        assert observation.shape == (1, 2)
        assert mask.shape == (1, 3)
        self.asked.append((float(observation[0, 0]), policy, sessions[0]))
        return 49 + len(self.asked)


class Game(ScriptedSource):
    """Four games of two seats that can be shown."""

    spec = GameSpec("script", 2, 3, seats=2)

    def __init__(self) -> None:
        super().__init__()
        self.searched: list[Decision] = []
        self.error = ""
        self.shown: Any = None

    def spectate(self, env: int | None) -> None:
        self.calls.append(("spectate", env))

    def position(self, env: int) -> ShownPosition:
        if self.error:
            raise RuntimeError(self.error)
        return self.shown or ShownPosition(f"position of {env}", "<svg/>")

    def action_name(self, env: int, seat: int, action: int) -> str:
        return f"act {action}"

    def searched_decisions(self) -> list[Decision]:
        searched, self.searched = self.searched, []
        return searched


class Watched:
    """A Spectator with a clock of its own, and what it talks to."""

    def __init__(self, request: SpectatorRequest | None = REQUEST, source: Any = None) -> None:
        self.now = 100.0
        self.page, self.client, self.source = Page(request), Client(), source or Game()
        self.spectator = Spectator(self.page, self.source, self.client, lambda: self.now)
        self.spectator.look(self.now)

    def admit(self, *decisions: Decision) -> list[list[tuple[int, int, int]]]:
        """(env, seat, step) of each decision that is submitted, by message."""
        messages = self.spectator.admit(list(decisions))
        return [[(each.env, each.seat, each.step) for each in message] for message in messages]

    def answer(self, number: int, **more: Any) -> list[Decision]:
        return self.spectator.take_evaluations([evaluation(number, **more)])


def decision(step: int, env: int = 1, seat: int = 0, **more: Any) -> Decision:
    observation = np.array([step / 4, 0.25], np.float16)
    return Decision(env, seat, 10 + env, step, observation=observation, mask=MASK, **more)


def evaluation(number: int, **more: Any) -> Evaluation:
    found = unanswered(number, pack_masks(MASK[None]), 3)
    found.legal_priors[:] = 0.25, 0.75
    found.value[0], found.policy_version[0] = 1.5, 7
    for name, value in more.items():
        setattr(found, name, value)
    return found


def acted(step: int, action: int = 0) -> Action:
    return Action(1, 0, 11, step, 0, action, -0.1, 0.0, 7)


def test_without_a_request_a_worker_looks_once_a_second_and_does_nothing_else() -> None:
    watched = Watched(None)
    for _ in range(30):
        watched.now += 0.1
        watched.spectator.look(watched.now)
    assert not watched.spectator.watching
    assert watched.page.looks <= 1 + 3 / LOOK_EVERY_SEC
    client, source = ScriptedClient(Replies([], [])), Game()
    ready = [decision(0)]
    source.poll = lambda: ready  # type: ignore[method-assign]
    spectator = Spectator(Page(None), source, client)  # type: ignore[arg-type] # it has no `evaluate`
    _worker(source, client, None, 1.0, None, None, spectator)._run_once(0.0)
    assert client.submitted == [ready]
    assert ("spectate", 1) not in source.calls


def test_a_decision_is_held_until_it_is_evaluated_and_reported_with_the_action_that_answers_it() -> None:
    watched = Watched()
    mine = decision(0)
    assert watched.admit(decision(0, env=2), mine, decision(0, seat=1)) == [[(2, 0, 0), (1, 1, 0)]]
    assert watched.client.asked == [(0.0, "learner", NO_SESSION)]
    assert watched.spectator.held == 1
    assert watched.answer(50) == [mine]
    assert watched.spectator.held == 0
    assert watched.page.records == []
    watched.spectator.take_actions([Action(1, 1, 11, 0, 0, 2, 0.0, 0.0, 7), acted(0)])
    (record,) = watched.page.records
    assert (record.kind, record.env, record.seat, record.episode, record.step) == ("decision", 1, 0, 11, 0)
    assert record.actions == [("act 2", 0.75), ("act 0", 0.25)]
    assert (record.value, record.policy_version, record.chosen, record.legal) == (1.5, 7, "act 0", 2)
    assert (record.text, record.svg, record.observation) == ("position of 1", "<svg/>", [0.0, 0.25])


def test_later_decisions_read_the_state_of_their_session() -> None:
    watched = Watched()
    watched.spectator.admit([decision(3, policy="past/2")])
    assert watched.client.asked == [(0.75, "past/2", (1, 0, 11))]


def test_a_decision_that_is_asked_again_goes_on_and_is_counted() -> None:
    watched = Watched()
    watched.spectator.admit([decision(0)])
    watched.answer(50)
    assert watched.admit(decision(0, attempt=1)) == [[(1, 0, 0)]]
    watched.spectator.admit([decision(1)])
    watched.answer(51)
    watched.spectator.take_actions([acted(1)])
    assert [(record.step, record.skipped) for record in watched.page.records] == [(0, 0), (1, 1)]


@pytest.fixture
def costless(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine what is done in a test would cost more than a decision has."""
    monkeypatch.setattr("simul.env_worker.spectator.time.perf_counter", lambda: 0.0)


def test_so_many_decisions_are_evaluated_in_a_row_and_a_second(costless: None) -> None:
    watched = Watched()
    for step in range(100):
        watched.spectator.admit([decision(step)])
        watched.answer(49 + len(watched.client.asked))
        watched.now += 0.01
    assert BURST <= len(watched.client.asked) <= BURST + 1 + DECISIONS_PER_SEC
    before = len(watched.client.asked)
    for step in range(100, 200):
        watched.spectator.admit([decision(step)])
        watched.answer(49 + len(watched.client.asked))
        watched.now += 0.1
    assert len(watched.client.asked) - before == pytest.approx(10 * DECISIONS_PER_SEC, abs=1)


def test_short_episodes_are_followed_from_their_begin_to_their_end_and_some_pass(costless: None) -> None:
    watched = Watched()
    followed: dict[int, list[int]] = {}
    for episode in range(100):
        for step in range(int(LEAST_BURST)):
            row = decision(step)
            row.episode = episode
            if watched.admit(row) == []:
                followed.setdefault(episode, []).append(step)
                watched.answer(49 + len(watched.client.asked))
            watched.now += 0.05
    assert set(map(tuple, followed.values())) == {tuple(range(int(LEAST_BURST)))}
    assert 5 <= len(followed) <= 20


def test_a_page_that_is_lost_ends_it_and_frees_what_is_held() -> None:
    watched = Watched()
    held = decision(0)
    watched.spectator.admit([held])
    watched.page.request = None
    assert watched.spectator.look(watched.now + 0.5) == []
    assert watched.spectator.look(watched.now + LOOK_EVERY_SEC) == [held]
    assert not watched.spectator.watching
    assert watched.page.closed == 1
    assert watched.source.calls == [("spectate", 1), ("spectate", None)]
    assert watched.answer(50) == [], "the answer comes too late"


def test_a_new_request_takes_the_place_of_the_old_one() -> None:
    watched = Watched()
    watched.page.request = SpectatorRequest("ffff0000", 3, 1)
    watched.spectator.look(watched.now + LOOK_EVERY_SEC)
    assert watched.admit(decision(0), decision(0, env=3, seat=1)) == [[(1, 0, 0)]]
    assert watched.source.calls[-1] == ("spectate", 3)


def test_a_server_that_does_not_answer_holds_a_decision_for_a_second() -> None:
    watched = Watched()
    held = decision(0)
    watched.spectator.admit([held])
    watched.now += HOLD_SEC
    assert watched.spectator.admit([]) == [[held]]
    assert "not evaluated it in time" in watched.page.records[0].said


def test_an_end_follows_the_decision_that_is_held() -> None:
    watched = Watched()
    held, end = decision(0), Decision(1, 0, 11, 1, kind=ABORTED, reward=2.0)
    watched.spectator.admit([held])
    assert watched.spectator.admit([end]) == [[held], [end]]
    assert (watched.page.records[-1].kind, watched.page.records[-1].reward) == ("aborted", 2.0)


def test_an_episode_of_which_nothing_was_shown_ends_unseen() -> None:
    watched = Watched()
    watched.spectator.admit([decision(0)])
    watched.answer(50)
    watched.spectator.admit([Decision(1, 0, 12, 1, kind=TERMINATED)])
    assert [record.kind for record in watched.page.records] == ["decision"]


def test_sessions_that_the_server_lost_are_forgotten() -> None:
    watched = Watched()
    watched.spectator.admit([decision(0)])
    watched.spectator.forget()
    assert watched.answer(50) == []
    assert watched.spectator.admit([]) == []


def test_what_the_server_refuses_is_said() -> None:
    watched = Watched()
    held = decision(0)
    watched.spectator.admit([held])
    assert watched.answer(50, errors={0: ("ERR_POLICY", "no such policy")}) == [held]
    watched.spectator.take_actions([acted(0)])
    assert watched.page.records[0].said == "the server did not evaluate it: no such policy (ERR_POLICY)"
    assert watched.page.records[0].value is None


def test_a_game_that_cannot_show_itself_is_played_on() -> None:
    watched = Watched()
    watched.source.error = "no board"
    watched.spectator.admit([decision(0)])
    watched.answer(50)
    watched.spectator.take_actions([acted(0)])
    assert watched.page.records[0].said == "the game cannot show its position: RuntimeError: no board"
    assert watched.page.records[0].value == 1.5


@pytest.mark.parametrize(
    ("shown", "text", "said"),
    [
        (ShownPosition("hand", "x" * (MOST_PICTURE + 1)), "hand", "the position is too large to be shown"),
        (ShownPosition("hand", battle="x" * (MOST_BATTLE + 1)), "hand", "the position is too large to be shown"),
        (ShownPosition("hand", None), "", "the game cannot show its position: TypeError: a part of it is NoneType; "
         "expected text"),
    ],
)  # fmt: skip
def test_a_position_that_cannot_be_sent_is_said(shown: Any, text: str, said: str) -> None:
    watched = Watched()
    watched.source.shown = shown
    watched.spectator.admit([decision(0)])
    watched.answer(50)
    watched.spectator.take_actions([acted(0)])
    (record,) = watched.page.records
    assert (record.text, record.svg, record.battle, record.said) == (text, "", "", said)


def test_numbers_that_are_not_finite_are_said_to_be_none() -> None:
    watched, first = Watched(), decision(0)
    first.observation = np.array([np.nan, np.inf], np.float16)
    watched.client.evaluate = lambda *_, **__: 50  # type: ignore[assignment, method-assign]
    watched.spectator.admit([first])
    watched.answer(50, errors={0: ("ERR_VALUE", "the observation is not finite")})
    watched.spectator.take_actions([acted(0)])
    assert watched.page.records[0].observation == [None, None]


def test_a_costly_picture_makes_the_pauses_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = iter(range(0, 1000, 3))
    monkeypatch.setattr("simul.env_worker.spectator.time.perf_counter", lambda: float(next(seconds)))
    watched = Watched()
    watched.spectator.admit([decision(0)])  # 3 s, and as long for the answer and the record
    watched.answer(50)
    watched.spectator.take_actions([acted(0)])
    in_advance = (BURST - 1.0) / DECISIONS_PER_SEC
    watched.now += 9.0 / MOST_SHARE - in_advance - 0.1
    assert watched.admit(decision(1)) == [[(1, 0, 1)]]
    watched.now += 0.2
    assert watched.admit(decision(2)) == []


def test_a_game_that_the_worker_has_not_is_said() -> None:
    watched = Watched(SpectatorRequest("0123abcd", 4, 0))
    assert not watched.spectator.watching
    assert watched.page.records[0].said == ("this worker has games 0 to 3, with seats 0 to 1; asked for game 4, seat 0")


def test_any_seat_is_the_one_that_decides_first_in_each_episode() -> None:
    watched = Watched(SpectatorRequest("0123abcd", 1, -1))
    assert watched.admit(decision(0, seat=1), decision(0)) == [[(1, 0, 0)]]
    watched.answer(50)
    watched.spectator.admit([Decision(1, 1, 11, 1, kind=TERMINATED, reward=1.0)])
    assert [record.kind for record in watched.page.records] == ["decision", "terminated"]


def test_a_game_of_no_pictures_has_observations_and_numbers_of_actions() -> None:
    watched = Watched(source=ScriptedSource())
    watched.spectator.admit([decision(0)])
    watched.answer(50)
    watched.spectator.take_actions([acted(0)])
    assert (watched.page.records[0].text, watched.page.records[0].actions[0]) == ("", ("2", 0.75))


def test_searched_decisions_are_evaluated_and_not_submitted() -> None:
    watched = Watched()
    watched.source.searched = [decision(0), decision(1), decision(0, env=2)]
    assert watched.spectator.admit([]) == []
    assert watched.client.asked == [(0.25, "learner", NO_SESSION)], "the game has gone on to the last one"
    assert watched.answer(50) == []
    assert [(record.step, record.value, record.skipped) for record in watched.page.records] == [(1, 1.5, 1)]


def test_answers_of_the_search_are_left_to_it() -> None:
    watched = Watched()
    watched.spectator.admit([decision(0)])
    evaluations = [evaluation(9), evaluation(50)]
    watched.spectator.take_evaluations(evaluations)
    assert [each.id for each in evaluations] == [9]


def test_a_page_that_is_gone_before_it_is_connected_to_is_no_error() -> None:
    watched = Watched(None)
    watched.page.request, watched.page.refused = REQUEST, True
    assert watched.spectator.look(watched.now + LOOK_EVERY_SEC) == []
    assert not watched.spectator.watching
