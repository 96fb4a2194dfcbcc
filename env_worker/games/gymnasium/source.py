"""Hosts many Gymnasium envs with discrete actions: one seat each, stepped when their action arrives."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from simul.common.errors import ConfigError, EnvError, FailingEnvError
from simul.common.protocol.decisions import Action, Decision, start_flags
from simul.common.protocol.messages import ABORTED, DECISION, TERMINATED, TRUNCATED
from simul.common.protocol.specs import GameSpec
from simul.common.role.report_names import ALL_EPISODES
from simul.env_worker.games.base.failures import LEAST_EPISODES, EpisodeFailures, describe_failure, is_reported
from simul.env_worker.games.gymnasium.hosted_env import HostedEnv
from simul.env_worker.games.gymnasium.replays import EpisodeRecorder
from simul.env_worker.games.gymnasium.spaces import close_env, gymnasium_spec
from simul.env_worker.recent_episodes import Episode, RecentEpisodes

RECENT = 100
EVENTS = 20
LISTED = 5000  # single returns that fit the header frame of a report (9 bytes each, 64 KiB)


class EpisodeTally:
    """Counts episodes; started = finished + aborted + alive at every moment.

    Args:
        listed: keep every single return, for an evaluation.
    """

    def __init__(self, listed: bool) -> None:
        self.started = self.finished = self.truncated = 0
        self.decisions = self.env_steps = 0  # of finished episodes
        self.aborted: Counter[str] = Counter()
        self.events: deque[str] = deque(maxlen=EVENTS)
        self._sum = self._sum_of_squares = 0.0
        self._recent = RecentEpisodes(RECENT)
        self._all: list[float] | None = [] if listed else None

    def finish(self, episode_return: float, truncated: bool, decisions: int, env_steps: int) -> None:
        """Count a finished episode. `episode_return`: sum of its rewards, unscaled."""
        self.decisions += decisions
        self.env_steps += env_steps
        self.finished += 1
        self.truncated += truncated
        self._sum += episode_return
        self._sum_of_squares += episode_return**2
        self._recent.add(Episode(episode_return, decisions))
        if self._all is not None:
            self._all.append(episode_return)

    def metrics(self, alive: int) -> dict[str, Any]:
        """`episodes`, `returns` (means are 0.0 while `count` is 0), `lengths`, `recent`, `events`.

        Also `episode_returns` if listed.
        """
        recent = self._recent.figures()
        figures: dict[str, Any] = {
            "episodes": {
                "started": self.started,
                "finished": self.finished,
                "aborted": dict(self.aborted),
                "alive": alive,
                "truncated": self.truncated,
            },
            "returns": {
                "mean": self._sum / max(self.finished, 1),
                "mean_square": self._sum_of_squares / max(self.finished, 1),
                "count": self.finished,
                "recent_mean": recent[ALL_EPISODES]["return_mean"] if recent else 0.0,
            },
            "lengths": {"decisions": self.decisions, "env_steps": self.env_steps},
            "recent": recent,
            "events": list(self.events),
        }
        if self._all is not None and len(self._all) <= LISTED:
            figures["episode_returns"] = list(self._all)
        return figures


class GymnasiumSource:
    """An EnvSource over `envs` copies of one env.

    Args:
        make_env: builds one env.
        name: of the game, for its spec.
        envs: number of copies.
        seed: an episode is seeded by (seed, env, episode) and nothing else.
        record, greedy: flags of every session.
        episodes: finish exactly this many, then be idle. Each env has a fixed share, so the set of games does not
            depend on timing; an aborted one is replaced by the env's next. None: no end.
        reward_scale: factor of the rewards sent to the server; reported returns are without it.
        max_failed_share: more failed episodes among the last are an error, see EpisodeFailures.
        recorder: of the episodes of one env, by its number; None: no replays.
    """

    def __init__(
        self,
        make_env: Callable[[], gymnasium.Env],
        *,
        name: str,
        envs: int,
        seed: int,
        record: bool = True,
        greedy: bool = False,
        episodes: int | None = None,
        reward_scale: float = 1.0,
        max_failed_share: float = 1.0,
        recorder: Callable[[int], EpisodeRecorder] | None = None,
    ) -> None:
        self.spec = _spec_of(make_env, name)
        self.envs = envs
        self._seed = seed
        self._flags = start_flags(record, greedy)
        self._reward_scale = reward_scale
        self._shares = [None if episodes is None else (episodes + envs - 1 - i) // envs for i in range(envs)]
        self._hosted = [
            HostedEnv(i, make_env, self.spec, recorder(i) if recorder else None, reward_scale) for i in range(envs)
        ]
        self._episode_tally = EpisodeTally(listed=episodes is not None)
        self._failures = EpisodeFailures(max_failed_share, envs)
        self._to_begin: set[int] = set()  # envs whose last reset failed; tried again by `poll`
        self._ready: list[Decision] = []
        self._draining = False

    def start(self) -> None:
        """Start every env. Raises ConfigError where the game cannot run at all."""
        try:
            for _ in range(LEAST_EPISODES):
                for env in self._hosted:
                    self._begin(env)
                if len(self._to_begin) < self.envs:
                    return
        except FailingEnvError as error:
            raise ConfigError(f"The environment {self.spec.name} does not start: {error}") from error
        raise ConfigError(f"The environment {self.spec.name} does not start: {self._episode_tally.events[-1]}")

    def poll(self) -> list[Decision]:
        """Decisions and ends that became ready since the last call.

        Raises:
            FailingEnvError: too many of the last episodes failed.
        """
        for index in sorted(self._to_begin):
            self._begin(self._hosted[index])
        ready, self._ready = self._ready, []
        return ready

    def act(self, actions: Sequence[Action]) -> None:
        """Step the envs that are answered.

        Raises:
            EnvError: an action was illegal (its episode is aborted, the other envs are stepped).
            FailingEnvError: too many of the last episodes failed.
        """
        illegal = ""
        for action in actions:
            env = self._hosted[action.env]
            if not env.alive or (action.episode, action.step) != (env.episode, env.step):
                continue
            if 0 <= action.action < len(env.mask) and env.mask[action.action]:
                self._step(env, action.action)
            else:
                illegal = _illegal(env, action.action)
                env.step += 1
                self._abort(env, "illegal_action")
                self._begin(env)
        if illegal:
            raise EnvError(illegal)

    def episode(self, env: int) -> int:
        """Number of the env's running episode, -1 where none runs."""
        return self._hosted[env].episode if self._hosted[env].alive else -1

    def abort(self, envs: Iterable[int], cause: str) -> None:
        """The server lost or refused these sessions: drop their queued rows and start new episodes."""
        lost = set(envs)
        for index in sorted(lost):
            if self._hosted[index].alive:
                self._abort(self._hosted[index], cause)
        self._ready = [row for row in self._ready if row.env not in lost]
        for index in sorted(lost):
            self._begin(self._hosted[index])

    def set_policies(self, names: Sequence[str]) -> None:
        """Ignored: one seat has no opponents."""

    def drain(self) -> None:
        """Start no new episodes."""
        self._draining = True
        self._to_begin.clear()

    def idle(self) -> bool:
        """True when no episode is running and `poll` returned the last ends."""
        return not self._ready and not self._to_begin and not any(env.alive for env in self._hosted)

    def files(self) -> list[int]:
        """No files: envs are stepped inside `act`."""
        return []

    def metrics(self) -> dict[str, Any]:
        """`encode_sec`, and those of `EpisodeTally`: `episodes`, `returns`, `lengths`, `events`, ..."""
        metrics = self._episode_tally.metrics(alive=sum(env.alive for env in self._hosted))
        return {**metrics, "encode_sec": sum(env.encode_sec for env in self._hosted)}

    def close(self) -> None:
        """Close every env; running episodes count as aborted by `shutdown`."""
        self.drain()
        for env in self._hosted:
            if env.alive:
                self._abort(env, "shutdown")
            env.discard()
        self._ready.clear()

    def _begin(self, env: HostedEnv) -> None:
        """Start the env's next episode, where one is due; `poll` tries again where its reset fails."""
        self._to_begin.discard(env.index)
        if self._draining or env.alive or env.finished == self._shares[env.index]:
            return
        env.begin()
        self._episode_tally.started += 1
        self._failures.add_started(env.index)
        try:
            self._decide(env, env.reset(self._seed))
        except Exception as error:  # noqa: BLE001 - a user's env may raise anything
            self._to_begin.add(env.index)
            self._fail(env, error)

    def _step(self, env: HostedEnv, action: int) -> None:
        try:
            observation, terminated, truncated = env.advance(action)
        except Exception as error:  # noqa: BLE001 - a user's env may raise anything
            self._fail(env, error)
            self._begin(env)
            return
        if terminated or truncated:
            self._row(env, TERMINATED if terminated else TRUNCATED, observation)
            env.alive = False
            env.finished += 1
            self._episode_tally.finish(env.episode_return, truncated, env.step, env.env_steps)
            self._failures.add_finished(env.index)
            env.end_replay("terminated" if terminated else "truncated")
            self._begin(env)
        else:
            self._decide(env, observation)

    def _decide(self, env: HostedEnv, observation: NDArray[Any] | None) -> None:
        self._row(env, DECISION, observation, env.mask, self._flags if env.step == 0 else 0)

    def _row(
        self,
        env: HostedEnv,
        kind: int,
        observation: NDArray[Any] | None = None,
        mask: NDArray[np.uint8] | None = None,
        flags: int = 0,
    ) -> None:
        reward = 0.0 if kind == ABORTED else env.reward * self._reward_scale
        self._ready.append(
            Decision(env.index, 0, env.episode, env.step, 0, kind, flags, reward, observation, mask),
        )

    def _abort(self, env: HostedEnv, cause: str) -> None:
        """End the running episode; the server is told unless it never got the first decision."""
        env.alive = False
        self._episode_tally.aborted[cause] += 1
        env.end_replay(cause)
        if env.step > 0:
            self._row(env, ABORTED)

    def _fail(self, env: HostedEnv, error: Exception) -> None:
        self._abort(env, "env_error")
        what = describe_failure(error, env.index, env.episode, env.step)
        closing = env.discard()
        times = self._failures.add_failed(env.index, error)
        if is_reported(times):
            often = f", {times} times so far" if times > 1 else ""
            self._episode_tally.events.append(f"{what}{often}; a new env is built{closing and ', ' + closing[:200]}")
        self._failures.check()


def _spec_of(make_env: Callable[[], gymnasium.Env], name: str) -> GameSpec:
    env = make_env()
    try:
        return gymnasium_spec(env, name)
    finally:
        close_env(env)  # `check_env` reports what it raises


def _illegal(env: HostedEnv, action: int) -> str:
    legal = np.flatnonzero(env.mask).tolist()
    place = f"env {env.index} episode {env.episode} step {env.step}"
    return f"{place}: action {action} is not legal; expected one of {legal}"
