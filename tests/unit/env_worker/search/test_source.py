"""A source whose policies search: its requests, the samples of its games, what it does when something fails."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import msgspec
import numpy as np
import pytest

from simul.common.client.evaluation import Evaluation
from simul.common.config.matchups import Contestant, Pairing, decode_pairings, encode_pairings, searches_of
from simul.common.config.schema import OpponentsConfig
from simul.common.config.search import SearchConfig
from simul.common.errors import FailingEnvError
from simul.common.protocol.decisions import Decision
from simul.common.protocol.masks import unpack_masks
from simul.common.protocol.messages import DECISION
from simul.common.protocol.samples import NO_ACTIONS, NO_PROBABILITIES, Sample
from simul.env_worker.games.base import source as source_module
from simul.env_worker.games.base.players import ANY_GAME
from simul.env_worker.games.base.turn_game import position_of
from simul.env_worker.search import source as search_source_module
from simul.env_worker.search.game_record import GameRecord
from simul.env_worker.search.search import SearchResult
from simul.env_worker.search.source import SearchSource
from simul.env_worker.source import EvaluationRequest, SearchingSource, SpectatedSource
from tests.support.searching import RowEvaluator, hashed
from tests.support.small_games import ThreeInTurn, TicTacToe

QUICK = SearchConfig(simulations=8, temperature_moves=3)
MOST_ROWS = 64
_started: list[SearchSource] = []


@pytest.fixture(autouse=True)
def _closed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Close every source of the test. A poll plays all games on, however slow the machine is."""
    for module in (source_module, search_source_module):
        monkeypatch.setattr(module, "POLL_SEC", 100.0)
    yield
    while _started:
        _started.pop().close()


def _source(
    game: type = TicTacToe, search: SearchConfig = QUICK, policies: Sequence[str] = (), **options: Any
) -> SearchSource:
    options = {"envs": 4, "seed": 3, "opponents": OpponentsConfig(), **options}
    source = SearchSource(game, ANY_GAME, search=search, **options)
    _started.append(source)
    source.set_policies(policies)
    source.start()
    return source


def _request(source: SearchSource, most_rows: int = MOST_ROWS) -> list[EvaluationRequest]:
    assert source.poll() == []
    return source.evaluations(most_rows)


def _answer(source: SearchSource, request: EvaluationRequest) -> Evaluation:
    return RowEvaluator(hashed).answer(0, request.observation, request.mask, source.spec.num_actions)


def _played(source: SearchSource, shuffle: int | None = None) -> list[Sample]:
    """All samples of a source with a fixed number of episodes. `shuffle`: seed of the order of the answers."""
    samples: list[Sample] = []
    waiting: list[EvaluationRequest] = []
    draw = random.Random(shuffle)
    for _ in range(20_000):
        waiting += _request(source)
        samples += source.take_samples()
        if source.idle():
            return samples
        if waiting:
            request = waiting.pop(0 if shuffle is None else draw.randrange(len(waiting)))
            source.take_evaluation(request.number, _answer(source, request))
    raise AssertionError("the games did not end")


def _key(sample: Sample) -> tuple[Any, ...]:
    parts = (sample.observation, sample.mask, sample.actions, sample.probabilities)
    return (*(part.tobytes() for part in parts), sample.outcome)


def test_the_samples_of_self_play_are_its_positions_with_the_outcome_of_their_seat() -> None:
    source = _source(episodes=12)
    assert isinstance(source, SearchingSource)
    samples = _played(source)
    metrics = source.metrics()
    assert metrics["episodes"]["finished"] == 12
    assert len(samples) == metrics["search"]["moves"] == metrics["search"]["samples"]
    for sample in samples:
        own, others = sample.observation[:9], sample.observation[9:18]
        assert unpack_masks(sample.mask, 9).tolist() == ((own + others) == 0).astype(int).tolist()
        assert sample.outcome in (-1.0, 0.0, 1.0)
        if len(sample.actions):
            assert sample.probabilities.sum() == pytest.approx(1.0, abs=1e-5)
            assert unpack_masks(sample.mask, 9)[sample.actions].all()
    first = [sample for sample in samples if not sample.observation[:18].any()]
    assert len(first) == 12
    wins = sum(sample.outcome == 1.0 for sample in first)
    losses = sum(sample.outcome == -1.0 for sample in first)
    results = Counter(sample.outcome for sample in samples if sample.observation[:18].sum() == 1)  # of the other seat
    assert (results[1.0], results[-1.0]) == (losses, wins)


