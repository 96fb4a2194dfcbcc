"""A policy along a game: one session, stepped once for each decision, begun again after undo or a loss."""

from __future__ import annotations

import numpy as np
import pytest

from examples.custom_game import TicTacToe
from simul.common.client.client import Replies
from simul.common.client.evaluation import NO_SESSION, unanswered
from simul.common.config.search import SearchConfig
from simul.common.errors import ERR_NO_SESSION, InferenceError
from simul.common.protocol.decisions import Action, Decision, Failure
from simul.common.protocol.masks import pack_masks
from simul.common.protocol.messages import GREEDY, START
from simul.env_worker.games.base.replays import RecordedGame
from simul.env_worker.terminal import server_line as server_line_module
from simul.env_worker.terminal.advice import Advice, PolicyRollouts, PolicySession, draws_worlds
from simul.env_worker.terminal.server_line import ServerLine, SessionLostError
from tests.support.searching import RowEvaluator
from tests.support.small_games import Envelope
from tests.unit.env_worker.search.test_determinized_search import giving


class Line:
    """Stands in for ServerLine: sessions remember how many steps they have; priors favour the last legal action."""

    def __init__(self):
        self.sessions: dict[tuple[int, int], list[list[float]]] = {}
        self.started = []

    def act(self, decision):
        key = (decision.seat, decision.episode)
        if decision.flags & START:
            assert decision.step == 0
            self.sessions[key] = []
            self.started.append((key, decision.policy, bool(decision.flags & GREEDY)))
        elif key not in self.sessions:
            raise SessionLostError
        assert decision.step == len(self.sessions[key])
        self.sessions[key].append(decision.observation.tolist())
        return Action(
            0, decision.seat, decision.episode, decision.step, 0, int(np.flatnonzero(decision.mask)[-1]), 0, 0, 1
        )

    def evaluate(self, observation, mask, policy, session):
        if session != NO_SESSION and session[1:] not in self.sessions:
            raise SessionLostError
        state = 0 if session == NO_SESSION else len(self.sessions[session[1:]])
        answer = unanswered(1, pack_masks(mask[None]), len(mask))
        answer.legal_priors[:] = (np.flatnonzero(mask) + 1) / 100
        answer.value[:], answer.policy_version[:] = state, 1
        return answer


@pytest.fixture
def line():
    return Line()


@pytest.fixture
def played():
    return RecordedGame(TicTacToe(), 1)


def advisor(line, seat=0, greedy=True):
    return PolicySession(line, "learner", 0, seat, greedy=greedy)


def both(played, first, second):
    played.apply({0: first})
    played.apply({1: second})


def test_best_actions_come_first_and_the_value_is_read_before_the_step(line, played):
    session = advisor(line)
    advice = session.advise(played)
    assert advice.action == 8
    assert [action for action, _ in advice.best] == [8, 7, 6, 5, 4, 3, 2, 1, 0]
    assert advice.value == 0
    assert advice.text(played.game, 0).splitlines() == [
        "  9.0%  8", "  8.0%  7", "  7.0%  6", "  6.0%  5", "  5.0%  4", "value +0.000"
    ]  # fmt: skip
    both(played, 8, 0)
    assert session.advise(played).value == 1, "the state after one step"
    assert line.started == [((0, 0), "learner", True)]


def test_the_same_position_is_asked_once(line, played):
    session = advisor(line)
    assert session.advise(played) is session.advise(played)
    assert len(line.sessions[0, 0]) == 1


def test_undo_begins_a_session_that_has_seen_the_same_decisions(line, played):
    session = advisor(line)
    for first, second in ((8, 0), (7, 1), (5, 2)):
        session.advise(played)
        both(played, first, second)
    played.take_back(2)
    advice = session.advise(played)
    assert advice.value == 1, "one step, not three"
    assert line.sessions[0, 1] == line.sessions[0, 0][:2]
    both(played, 3, 1)
    session.advise(played)
    assert len(line.sessions[0, 1]) == 3
    assert len(line.started) == 2


def test_undo_to_another_move_at_the_same_turn_is_another_position(line, played):
    session = advisor(line)
    session.advise(played)
    both(played, 8, 0)
    first = session.advise(played)
    played.take_back(0)
    both(played, 7, 0)
    second = session.advise(played)
    assert first.action == 7
    assert second.action == 8
    assert line.sessions[0, 1][0] == line.sessions[0, 0][0]
    assert line.sessions[0, 1][1] != line.sessions[0, 0][1]


def test_a_session_that_the_server_dropped_begins_again(line, played):
    session = advisor(line, greedy=False)
    session.advise(played)
    both(played, 8, 0)
    session.advise(played)
    both(played, 7, 1)
    before = line.sessions[0, 0]
    line.sessions.clear()
    assert session.advise(played).value == 2
    assert line.sessions[0, 1][:2] == before
    assert len(line.sessions[0, 1]) == 3
    assert line.started[-1] == ((0, 1), "learner", False)


