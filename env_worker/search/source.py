"""Games whose policies search: an EnvSource that asks for evaluations instead of actions, and gives samples."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from simul.common.client.evaluation import Evaluation
from simul.common.config.game_description import PAST_SELVES
from simul.common.config.search import SearchConfig
from simul.common.errors import EnvError
from simul.common.protocol.decisions import Action, Decision
from simul.common.protocol.messages import DECISION, GREEDY, RECORD, START
from simul.common.protocol.samples import Sample
from simul.env_worker.games.base.hosted_game import HostedGame
from simul.env_worker.games.base.source import POLL_SEC, TurnGameSource
from simul.env_worker.search.batched_search import LeafRequest, PendingLeaf, leaf_request, next_leaf, take_answers
from simul.env_worker.search.evaluation_cache import EvaluationCache
from simul.env_worker.search.game_record import GameRecord
from simul.env_worker.search.outcomes import outcome_of
from simul.env_worker.search.search import Search
from simul.env_worker.source import EvaluationRequest

NONE: Mapping[str, SearchConfig] = MappingProxyType({})


class SearchedGame:
    """One running game: a tree for each policy that plays in it, and what it leaves to the learner.

    Attributes:
        decision: that is searched now, by `search`; None while scripted players act.
    """

    def __init__(self, hosted: HostedGame, draw: np.random.Generator, record: GameRecord) -> None:
        self.hosted = hosted
        self.draw = draw
        self.record = record
        self.moves = 0
        self.decision: Decision | None = None
        self.search: Search
        self._searches: dict[str, Search] = {}
        self._flags: dict[int, int] = {}

    def begin(self, decision: Decision, config: SearchConfig, cache: EvaluationCache) -> None:
        """Search the decision that the game waits for."""
        game, policy = self.hosted.game, decision.policy
        if decision.flags & START:
            self._flags[decision.seat] = decision.flags
        if policy not in self._searches:
            self._searches[policy] = Search(config, game.spec, self.draw, cache)
        full = not self.recorded(decision) or self.draw.random() < config.full_share
        greedy = bool(self._flags[decision.seat] & GREEDY)
        self.decision, self.search = decision, self._searches[policy]
        self.search.begin(game, full=full, move=self.moves, noise=not greedy)
        self.moves += 1

    @property
    def policies(self) -> Iterable[str]:
        """Those that have searched in this game."""
        return self._searches.keys()

    def recorded(self, decision: Decision) -> bool:
        """True where the learner learns from this seat."""
        return bool(self._flags[decision.seat] & RECORD)


class SearchSource(TurnGameSource):
    """A TurnGameSource whose policy seats choose by search. It makes no decisions for the server to answer.

    The games are split into groups. A group's leaves are one request for each policy; while it waits for the answers,
    other groups go on. Matchmaking, evaluations and scripted players are those of TurnGameSource.

    Args:
        search: settings. searches: of policies that have their own, by name; what concerns the whole source, such as
            groups and symmetries, is that of `search`.
        others: arguments of TurnGameSource.
    """

    def __init__(
        self, *arguments: Any, search: SearchConfig, searches: Mapping[str, SearchConfig] = NONE, **others: Any
    ) -> None:
        super().__init__(*arguments, **others)
        self._search = search
        self._searches = searches
        self._caches: dict[str, EvaluationCache] = {}
        self._searched: dict[int, SearchedGame] = {}  # by env
        self._groups = min(search.requests_in_flight, self.envs)
        self._in_flight: dict[int, tuple[int, LeafRequest]] = {}  # group and leaves, by id of the request
        self._samples: list[Sample] = []
        self._requests = self._evaluations = self._simulations = self._moves = self._recorded = 0
        self._dropped_hits = self._dropped_misses = 0  # of caches that are gone
        self._spectated: int | None = None
        self._spectated_decisions: list[Decision] = []

    def set_policies(self, names: Sequence[str]) -> None:
        """As of TurnGameSource; what is kept of past selves that are served no more is dropped."""
        super().set_policies(names)
        playing = {policy for game in self._searched.values() for policy in game.policies}
        for name in [name for name in self._caches if name.startswith(PAST_SELVES)]:
            if name not in names and name not in playing:
                cache = self._caches.pop(name)
                self._dropped_hits += cache.hits
                self._dropped_misses += cache.misses

    def poll(self) -> list[Decision]:
        """None: every decision is searched."""
        for decision in super().poll():
            if decision.kind == DECISION:
                self._begin_search(decision)
            if decision.env == self._spectated:
                self._spectated_decisions.append(decision)
        return []

    def spectate(self, env: int | None) -> None:
        """Keep the decisions of this env for `searched_decisions`."""
        self._spectated = env
        self._spectated_decisions.clear()

    def searched_decisions(self) -> list[Decision]:
        """All of the env that is watched, since the last call; the game waits for the last one."""
        decisions, self._spectated_decisions = self._spectated_decisions, []
        return decisions

    def evaluations(self, most_rows: int) -> list[EvaluationRequest]:
        """Requests of the groups that wait for no answer, of at most `most_rows` rows each."""
        until = time.monotonic() + POLL_SEC
        waiting = {group for group, _ in self._in_flight.values()}
        requests: list[EvaluationRequest] = []
        ready = False
        leaf_rows = self.spec.seats if self.spec.seats > 2 else 1
        for group in sorted(set(range(self._groups)) - waiting):
            leaves = self._select(group, until)
            ready |= any(self._searched[env].decision is not None for env in self._envs(group) if env in self._searched)
            for policy, request in self._packed(leaves, max(most_rows // leaf_rows, 1)):
                self._requests += 1
                self._evaluations += len(request.mask)
                self._in_flight[self._requests] = group, request
                requests.append(EvaluationRequest(self._requests, policy, request.observation, request.mask))
        self._wakeup.set(bool(self._due) or (ready and not self._in_flight))
        return requests

    def take_evaluation(self, number: int, evaluation: Evaluation) -> None:
        """The answer to the request `number`. Games with a refused row are aborted. Raises FailingEnvError."""
        _, request = self._in_flight.pop(number)
        refused = take_answers(request, evaluation)
        for game in list(self._searched.values()):
            if game.decision is not None and game.search in refused:
                self._end_refused(game.hosted, *refused[game.search])

    def take_samples(self) -> list[Sample]:
        """Samples of the games that ended since the last call."""
        samples, self._samples = self._samples, []
        return samples

    def idle(self) -> bool:
        """True when no game is running and `take_samples` returned the last samples."""
        return super().idle() and not self._samples

    def metrics(self) -> dict[str, Any]:
        """Those of TurnGameSource, and `search`: counters since start."""
        caches = self._caches.values()
        return super().metrics() | {
            "search": {
                "moves": self._moves,
                "simulations": self._simulations,
                "evaluations": self._evaluations,
                "requests": self._requests,
                "cache_hits": self._dropped_hits + sum(cache.hits for cache in caches),
                "cache_misses": self._dropped_misses + sum(cache.misses for cache in caches),
                "samples": self._recorded,
            }
        }

    def _packed(self, leaves: Sequence[tuple[str, PendingLeaf]], most: int) -> Iterator[tuple[str, LeafRequest]]:
        """The requests of these leaves, at most so many in each. A game whose leaf does not fit its spec is aborted."""
        for policy, part in _parts(leaves, most):
            try:
                request = leaf_request(part)
            except (EnvError, ValueError):
                fitting = [leaf for leaf in part if self._fits(leaf)]
                if not fitting:
                    continue
                request = leaf_request(fitting)
            yield policy, request

    def _fits(self, leaf: PendingLeaf) -> bool:
        """Whether its actions and observations are as the spec says; else its game is aborted."""
        wanted = self.spec.observation_size
        try:
            leaf_request([leaf])
            if leaf.observations.shape[1:] != (wanted,):
                raise EnvError(f"an observation of shape {leaf.observations.shape[1:]}; expected ({wanted},)")
        except (EnvError, ValueError) as error:
            (game,) = (each for each in self._searched.values() if each.search is leaf.search)
            self._fail(game.hosted, error)
            return False
        return True

    def _envs(self, group: int) -> range:
        return range(group, self.envs, self._groups)

    def _begin_search(self, decision: Decision) -> None:
        hosted = self._running[decision.env]
        if hosted is None or hosted.episode != decision.episode:
            return  # aborted since
        game = self._searched.get(decision.env)
        if game is None or game.hosted is not hosted:
            draw = np.random.default_rng([self._seed, hosted.number])
            record = GameRecord(draw, self._search.symmetries, self._search.td_lambda)
            game = self._searched[decision.env] = SearchedGame(hosted, draw, record)
        config = self._searches.get(decision.policy, self._search)
        cache = self._caches.setdefault(decision.policy, EvaluationCache(config.cache_positions))
        try:
            game.begin(decision, config, cache)
        except Exception as error:  # noqa: BLE001 - a user's game may raise anything
            self._fail(hosted, error)

    def _select(self, group: int, until: float) -> list[tuple[str, PendingLeaf]]:
        """A leaf of each game of the group, with its policy. Games whose search is over move, and go on."""
        leaves: list[tuple[str, PendingLeaf]] = []
        searching = [env for env in self._envs(group) if env in self._searched]
        while searching:
            moved = []
            for env in searching:
                game = self._searched.get(env)
                if game is None or game.decision is None:
                    continue
                leaf = self._advance_search(game)
                if leaf is not None:
                    leaves.append((game.decision.policy, leaf))
                else:
                    moved.append(env)
            self.poll()
            searching = moved if time.monotonic() < until else []
        return leaves

    def _advance_search(self, game: SearchedGame) -> PendingLeaf | None:
        """The next leaf of the game's search; None where the search ended with a move, or the game failed."""
        action = None
        try:
            leaf = next_leaf(game.search, self._search.symmetries)
            if leaf is None:
                action = self._choose(game)
        except Exception as error:  # noqa: BLE001 - a user's game may raise anything
            self._fail(game.hosted, error)
            return None
        if action is not None:
            self.act([action])  # fails a game of its own accord, and once
        return leaf

    def _choose(self, game: SearchedGame) -> Action:
        """The move of a search that is over, and its sample."""
        decision, result = game.decision, game.search.result()
        assert decision is not None
        version = self._caches[decision.policy].version
        if game.recorded(decision):
            game.record.add(game.hosted.game, decision.seat, result, max(version, 0))
        game.decision = None
        self._moves += 1
        self._simulations += result.simulations
        return Action(
            decision.env, decision.seat, decision.episode, decision.step, 0, result.action, 0.0,
            0.0 if result.value is None else float(result.value[decision.seat]), version,
        )  # fmt: skip

    def _finish(self, hosted: HostedGame) -> None:
        game = self._searched.pop(hosted.env, None)
        samples: list[Sample] = []
        if game is not None:
            end = hosted.game
            samples = game.record.samples(end, outcome_of(end.learned_returns(), self._search).tolist())
        super()._finish(hosted)  # raises where the game does
        self._samples += samples
        self._recorded += len(samples)

    def _abort(self, hosted: HostedGame, cause: str, *, silent: bool = False) -> None:
        self._searched.pop(hosted.env, None)
        super()._abort(hosted, cause, silent=silent)


def _parts(leaves: Sequence[tuple[str, PendingLeaf]], most: int) -> Iterator[tuple[str, Sequence[PendingLeaf]]]:
    """The leaves of each policy, at most so many at once."""
    by_policy: dict[str, list[PendingLeaf]] = {}
    for policy, leaf in leaves:
        by_policy.setdefault(policy, []).append(leaf)
    for policy, each in by_policy.items():
        for start in range(0, len(each), most):
            yield policy, each[start : start + most]