def test_the_decisions_of_a_watched_game_are_told_with_its_position() -> None:
    source = _source(episodes=8)
    assert isinstance(source, SpectatedSource)
    source.spectate(1)
    told: list[Decision] = []
    for _ in range(20_000):
        assert source.poll() == []
        decisions = source.searched_decisions()
        told += decisions
        if decisions and decisions[-1].kind == DECISION:
            assert source.position(1).text.endswith(f"[{decisions[-1].seat}] to act")
        if source.idle():
            break
        for request in source.evaluations(MOST_ROWS):
            source.take_evaluation(request.number, _answer(source, request))
    assert {each.env for each in told} == {1}
    assert [each.step for each in told[:4]] == [0, 0, 1, 1]
    source.spectate(None)
    assert source.searched_decisions() == []


def test_games_do_not_depend_on_the_order_of_the_answers() -> None:
    settings = msgspec.structs.replace(QUICK, requests_in_flight=3)
    in_order = _played(_source(search=settings, episodes=9))
    shuffled = _played(_source(search=settings, episodes=9), shuffle=1)
    assert sorted(map(_key, in_order)) == sorted(map(_key, shuffled))
    assert sorted(map(_key, in_order)) != sorted(map(_key, _played(_source(search=settings, episodes=9, seed=4))))


def test_a_cheap_search_gives_a_sample_without_a_policy() -> None:
    settings = msgspec.structs.replace(QUICK, full_share=0.5, cheap_simulations=2)
    samples = _played(_source(search=settings, episodes=20))
    full = [sample for sample in samples if len(sample.actions)]
    assert 0.2 < len(full) / len(samples) < 0.8


def test_with_three_seats_every_other_seat_gives_a_sample_of_its_value() -> None:
    samples = _played(_source(ThreeInTurn, episodes=3))
    assert len(samples) == 3 * 3 * 3  # games, moves, seats
    for sample in samples:
        acts = int(sample.observation[0]) == int((sample.observation[1:] >= 0).sum())
        assert bool(len(sample.actions)) == acts
        assert unpack_masks(sample.mask, 2).tolist() == ([1, 1] if acts else [1, 0])


def test_only_seats_that_learn_give_samples() -> None:
    assert _played(_source(episodes=4, record=False)) == []
    source = _source(episodes=8, opponents=OpponentsConfig(self_play=0.0, past=1.0), policies=["learner", "past/1"])
    samples = _played(source)
    assert 0 < len(samples) < source.metrics()["search"]["moves"]


def test_past_selves_are_asked_by_their_name() -> None:
    source = _source(envs=8, opponents=OpponentsConfig(self_play=0.0, past=1.0), policies=["learner", "past/1"])
    assert {request.policy for request in _request(source)} == {"learner", "past/1"}


def test_a_contestant_with_settings_of_its_own_searches_with_them() -> None:
    deep = Contestant("deep", policy="learner", search=msgspec.structs.replace(QUICK, simulations=12))
    first, second = Contestant("as configured", policy="eval/1"), Contestant("random", bot="random")
    played: dict[str, float] = {}
    for one in (deep, first):
        pairings = decode_pairings(encode_pairings([Pairing(one, second, 4)]))
        source = _source(
            episodes=4, pairings=pairings, greedy=True, record=False, searches=searches_of(pairings),
        )  # fmt: skip
        _played(source)
        figures = source.metrics()["search"]
        played[one.label] = figures["simulations"] / figures["moves"]
    assert 8 < played["deep"] <= 12
    assert 4 < played["as configured"] <= 8


