"""Hosts many TurnGames at once, with policies and scripted players at their seats."""

from __future__ import annotations

import random
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from simul.common.config.game_description import POLICIES
from simul.common.config.matchups import Contestant, Pairing
from simul.common.config.schema import Auto, OpponentsConfig
from simul.common.errors import ConfigError, EnvError, FailingEnvError
from simul.common.protocol.decisions import Action, Decision, start_flags
from simul.common.role.report_names import ALL_EPISODES
from simul.env_worker.games.base.board_text import COLOUR
from simul.env_worker.games.base.failures import LEAST_EPISODES, EpisodeFailures, describe_failure, is_reported
from simul.env_worker.games.base.hosted_game import BotSeat, HostedGame, PlayerError, Results, SeatSession
from simul.env_worker.games.base.matchmaking import Matchup, OpponentDraw, Schedule
from simul.env_worker.games.base.openings import Openings, opening_plies
from simul.env_worker.games.base.players import Players
from simul.env_worker.games.base.replays import ReplayFolder
from simul.env_worker.games.base.scoreboard import GameCounters
from simul.env_worker.games.base.standings import Standings, outcome
from simul.env_worker.games.base.turn_game import Player, TurnGame
from simul.env_worker.games.base.wakeup import Wakeup
from simul.env_worker.recent_episodes import Episode
from simul.env_worker.refusals import FAULTS_OF_GAMES
from simul.env_worker.source import SERVER_LOST, ShownPosition

POLL_SEC = 0.02  # games are played on for so long at most before the worker's loop goes on


