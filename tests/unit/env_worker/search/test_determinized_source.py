"""A source some of whose policies search drawn worlds: who is asked what, and what it does when something fails."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, ClassVar

import pytest

from simul.common.client.evaluation import Evaluation
from simul.common.config.loader import load_config
from simul.common.config.matchups import Contestant, Pairing, points_of_values, searches_of
from simul.common.config.schema import OpponentsConfig
from simul.common.config.search import SearchConfig
from simul.common.errors import ConfigError
from simul.common.protocol.decisions import Action
from simul.common.protocol.messages import DECISION
from simul.common.runtime.installation import CONFIGS
from simul.env_worker.games.base.build import turn_game_source
from simul.env_worker.games.base.hosted_game import SeatSession
from simul.env_worker.games.base.players import ANY_GAME
from simul.env_worker.games.base.source import TurnGameSource
from simul.env_worker.search.determinized_source import DeterminizedSource, SearchedSeat
from simul.env_worker.source import EvaluationRequest, SearchingSource, SourceOptions
from tests.support.searching import RowEvaluator
from tests.support.small_games import Envelope, ThreeInTurn
from tests.unit.env_worker.search.test_determinized_search import giving

WORLDS = SearchConfig(worlds=40, candidates=2)
SEARCHES, PLAIN = Contestant("searches", policy="learner", search=WORLDS), Contestant("plain", policy="eval/1")
_started: list[TurnGameSource] = []


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    while _started:
        _started.pop().close()


def _source(games: int = 8, game: type = Envelope, first: Contestant = SEARCHES) -> DeterminizedSource:
    pairings = [Pairing(first, PLAIN, games)]
    source = DeterminizedSource(
        game, ANY_GAME, search=SearchConfig(), searches=searches_of(pairings),
        own_points=points_of_values(pairings), envs=4, seed=3, episodes=games,
        opponents=OpponentsConfig(), pairings=pairings, record=False, greedy=True,
    )  # fmt: skip
    _started.append(source)
    source.start()
    return source


def _evaluation(source: DeterminizedSource, request: EvaluationRequest) -> Evaluation:
    return RowEvaluator(giving).answer(0, request.observation, request.mask, source.spec.num_actions)


def _play(source: DeterminizedSource) -> Counter[str]:
    """To the end, as server and worker do; seats that are not searched take action 0. What was asked, by policy."""
    asked: Counter[str] = Counter()
    for _ in range(1000):
        for decision in source.poll():
            if decision.kind == DECISION:
                asked[f"decides {decision.policy}"] += 1
                source.act([Action(decision.env, decision.seat, decision.episode, decision.step, 0, 0, 0.0, 0.0, 1)])
            else:
                asked["ends"] += 1
        for request in source.evaluations(16):
            asked[f"evaluates {request.policy}"] += 1
            source.take_evaluation(request.number, _evaluation(source, request))
        if source.idle():
            return asked
    raise AssertionError("the games did not end")


def test_policies_with_worlds_are_searched_and_others_are_answered_by_the_server() -> None:
    source = _source()
    assert isinstance(source, SearchingSource)
    asked = _play(source)
    metrics = source.metrics()
    assert metrics["episodes"]["finished"] == 8
    assert asked["evaluates learner"] == metrics["search"]["requests"]
    assert asked["evaluates eval/1"] == 0
    assert asked["decides learner"] == 0
    # At seat 0 the search asks for the number and seat 1, plain, gives it; at seat 1 it follows a sure point: no move.
    assert asked["decides eval/1"] == asked["ends"] == 8
    assert metrics["search"]["moves"] == 4
    assert source.take_samples() == []


def test_choices_depend_on_the_game_not_on_when_it_is_answered() -> None:
    standings = []
    for _ in range(2):
        source = _source(24)
        _play(source)
        standings.append(source.metrics()["standings"])
    assert standings[0] == standings[1]


def test_a_contestant_keeps_the_draws_of_its_searches_at_every_seat() -> None:
    class Seen(DeterminizedSource):
        drawn: ClassVar[dict[int, int]] = {}

        def _session(self, env: int, *arguments: Any) -> SeatSession:
            session = super()._session(env, *arguments)
            if isinstance(session, SearchedSeat):
                self.drawn[env] = session.draw
            return session

    pairings = [Pairing(SEARCHES, PLAIN, 4)]
    source = Seen(
        Envelope, ANY_GAME, search=SearchConfig(), searches=searches_of(pairings), envs=4, seed=3, episodes=4,
        opponents=OpponentsConfig(), pairings=pairings, record=False, greedy=True,
    )  # fmt: skip
    _started.append(source)
    source.start()
    _play(source)
    assert source.drawn[0] == source.drawn[1] != source.drawn[2] == source.drawn[3]


def test_values_of_a_policy_count_in_its_own_units() -> None:
    """A value of 0.2 after waiting is more than the points of the number where it means 1.8."""
    search = SearchConfig(worlds=40, candidates=3)
    for points, moves in ((None, 4), (9.0, 8)):
        source = _source(first=Contestant("searches", policy="learner", search=search, points_of_value=points))
        _play(source)
        assert source.metrics()["search"]["moves"] == moves


def test_a_refused_row_aborts_its_game_and_counts_as_its_fault_where_it_is() -> None:
    for code, cause in (("ERR_INTERNAL", "ERR_INTERNAL"), ("ERR_VALUE", "env_error")):
        source = _source()
        source.poll()
        requests = source.evaluations(16)
        answer = _evaluation(source, requests[0])
        answer.errors[0] = (code, "not finite")
        source.take_evaluation(requests[0].number, answer)
        assert source.metrics()["episodes"]["aborted"] == {cause: 1}
        assert sum(source.episode(env) for env in range(4)) == 1


def test_answers_for_games_that_were_aborted_are_ignored() -> None:
    source = _source()
    source.poll()
    requests = source.evaluations(16)
    source.abort(range(4), "server_lost")
    for request in requests:
        source.take_evaluation(request.number, _evaluation(source, request))
    _play(source)
    assert source.metrics()["episodes"]["finished"] == 4


def test_a_game_that_fails_in_a_search_is_aborted_and_named() -> None:
    class Failing(Envelope):
        def determinize(self, seat: int, draw: Any) -> Envelope:
            raise ValueError("no such world")

    source = _source(game=Failing)
    source.poll()
    for request in source.evaluations(16):
        source.take_evaluation(request.number, _evaluation(source, request))
    assert source.metrics()["episodes"]["aborted"]["env_error"] >= 1
    assert "no such world" in source.metrics()["events"][-1]
    source.poll()
    assert [source.episode(env) for env in range(4)].count(-1) == 0, "its env plays the next game"


def _built(game: type, *, record: bool = False) -> TurnGameSource:
    config = load_config(CONFIGS / "ofc.yaml", ["search.worlds=2"])
    options = SourceOptions(index=0, envs=1, seed=1, record=record, greedy=True, episodes=None)
    return turn_game_source(game, config, options)


def test_worlds_are_drawn_by_evaluations_alone() -> None:
    assert isinstance(_built(Envelope), DeterminizedSource)
    assert not isinstance(_built(Envelope, record=True), DeterminizedSource)


def test_a_game_that_draws_no_worlds_is_refused_before_it_is_played() -> None:
    with pytest.raises(ConfigError, match=r"search\.worlds: three_in_turn has no determinize.*Leave"):
        _built(ThreeInTurn)

    class Failing(Envelope):
        def determinize(self, seat: int, draw: Any) -> Envelope:
            raise ValueError("no such world")

    with pytest.raises(ConfigError, match=r"search\.worlds: the game does not work: .*no such world"):
        _built(Failing)

    class Endless(Envelope):
        def acting(self) -> tuple[int]:
            return (0,)

        def apply(self, actions: Any) -> None:
            pass

    _built(Endless)  # it is not played to its end before the worker connects