def test_a_group_waits_for_its_answer_and_a_request_has_at_most_so_many_rows() -> None:
    source = _source(envs=10, search=msgspec.structs.replace(QUICK, requests_in_flight=2))
    requests = _request(source, most_rows=3)
    assert [len(request.mask) for request in requests] == [3, 2, 3, 2]
    assert _request(source) == []
    for request in requests[:2]:
        source.take_evaluation(request.number, _answer(source, request))
    assert sum(len(request.mask) for request in _request(source)) == 5


def test_a_refused_row_aborts_its_game_and_leaves_the_others() -> None:
    source = _source(envs=4, search=msgspec.structs.replace(QUICK, requests_in_flight=1))
    (request,) = _request(source)
    answer = _answer(source, request)
    answer.errors[2] = ("ERR_INTERNAL", "not finite")
    source.take_evaluation(request.number, answer)
    episodes = source.metrics()["episodes"]
    assert episodes["aborted"] == {"ERR_INTERNAL": 1}
    assert [source.episode(env) for env in range(4)] == [0, 0, 1, 0]
    assert sum(len(request.mask) for request in _request(source)) == 4


def test_a_searched_position_without_a_legal_action_is_an_error_of_the_game() -> None:
    source = _source(envs=2, search=msgspec.structs.replace(QUICK, requests_in_flight=1))
    (request,) = _request(source)
    answer = _answer(source, request)
    answer.errors[0] = ("ERR_MASK", "the mask allows no action")
    source.take_evaluation(request.number, answer)
    metrics = source.metrics()
    assert metrics["episodes"]["aborted"] == {"env_error": 1}
    assert "the server refused a searched position, the mask allows no action (ERR_MASK)" in metrics["events"][-1]
    assert source.episode(0) == 1


def test_answers_for_aborted_games_are_ignored_and_their_positions_dropped() -> None:
    source = _source(envs=2, search=msgspec.structs.replace(QUICK, requests_in_flight=1))
    requests = _request(source)
    source.abort([0, 1], "server_lost")
    for request in requests:
        source.take_evaluation(request.number, _answer(source, request))
    assert sum(len(request.mask) for request in _request(source)) == 2
    _started.remove(source)
    source.close()
    episodes = source.metrics()["episodes"]
    assert episodes["started"] == episodes["finished"] + sum(episodes["aborted"].values()) == 4
    assert source.take_samples() == []


def test_scripted_opponents_are_not_searched() -> None:
    kinds = partial(msgspec.structs.replace, OpponentsConfig(), self_play=0.0)
    source = _source(episodes=10, opponents=kinds(random=1.0))
    samples = _played(source)
    metrics = source.metrics()
    assert metrics["results"]["random"]
    assert len(samples) == metrics["search"]["moves"]
    stones = np.array([sample.observation[:18].sum() for sample in samples])
    assert len(samples) < 10 * 5 + 1
    assert len(set(stones.tolist())) > 3


def test_a_game_that_raises_is_aborted_and_counted() -> None:
    class Breaking(TicTacToe):
        applied = 0

        def apply(self, actions: Any) -> None:
            type(self).applied += 1
            if type(self).applied == 30:
                raise RuntimeError("broken")
            super().apply(actions)

    source = _source(Breaking, episodes=8)
    _played(source)
    episodes = source.metrics()["episodes"]
    assert episodes["aborted"] == {"env_error": 1}
    assert episodes["started"] == episodes["finished"] + 1