class TurnGameSource:
    """An EnvSource (see `simul.env_worker.source`) over `envs` games of one kind.

    Env e plays the games e, e + envs, e + 2 envs, ...: what is drawn for a game does not depend on timing.

    Args:
        make_game: builds one game; it is reset for every episode.
        players: the game's scripted players by kind; one of each kind plays all seats of that kind in an env.
        seed: everything of a game is drawn from (seed, its number).
        opponents: shares of the learner's opponents.
        record, greedy: flags of every session.
        episodes: number of games in all, then idle; None: no end.
        pairings: the schedule of an evaluation, in place of `opponents`; their games must add up to `episodes`.
        mirror_seed: seed of mirrored games; the same for all workers.
        openings: random plies that begin each game; auto: as the game needs them.
        reward_scale: factor of the rewards sent to the server; reported returns are without it.
        max_failed_share: more failed games among the last are an error, see EpisodeFailures.
        replays: where every finished game is written; None: nowhere.
    """

    def __init__(
        self, make_game: Callable[[], TurnGame], players: Players, *, envs: int, seed: int,
        opponents: OpponentsConfig, record: bool = True, greedy: bool = False, episodes: int | None = None,
        pairings: Sequence[Pairing] = (), mirror_seed: int = 0, openings: int | Auto = 0, reward_scale: float = 1.0,
        max_failed_share: float = 1.0, replays: ReplayFolder | None = None,
    ) -> None:  # fmt: skip
        first = make_game()
        self.spec = first.spec
        self.envs = envs
        self._make_game = make_game
        self._factories = players
        self._seed = seed
        self._record, self._greedy = record, greedy
        self._limit = episodes
        self._reward_scale = reward_scale
        self._replays = replays
        self._draw = OpponentDraw(opponents, (*POLICIES, *players), self.spec.seats)
        self._schedule = Schedule(pairings, str(mirror_seed)) if pairings else None
        self._counters = GameCounters()
        self._standings = Standings()
        self._openings = Openings(opening_plies(openings, first), deterministic=bool(pairings) and first.deterministic)
        self._returns = _Returns(listed=episodes is not None and not pairings)
        self._failures = EpisodeFailures(max_failed_share, envs)
        self._to_begin: set[int] = set()  # envs whose last game raised, or did not begin; `poll` begins the next
        self._games: list[TurnGame | None] = [first, *[None] * (envs - 1)]
        self._players: dict[tuple[int, str], Player] = {}
        self._running: list[HostedGame | None] = [None] * envs
        self._progress = 0.0
        self._episodes = [-1] * envs  # the number of each env's latest episode
        self._due: deque[HostedGame] = deque()  # games to be played on without an action
        self._ready: list[Decision] = []
        self._encode_sec = 0.0
        self._draining = False
        self._wakeup = Wakeup()

    def start(self) -> None:
        """Start every env. Raises ConfigError where the game cannot run at all."""
        try:
            for _ in range(LEAST_EPISODES):
                for env in range(self.envs):
                    self._begin(env)
                if len(self._to_begin) < self.envs:
                    return
        except FailingEnvError as error:
            raise ConfigError(f"The game {self.spec.name} does not start: {error}") from error
        raise ConfigError(f"The game {self.spec.name} does not start: {self._counters.events[-1]}")

    def poll(self) -> list[Decision]:
        """Play on where no policy is asked; decisions and ends that became ready since the last call.

        Raises:
            FailingEnvError: too many of the last games failed.
            ConfigError: a replay cannot be written.
        """
        for env in sorted(self._to_begin):
            self._begin(env)
        until = time.monotonic() + POLL_SEC
        while self._due:
            self._advance(self._due.popleft(), until)
            if time.monotonic() >= until:
                break
        self._wakeup.set(bool(self._due))
        ready, self._ready = self._ready, []
        return ready

    def act(self, actions: Sequence[Action]) -> None:
        """Apply actions. Raises EnvError where one was illegal; its game is aborted, the others go on."""
        illegal = ""
        for action in actions:
            hosted = self._running[action.env]
            if action.action < 0 or hosted is None:
                continue
            seat = hosted.answers(action.seat, action.episode, action.step)
            if seat is None or seat.mask is None:
                continue
            if action.action < len(seat.mask) and seat.mask[action.action]:
                self._take(hosted, seat, action.action)
            else:
                illegal = _illegal(seat, action.action)
                self._abort(hosted, "illegal_action")
                self._begin(hosted.env)
        if illegal:
            raise EnvError(illegal)

    def episode(self, env: int) -> int:
        """Number of the env's running episode, -1 where none runs."""
        return -1 if self._running[env] is None else self._episodes[env]

    def abort(self, envs: Iterable[int], cause: str) -> None:
        """End games: every seat's session as ABORTED, or none with the cause `server_lost`; start new ones."""
        for env in sorted(set(envs)):
            if cause == SERVER_LOST:
                self._ready = [row for row in self._ready if row.env != env]
            hosted = self._running[env]
            if hosted is not None:
                self._abort(hosted, cause, silent=cause == SERVER_LOST)
            self._begin(env)

    def set_policies(self, names: Sequence[str]) -> None:
        """The policies that the server offers; past selves are drawn from them."""
        self._draw.set_policies(names)
        self._counters.keep_past_selves(names)

    def set_progress(self, share: float) -> None:
        """The share of the run's horizon that is learned: passed to training games that begin."""
        self._progress = share

    def drain(self) -> None:
        """Start no new games."""
        self._draining = True
        self._to_begin.clear()

    def idle(self) -> bool:
        """True when no game is running and `poll` returned the last ends."""
        return not self._ready and not self._to_begin and not any(self._running)

    def files(self) -> list[int]:
        """Readable while games can be played on without an action."""
        return self._wakeup.files()

    def metrics(self) -> dict[str, Any]:
        """Those of `GameCounters`, `returns`, `encode_sec`, and in an evaluation `standings` and of `Openings`."""
        metrics = self._counters.metrics(alive=sum(hosted is not None for hosted in self._running))
        metrics |= self._returns.metrics(metrics["recent"])
        metrics["encode_sec"] = self._encode_sec
        if self._schedule is not None:
            metrics["standings"] = self._standings.figures()
            metrics |= self._openings.figures()
        return metrics

    def close(self) -> None:
        """Stop everything; running games count as aborted by `shutdown`."""
        self.drain()
        for hosted in self._running:
            if hosted is not None:
                self._abort(hosted, "shutdown", silent=True)
        self._ready.clear()
        for env in range(self.envs):
            self._discard(env)
        self._wakeup.close()

    def spectate(self, env: int | None) -> None:
        """Every game can be shown at any time."""

    def position(self, env: int) -> ShownPosition:
        """The game as text and, where it has one, as a picture."""
        hosted = self._running[env]
        if hosted is None:
            return ShownPosition()
        return ShownPosition(COLOUR.sub("", hosted.game.render()), hosted.game.svg())

    def action_name(self, env: int, seat: int, action: int) -> str:
        """As the game names it."""
        hosted = self._running[env]
        return "" if hosted is None else hosted.game.action_name(seat, action)

    def searched_decisions(self) -> list[Decision]:
        """None: the server answers all decisions."""
        return []

    def _begin(self, env: int) -> None:
        """Start the env's next game, where one is due; `poll` tries the next one where it does not begin."""
        self._to_begin.discard(env)
        if self._running[env] is not None or not self._may_start(env):
            return
        self._episodes[env] += 1
        self._counters.started += 1
        self._failures.add_started(env)
        try:
            hosted = self._make(env, self._episodes[env])
            self._running[env] = hosted
            self._due.append(hosted)
        except Exception as error:  # noqa: BLE001 - a user's game may raise anything
            self._counters.aborted["env_error"] += 1
            self._to_begin.add(env)
            self._count_failure(env, -1, error)

    def _may_start(self, env: int) -> bool:
        number = self._number(env, self._episodes[env] + 1)
        return not self._draining and (self._limit is None or number < self._limit)

    def _number(self, env: int, episode: int) -> int:
        return env + episode * self.envs

    def _make(self, env: int, episode: int) -> HostedGame:
        """A new game with its seats. Everything it draws comes from its seed, in a fixed order."""
        number = self._number(env, episode)
        shared = self._schedule.seed_of(number) if self._schedule is not None else None
        seed = shared or f"{self._seed}/{number}"
        rng = random.Random(seed)
        if self._schedule is not None:
            matchup = self._schedule.matchup(number)
        else:
            matchup = self._draw.draw((env + episode) % self.spec.seats, rng)
        game_seed, chance = rng.getrandbits(31), random.Random(rng.getrandbits(64))
        draws = [rng.getrandbits(64) for _ in matchup.seats]
        # In mirrored games each contestant keeps its draws: equal players who draw would play equal games.
        first = matchup.learner_seat if shared is not None else 0
        seats = [
            self._seat(env, seat, episode, contestant, matchup, draws[seat - first])
            for seat, contestant in enumerate(matchup.seats)
        ]
        game = self._games[env]
        if game is None:
            game = self._games[env] = self._make_game()
        if self._record and self._schedule is None:
            game.set_progress(self._progress)
        game.reset(game_seed)
        recorded = self._replays is not None
        remembered = self._openings.listed
        hosted = HostedGame(game, number, env, episode, matchup, seats, game_seed, chance, recorded, remembered)
        hosted.play_opening(self._openings.plies, random.Random(f"{seed}/opening"))
        return hosted

    def _seat(
        self, env: int, seat: int, episode: int, contestant: Contestant, matchup: Matchup, draw: int
    ) -> SeatSession | BotSeat:
        if contestant.bot:
            if (env, contestant.bot) not in self._players:
                self._players[env, contestant.bot] = self._factories[contestant.bot]()
            return BotSeat(seat, self._players[env, contestant.bot], random.Random(draw))
        flags = start_flags(self._record and matchup.learns[seat], self._greedy)
        return self._session(env, seat, episode, contestant, flags, draw)

    def _session(
        self, env: int, seat: int, episode: int, contestant: Contestant, flags: int, draw: int
    ) -> SeatSession:  # fmt: skip
        """Of a seat that a policy plays; `draw`: seed of what is drawn for it here."""
        return SeatSession(env, seat, episode, contestant.policy, flags, self._reward_scale)

    def _advance(self, hosted: HostedGame, until: float) -> None:
        if self._running[hosted.env] is not hosted:
            return  # aborted since
        finished = False
        try:
            if not hosted.advance(self._ready, until):
                self._due.append(hosted)
            elif not hosted.open:
                self._finish(hosted)
                finished = True
        except Exception as error:  # noqa: BLE001 - a user's game may raise anything
            self._fail(hosted, error)
        self._encode_sec += hosted.encode_sec
        hosted.encode_sec = 0.0
        if finished:
            self._save(hosted)
        if self._running[hosted.env] is None:
            self._begin(hosted.env)

    def _take(self, hosted: HostedGame, seat: SeatSession, action: int) -> None:
        try:
            if hosted.take_action(seat, action):
                self._due.append(hosted)
        except Exception as error:  # noqa: BLE001 - a user's game may raise anything
            self._fail(hosted, error)
            self._begin(hosted.env)

    def _finish(self, hosted: HostedGame) -> None:
        """Count a game that is over, and end its sessions. What may raise comes before the first row."""
        truncated, results = hosted.game.truncated(), hosted.results()
        ends = [seat.end(hosted.game, hosted.game.seat_truncated(seat.seat)) for seat in hosted.sessions]
        self._ready += [end for end in ends if end is not None]
        self._count(hosted, results, truncated)
        self._failures.add_finished(hosted.env)
        self._running[hosted.env] = None

    def _save(self, hosted: HostedGame) -> None:
        """Write the replay of a finished game. Raises ConfigError where it cannot be written."""
        if self._replays is not None and hosted.turns is not None:
            players = [each.label for each in hosted.matchup.seats]
            self._replays.save(hosted.game, hosted.number, hosted.seed, players, hosted.turns)

    def _count(self, hosted: HostedGame, results: Results, truncated: bool) -> None:
        matchup, (returns, figures) = hosted.matchup, results
        seat, score = hosted.seats[matchup.learner_seat], returns[matchup.learner_seat]
        found = None if truncated else outcome(matchup.learner_seat, returns)
        episode = None
        if isinstance(seat, SeatSession) and self._schedule is None:  # an evaluation reports `standings`
            own = {name: values[matchup.learner_seat] for name, values in figures.items()}
            several = len(returns) > 1
            episode = Episode(
                score, seat.step + 1, found == 1 if several else None, own, matchup.learner_seat if several else None
            )
        past_self = matchup.past_self
        self._counters.count_game(matchup.opponent, found, episode, past_self)
        self._draw.add_result(past_self, found)
        self._returns.add(score)
        if matchup.mirror is not None:
            self._counters.finish_mirrored(matchup.mirror, found, len(returns))
        if self._schedule is not None and len(returns) > 1:
            pairing = int(matchup.opponent.partition("/")[0])
            self._standings.add(pairing, matchup.learner_seat, returns, figures, matchup.mirror)
            if self._openings.listed:
                self._openings.add(pairing, hosted.game, hosted.seed, hosted.taken)

    def _abort(self, hosted: HostedGame, cause: str, *, silent: bool = False) -> None:
        """End a running game; its sessions end as ABORTED unless `silent`."""
        self._counters.aborted[cause] += 1
        self._running[hosted.env] = None
        if not silent:
            self._ready += [end for seat in hosted.sessions if (end := seat.aborted()) is not None]

    def _end_refused(self, hosted: HostedGame, code: str, message: str) -> None:
        """End a game, a position of which the server did not evaluate; it counts as failed where that is its fault."""
        if code not in FAULTS_OF_GAMES:
            self.abort([hosted.env], code)
            return
        what = f"{self.spec.name}: the server refused a searched position, {message} ({code})"
        self._fail(hosted, EnvError(what))
        self._begin(hosted.env)

    def _fail(self, hosted: HostedGame, error: Exception) -> None:
        """Abort a game that raised, and count it; `poll` begins the next one of its env.

        Raises FailingEnvError where it is one of too many.
        """
        by_player = isinstance(error, PlayerError) and isinstance(error.__cause__, Exception)
        self._abort(hosted, "opponent_error" if by_player else "env_error")
        cause = error.__cause__ if by_player else error
        assert isinstance(cause, Exception)
        self._count_failure(hosted.env, hosted.step, cause)
        self._to_begin.add(hosted.env)

    def _count_failure(self, env: int, step: int, error: Exception) -> None:
        """Raises FailingEnvError where it is one of too many."""
        what = describe_failure(error, env, self._episodes[env], step)
        self._discard(env)
        times = self._failures.add_failed(env, error)
        if is_reported(times):
            often = f", {times} times so far" if times > 1 else ""
            self._counters.events.append(f"{what}{often}; a new game is built")
        self._failures.check()

    def _discard(self, env: int) -> None:
        """Drop the env's game and players, and close those that hold something."""
        dropped: list[Any] = [self._games[env]]
        self._games[env] = None
        dropped += [self._players.pop(key) for key in list(self._players) if key[0] == env]
        for each in dropped:
            if callable(close := getattr(each, "close", None)):
                with suppress(Exception):  # a user's game may raise anything
                    close()