def test_a_search_in_drawn_worlds_says_what_its_candidates_are_worth(played):
    line = ServerLine(Answering(giving))
    advisor = PolicyRollouts(line, "learner", SearchConfig(worlds=400, candidates=3), points_of_value=10.0)
    played = RecordedGame(Envelope(), 3)
    advice = advisor.advise(played)
    assert advice is advisor.advise(played)
    assert advice.action == 2
    gift, margin = advice.best[1][1], advice.margins[1]
    assert advice.text(played.game, 0).splitlines() == [
        "   +2.00 [+2.00, +2.00]  2",
        f"   {gift:+.2f} [{gift - margin:+.2f}, {gift + margin:+.2f}]  1",
        "   +1.00 [+1.00, +1.00]  0",
        "points, mean over 400 drawn worlds [95%]",
    ]
    assert 1.35 < gift < 1.65
    assert margin == pytest.approx(1.96 * (1.25 / 400) ** 0.5, rel=0.1), "of a number from 0 to 3"


def test_one_world_is_singular_and_has_no_interval():
    advice = Advice(0, [(0, 1.5)], None, in_points=True, worlds=1)
    assert advice.text(Envelope(), 0).splitlines()[-1] == "points, mean over 1 drawn world"


def test_what_the_game_counts_is_said_and_has_no_interval():
    class Counted(Envelope):
        def action_values(self, seat, draw):
            return np.array([1.0, 3.0, 2.0])

    line = ServerLine(Answering(giving))
    advisor = PolicyRollouts(line, "learner", SearchConfig(worlds=9), points_of_value=1.0)
    played = RecordedGame(Counted(), 3)
    advice = advisor.advise(played)
    assert advice.text(played.game, 0).splitlines() == [
        "   +3.00  1", "   +2.00  2", "   +1.00  0", "points, counted by the game"
    ]  # fmt: skip


class Answering:
    """A client whose server answers rows by a network of `RowEvaluator`."""

    rows_per_message = 64

    def __init__(self, network):
        self._evaluator = RowEvaluator(network)

    def evaluate(self, observation, mask, *, policy, packed):
        return self._evaluator.submit(observation, mask, 3)

    def poll(self):
        return Replies([], [], evaluations=self._evaluator.poll())


class Client:
    """Stands in for a connected client: answers from a list."""

    def __init__(self, *replies):
        self.replies = list(replies)
        self.poller = self

    def wait(self, seconds):
        pass

    def submit(self, decisions):
        pass

    def evaluate(self, observation, mask, *, policy, sessions):
        return 7

    def poll(self):
        return self.replies.pop(0) if self.replies else Replies([], [])


def failed(code):
    return Replies([], [Failure(0, 0, 0, 0, code, "because")])


def test_refusals_are_errors_and_lost_sessions_are_told_apart(monkeypatch, played):
    monkeypatch.setattr(server_line_module, "SILENT_SEC", 0.05)
    row = played.game.observation(0), np.ones(9, bool), "learner", NO_SESSION
    asked = Decision(0, 0, 0, 0, observation=row[0], mask=row[1])
    with pytest.raises(SessionLostError):
        ServerLine(Client(failed(ERR_NO_SESSION))).act(asked)
    with pytest.raises(SessionLostError):
        ServerLine(Client(Replies([], [], lost=True))).act(asked)
    with pytest.raises(InferenceError, match="ERR_MASK: because"):
        ServerLine(Client(failed("ERR_MASK"))).act(asked)
    with pytest.raises(InferenceError, match="has not answered for"):
        ServerLine(Client()).act(asked)
    lost = unanswered(7, pack_masks(row[1][None]), 9)
    lost.errors[0] = (ERR_NO_SESSION, "gone")
    with pytest.raises(SessionLostError):
        ServerLine(Client(Replies([], [], evaluations=[lost]))).evaluate(*row)
    refused = unanswered(7, pack_masks(row[1][None]), 9)
    refused.errors[0] = ("ERR_POLICY", "there is no such policy")
    with pytest.raises(InferenceError, match="ERR_POLICY: there is no such policy"):
        ServerLine(Client(Replies([], [], evaluations=[refused]))).evaluate(*row)


@pytest.mark.parametrize(
    ("name", "draws"), [("leduc_poker", True), ("tic_tac_toe", False), ("liars_dice", False), ("hanabi", False)]
)
def test_worlds_of_hints_are_drawn_only_where_something_is_hidden_and_the_game_can(name, draws):
    pyspiel = pytest.importorskip("pyspiel")
    from simul.env_worker.games.openspiel.adapter import OpenSpielGame

    game = OpenSpielGame(pyspiel.load_game(name), name)
    game.reset(1)
    assert draws_worlds(game, 0) == draws_worlds(game, 1) == draws
    game.clone = None  # as a game that holds what cannot be copied
    assert not draws_worlds(game, 0)
    assert not game._state.history(), "it is not played on"