def test_an_env_whose_game_raised_in_a_search_plays_the_next_one() -> None:
    class Failing(TicTacToe):
        def observation(self, seat: int) -> Any:
            if self.own != [0, 0] and _failing:
                raise ValueError(_failing.pop())
            return super().observation(seat)

    _failing = ["once"]
    source = _source(Failing, envs=1, search=msgspec.structs.replace(QUICK, requests_in_flight=1), episodes=3)
    _played(source)
    episodes = source.metrics()["episodes"]
    assert (episodes["finished"], episodes["aborted"]) == (2, {"env_error": 1})


def test_a_game_that_fails_where_its_move_is_made_counts_once_and_too_many_end_the_run() -> None:
    class Unplayable(TicTacToe):
        def after(self, action: int) -> Any:
            game = self.clone()
            TicTacToe.apply(game, {game.acting()[0]: action})
            return position_of(game)

        def apply(self, actions: Any) -> None:
            raise RuntimeError("broken")

    source = _source(Unplayable, envs=1, max_failed_share=0.5)
    with pytest.raises(FailingEnvError, match="broken"):
        _played(source)
    episodes = source.metrics()["episodes"]
    assert episodes["aborted"]["env_error"] == episodes["started"]


@pytest.mark.parametrize("fault", ["twice", "outside", "longer"])
def test_a_position_that_does_not_fit_the_spec_costs_its_game_alone(fault: str) -> None:
    class Wrong(TicTacToe):
        def legal_actions(self, seat: int) -> Any:
            legal = super().legal_actions(seat)
            if _wrong and self.own != [0, 0] and fault != "longer":
                _wrong.pop()
                return np.append(legal, legal[-1] if fault == "twice" else 9)
            return legal

        def observation(self, seat: int) -> Any:
            seen = super().observation(seat)
            if _wrong and self.own != [0, 0] and fault == "longer":
                _wrong.pop()
                return np.append(seen, seen[-1])
            return seen

    _wrong = ["once"]
    source = _source(Wrong, episodes=12)
    _played(source)
    episodes = source.metrics()["episodes"]
    assert (episodes["finished"], episodes["aborted"]) == (11, {"env_error": 1})


def test_what_is_kept_of_past_selves_goes_with_them() -> None:
    source = _source(envs=8, opponents=OpponentsConfig(self_play=0.0, past=1.0), policies=["learner", "past/1"])
    for request in _request(source):
        source.take_evaluation(request.number, _answer(source, request))
    before = source.metrics()["search"]
    source.set_policies(["learner", "past/2"])
    while any("past/1" in game.policies for game in source._searched.values()):
        for request in _request(source):
            source.take_evaluation(request.number, _answer(source, request))
    source.set_policies(["learner", "past/3"])
    assert "past/1" not in source._caches
    assert source.metrics()["search"]["cache_misses"] > before["cache_misses"] > 0


def test_a_past_self_that_is_served_no_more_stays_until_its_games_are_over() -> None:
    source = _source(envs=8, opponents=OpponentsConfig(self_play=0.0, past=1.0), policies=["learner", "past/1"])
    searching: set[str] = set()
    while "past/1" not in searching or "learner" not in searching:
        for request in _request(source):
            searching.add(request.policy)
            source.take_evaluation(request.number, _answer(source, request))
    source.set_policies(["learner", "past/2"])
    playing = [game for game in source._searched.values() if "past/1" in game.policies]
    assert playing
    assert all(game._searches["past/1"]._cache is source._caches["past/1"] for game in playing)


class Told(TicTacToe):
    """Tells of each position how many squares were free at the end, and whose the corners were, seen by the seat."""

    spec = msgspec.structs.replace(
        TicTacToe.spec, name="told", observation_shape=(2, 3, 3), observation_axes="CHW", ending_planes=1,
        ending_numbers=1,
    )  # fmt: skip

    def ending(self, seat: int, end: TicTacToe) -> np.ndarray:
        free = 9 - (end.own[0] | end.own[1]).bit_count()
        return np.array([*(255 * (end.own[seat] >> square & 1) for square in range(9)), free], np.uint8)

    def turn_ending(self, ending: np.ndarray, symmetry: int) -> np.ndarray:
        return np.append(ending[:9].reshape(3, 3)[:, ::-1].ravel(), ending[9:])