class _Returns:
    """Returns of the learner's seat, or of `first`. `listed`: every single one is kept, for an evaluation."""

    LISTED = 5000  # that fit the header frame of a report (9 bytes each, 64 KiB)

    def __init__(self, listed: bool) -> None:
        self._count = 0
        self._sum = self._squares = 0.0
        self._all: list[float] | None = [] if listed else None

    def add(self, value: float) -> None:
        """One game's."""
        self._count += 1
        self._sum += value
        self._squares += value * value
        if self._all is not None:
            self._all.append(value)

    def metrics(self, recent: dict[str, dict[str, float]]) -> dict[str, Any]:
        """`returns`: means are 0.0 while `count` is 0; `episode_returns` if listed."""
        count = max(self._count, 1)
        returns = {
            "mean": self._sum / count, "mean_square": self._squares / count, "count": self._count,
            "recent_mean": recent[ALL_EPISODES]["return_mean"] if recent else 0.0,
        }  # fmt: skip
        if self._all is None or len(self._all) > self.LISTED:
            return {"returns": returns}
        return {"returns": returns, "episode_returns": list(self._all)}


def _illegal(seat: SeatSession, action: int) -> str:
    legal = np.flatnonzero(seat.mask)[:20].tolist() if seat.mask is not None else []
    place = f"env {seat.env} seat {seat.seat} episode {seat.episode} step {seat.step}"
    return f"{place}: action {action} is not legal; expected one of {legal}"
