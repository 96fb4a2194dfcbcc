"""Games whose policies search drawn worlds at play: a source that asks for evaluations, and gives no samples."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from simul.common.client.evaluation import Evaluation
from simul.common.config.matchups import Contestant
from simul.common.config.search import SearchConfig
from simul.common.errors import ConfigError, EnvError
from simul.common.protocol.decisions import Action, Decision
from simul.common.protocol.messages import DECISION
from simul.common.protocol.samples import Sample
from simul.env_worker.games.base.failures import CALLERS, describe_error
from simul.env_worker.games.base.hosted_game import HostedGame, SeatSession
from simul.env_worker.games.base.source import TurnGameSource
from simul.env_worker.games.base.turn_game import CHANCE, TurnGame
from simul.env_worker.search.determinized_search import DeterminizedSearch, Rows
from simul.env_worker.search.evaluators import UniformEvaluator
from simul.env_worker.source import EvaluationRequest

NONE: Mapping[str, SearchConfig] = MappingProxyType({})
REHEARSED_ROWS, REHEARSED_MOVES = 64, 200


class SearchedSeat(SeatSession):
    """A seat whose actions are searched: the server has no session of it, so none ends.

    Attributes:
        draw: seed of what its searches draw.
    """

    draw = 0

    def end(self, game: TurnGame, truncated: bool) -> Decision | None:
        return None

    def aborted(self) -> Decision | None:
        return None


class _Searched(NamedTuple):
    """A decision and its search."""

    hosted: HostedGame
    decision: Decision
    search: DeterminizedSearch


class DeterminizedSource(TurnGameSource):
    """A TurnGameSource whose policies with `worlds` choose by `DeterminizedSearch`; the server answers the others.

    Args:
        search: settings. searches: of policies that have their own, by name.
        points_of_value: see `DeterminizedSearch`. own_points: of policies that have their own, by name.
        others: arguments of TurnGameSource.
    """

    def __init__(
        self, *arguments: Any, search: SearchConfig, searches: Mapping[str, SearchConfig] = NONE,
        points_of_value: float = 1.0, own_points: Mapping[str, float] = MappingProxyType({}), **others: Any,
    ) -> None:  # fmt: skip
        super().__init__(*arguments, **others)
        self._search = search
        self._searches = searches
        self._points_of_value = points_of_value
        self._own_points = own_points
        self._searched: dict[int, _Searched] = {}  # by env
        self._in_flight: dict[int, tuple[_Searched, Rows]] = {}  # by number of the request
        self._moves = self._requests = self._evaluations = 0

    def poll(self) -> list[Decision]:
        """As TurnGameSource, without the decisions that are searched."""
        answered: list[Decision] = []
        for decision in super().poll():
            if decision.kind == DECISION and self._search_of(decision.policy).worlds:
                self._begin_search(decision)
            else:
                answered.append(decision)
        return answered

    def evaluations(self, most_rows: int) -> list[EvaluationRequest]:
        """A request of each search that waits for no answer, of at most `most_rows` rows."""
        waiting = {searched.decision.env for searched, _ in self._in_flight.values()}
        requests: list[EvaluationRequest] = []
        for env in sorted(set(self._searched) - waiting):
            searched = self._searched[env]
            try:
                rows = searched.search.rows(most_rows)
            except Exception as error:  # noqa: BLE001 - a user's game may raise anything
                self._fail(searched.hosted, error)
                continue
            if rows is None:
                self._move(searched)
            else:
                requests.append(self._request(searched, rows))
        self._wakeup.set(bool(self._due) or (bool(self._searched) and not self._in_flight))
        return requests

    def take_evaluation(self, number: int, evaluation: Evaluation) -> None:
        """The answer to the request `number`. A game with a refused row is aborted. Raises FailingEnvError."""
        searched, rows = self._in_flight.pop(number)
        if self._searched.get(searched.decision.env) is not searched:
            return  # aborted since
        if evaluation.errors:
            self._end_refused(searched.hosted, *next(iter(evaluation.errors.values())))
            return
        try:
            searched.search.take(rows, evaluation)
        except Exception as error:  # noqa: BLE001 - a user's game may raise anything
            self._fail(searched.hosted, error)

    def take_samples(self) -> list[Sample]:
        """None: nothing is learned from these games."""
        return []

    def metrics(self) -> dict[str, Any]:
        """Those of TurnGameSource, and `search`: counters since start."""
        counters = {"moves": self._moves, "requests": self._requests, "evaluations": self._evaluations}
        return super().metrics() | {"search": counters}

    def _search_of(self, policy: str) -> SearchConfig:
        return self._searches.get(policy, self._search)

    def _session(
        self, env: int, seat: int, episode: int, contestant: Contestant, flags: int, draw: int
    ) -> SeatSession:  # fmt: skip
        if not self._search_of(contestant.policy).worlds:
            return super()._session(env, seat, episode, contestant, flags, draw)
        searched = SearchedSeat(env, seat, episode, contestant.policy, flags, self._reward_scale)
        searched.draw = draw
        return searched

    def _begin_search(self, decision: Decision) -> None:
        hosted = self._running[decision.env]
        if hosted is None or hosted.episode != decision.episode:
            return  # aborted since
        settings = self._search_of(decision.policy)
        seat = hosted.seats[decision.seat]
        assert isinstance(seat, SearchedSeat)
        try:
            search = DeterminizedSearch(
                hosted.game, decision.seat, worlds=settings.worlds, candidates=settings.candidates,
                draw=random.Random(f"{seat.draw}/{decision.step}"),
                points_of_value=self._own_points.get(decision.policy, self._points_of_value),
            )  # fmt: skip
        except Exception as error:  # noqa: BLE001 - a user's game may raise anything
            self._fail(hosted, error)
            return
        self._searched[decision.env] = _Searched(hosted, decision, search)

    def _request(self, searched: _Searched, rows: Rows) -> EvaluationRequest:
        self._requests += 1
        self._evaluations += len(rows.places)
        self._in_flight[self._requests] = searched, rows
        return EvaluationRequest(self._requests, searched.decision.policy, rows.observation, rows.mask)

    def _move(self, searched: _Searched) -> None:
        decision = searched.decision
        del self._searched[decision.env]
        self._moves += 1
        action = searched.search.action
        self.act([Action(decision.env, decision.seat, decision.episode, decision.step, 0, action, 0.0, 0.0, -1)])

    def _abort(self, hosted: HostedGame, cause: str, *, silent: bool = False) -> None:
        self._searched.pop(hosted.env, None)
        super()._abort(hosted, cause, silent=silent)


def rehearse(make_game: Callable[[], TurnGame]) -> None:
    """Play a game whose every action is searched in one world, by a policy that likes all actions alike.

    What it calls is compiled then, before a server waits for the worker: REHEARSED_MOVES are enough. Raises ConfigError
    where the game draws no worlds, or does not work.
    """
    try:
        game, draw = make_game(), random.Random(0)
        game.reset(0)
        for _ in range(REHEARSED_MOVES):
            if not (acting := game.acting()):
                break
            if acting[0] == CHANCE:
                game.apply({CHANCE: game.draw_chance(draw)})
                continue
            search = DeterminizedSearch(game, acting[0], worlds=1, candidates=2, draw=draw)
            search.run(UniformEvaluator(), REHEARSED_ROWS)
            game.apply({acting[0]: search.action})
    except (NotImplementedError, EnvError) as error:
        raise ConfigError(f"search.worlds: {error}. Leave search.worlds out.") from None
    except Exception as error:
        what = describe_error(error, CALLERS)
        raise ConfigError(f"search.worlds: the game does not work: {what}. Leave search.worlds out.") from error