def test_what_a_game_tells_of_its_end_comes_with_every_sample_turned_as_its_position_is() -> None:
    samples = _played(_source(Told, episodes=10))
    assert len(samples) > 50
    for sample in samples:
        own, others = sample.observation[:9] > 0, sample.observation[9:18] > 0
        at_end, free = sample.ending[:9] > 0, int(sample.ending[9])
        assert (at_end >= own).all(), "what was owned is owned at the end"
        assert not (at_end & others).any()
        assert at_end.sum() >= 3 or sample.outcome < 1.0
        assert at_end.sum() <= 9 - free
    assert all(not len(sample.ending) for sample in _played(_source(episodes=1)))


@pytest.mark.parametrize("told", [np.zeros(9, np.uint8), np.zeros(10)])
def test_an_ending_that_is_not_what_the_spec_says_costs_the_game_and_is_named(told, caplog) -> None:
    class Wrong(Told):
        def ending(self, seat: int, end: TicTacToe) -> np.ndarray:
            return told

        def turn_ending(self, ending: np.ndarray, symmetry: int) -> np.ndarray:
            return ending

    source = _source(Wrong, episodes=5)
    assert _played(source) == []
    episodes = source.metrics()["episodes"]
    assert (episodes["finished"], episodes["aborted"]) == (0, {"env_error": 5})
    assert "the ending for seat 0 is " in caplog.text


def test_the_outcome_that_is_learned_is_the_lambda_return_of_the_values_that_were_found() -> None:
    games = [
        _played(_source(search=msgspec.structs.replace(QUICK, td_lambda=share), episodes=8))
        for share in (1.0, 0.0, 0.7)
    ]
    true, found, mixed = ([sample.outcome for sample in played] for played in games)
    assert len(true) == len(found) == len(mixed)
    searched = [unpack_masks(sample.mask, 9).sum() > 1 for sample in games[0]]
    first = [not sample.observation[:18].any() for sample in games[0]]
    assert sum(first) == 8
    after = 0.0
    for i in reversed(range(len(true))):
        last = i + 1 == len(true) or first[i + 1]
        after = true[i] if last else -after  # the next move is the other seat's
        if searched[i]:
            assert -1 <= found[i] <= 1
            after = 0.3 * found[i] + 0.7 * after
        assert mixed[i] == pytest.approx(after)
    assert sum(a != b for a, b in zip(true, mixed)) > len(true) / 2


def test_a_search_that_reused_a_whole_tree_gives_its_value_and_an_only_action_none() -> None:
    reused, only = (
        SearchResult(4, NO_ACTIONS, NO_PROBABILITIES, value, simulations=0) for value in (np.array([0.25, -0.25]), None)
    )
    outcomes = []
    for result in (reused, only):
        record = GameRecord(np.random.default_rng(0), symmetries=False, td_lambda=0.0)
        record.add(TicTacToe(), 0, result, policy_version=1)
        (sample,) = record.samples(TicTacToe(), [1.0, -1.0])
        outcomes.append(sample.outcome)
    assert outcomes == [0.25, 1.0]


def test_what_a_game_wants_learned_is_learned() -> None:
    class Halved(TicTacToe):
        def learned_returns(self) -> Sequence[float]:
            return [worth / 2 for worth in self.returns()]

    outcomes = {sample.outcome for sample in _played(_source(Halved, episodes=10))}
    assert outcomes <= {-0.5, 0.0, 0.5}
    assert len(outcomes) > 1


def test_a_game_of_training_may_begin_with_random_plies() -> None:
    samples = _played(_source(episodes=12, openings=2))
    plies = [int(sample.observation[:18].sum()) for sample in samples]
    assert min(plies) == 2
    assert plies.count(2) == 12
