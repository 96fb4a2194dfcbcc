"""The battles in flight: their envs, starts, ends and counts."""

from __future__ import annotations

import random

from simul.common.protocol.decisions import Decision
from simul.env_worker.games.base.failures import EpisodeFailures, is_reported
from simul.env_worker.games.pokemon.formats.team_draws import TeamDraws
from simul.env_worker.games.pokemon.formats.teams import TeamPool
from simul.env_worker.games.pokemon.host.backend import BattleBackend, drawn_start
from simul.env_worker.games.pokemon.replays.battle_replays import BattleReplays
from simul.env_worker.games.pokemon.source.matchmaking import LiveBattle, Matchmaker
from simul.env_worker.games.pokemon.source.own_code import OwnCodeError
from simul.env_worker.games.pokemon.source.scoreboard import Scoreboard
from simul.env_worker.games.pokemon.source.seats import OwnPlayerSeat, PolicySeat, ScriptedSeat
from simul.env_worker.recent_episodes import Episode

OPPONENT_ERROR, OWN_CODE = "opponent_error", "own_code"  # causes of aborted battles: an own player; own_code.py
SIMULATOR_CRASHED = "simulator_crashed"  # an exception in the host, of the simulator or of what reads it
MOST_FAILED, FAILED_OF, LEAST_FAILED = 0.01, 1000, 10  # battles aborted by OWN_CODE, of the last ones


class BattlePool:
    """Battles by number and by env. `limit`: number of battles in all, None = unlimited.

    `max_turns`: where no policy plays, the host ends a longer battle. `max_failed_share`: see EpisodeFailures.

    Attributes:
        open: False = no new battle starts (draining or closed).
    """

    def __init__(
        self, matchmaker: Matchmaker, score: Scoreboard, battle_format: str, envs: int, limit: int | None,
        max_turns: int, max_failed_share: float = 1.0,
    ) -> None:  # fmt: skip
        self.battles: dict[int, LiveBattle] = {}
        self.by_env: list[LiveBattle | None] = [None] * envs
        self.open = True
        self.teams: TeamDraws | None = None  # for formats that draw none
        self.team_pool: TeamPool | None = None  # for formats that draw teams; None: new teams for every battle
        self.replays: BattleReplays | None = None
        self.spectated: int | None = None  # env whose battles are watched
        self._matchmaker = matchmaker
        self._score = score
        self._format = battle_format
        self._limit = limit
        self._max_turns = max_turns
        self._episodes = [0] * envs
        self._failures = {
            OPPONENT_ERROR: EpisodeFailures(max_failed_share, envs),
            SIMULATOR_CRASHED: EpisodeFailures(max_failed_share, envs),
            OWN_CODE: EpisodeFailures(
                MOST_FAILED, envs, setting="the allowed share", recent=FAILED_OF, least_failures=LEAST_FAILED
            ),
        }

    def may_start(self) -> bool:
        return self.open and (self._limit is None or self._score.started < self._limit)

    def start_battles(self, backend: BattleBackend) -> None:
        """Start a battle in every empty env, then send all commands."""
        for env, running in enumerate(self.by_env):
            if running is None and self.may_start():
                self._start(backend, env)
        backend.flush()

    def finish(self, battle: LiveBattle, outcome: int | None, turns: int) -> None:
        """Count a battle that was played out (the learner's outcome: 1, 0, -1) or truncated (None)."""
        learner, episode = battle.seats[battle.learner_seat], None
        if isinstance(learner, PolicySeat):  # in an evaluation of bots it is scripted
            episode = Episode(learner.paid, learner.step + 1, outcome == 1, learner.reward_figures())
        for failures in self._failures.values():
            failures.add_finished(battle.env)
        self._score.finish(battle.opponent, outcome, turns, episode, battle.past_self)
        self._matchmaker.add_result(battle, outcome)
        if battle.mirror is not None:
            self._score.finish_mirrored(battle.mirror, outcome)
        self._forget(battle)

    def abort(self, battle: LiveBattle, cause: str, ends: list[Decision] | None) -> None:
        """Count a battle as aborted; its seats' ends go into `ends` unless that is None."""
        self._score.aborted[cause] += 1
        if ends is not None:
            ends += [end for seat in battle.policy_seats if (end := seat.aborted()) is not None]
        self._forget(battle)

    def fail(
        self, battle: LiveBattle, cause: str, what: Exception | str, ends: list[Decision] | None, detail: str = ""
    ) -> None:  # fmt: skip
        """Count a battle as aborted by an error in it: `what` it was, the same words each time, and a `detail`.

        `cause`: OPPONENT_ERROR, SIMULATOR_CRASHED or OWN_CODE. Raises FailingEnvError where that happened in too many
        of the last battles.
        """
        self.abort(battle, cause, ends)
        failures = self._failures[cause]
        raised = what.__cause__ if isinstance(what, OwnCodeError) and isinstance(what.__cause__, Exception) else what
        times = failures.add_failed(battle.env, raised)
        if is_reported(times):
            often = f", {times} times so far" if times > 1 else ""
            said = f"{what}: {detail}" if detail else str(what)
            self._score.events.append(f"{said} (battle {battle.number}, which is aborted{often})")
        failures.check()

    def abort_all(self, cause: str, ends: list[Decision] | None) -> None:
        for battle in list(self.battles.values()):
            self.abort(battle, cause, ends)

    def _start(self, backend: BattleBackend, env: int) -> None:
        number = self._score.started
        rng = random.Random(self._matchmaker.seed_of(number))
        battle = self._matchmaker.make(number, env, self._episodes[env], rng)
        self._score.started += 1
        self._episodes[env] += 1
        for failures in self._failures.values():
            failures.add_started(env)
        self.battles[number] = battle
        self.by_env[env] = battle
        start = drawn_start(rng)._replace(
            encode=battle.encoded, tell=battle.told, play=battle.played, max_turns=self._max_turns,
            tally=self._matchmaker.tally,
        )  # fmt: skip
        if self.teams is not None:
            start = start._replace(teams=self.teams.draw(rng, battle.of_learner, battle.mirror))
        elif self.team_pool is not None:
            start = start._replace(team_seeds=self.team_pool.seeds(number, rng), reuse=True)
        if self.replays is not None:
            self.replays.expect(number, battle.names)
            start = start._replace(names=battle.names, log=True)
        backend.start_battle(number, self._format, start)
        if env == self.spectated:
            backend.spectate_battle(number, True)

    def _forget(self, battle: LiveBattle) -> None:
        del self.battles[battle.number]
        self.by_env[battle.env] = None
        for seat in battle.seats:
            if isinstance(seat, ScriptedSeat):
                self._score.parse_errors.update(seat.battle.parse_errors)
            if isinstance(seat, OwnPlayerSeat):
                self._score.parse_errors.update(seat.parse_errors)
                seat.keeper.forget(battle.number, seat.seat)
            if isinstance(seat, PolicySeat):
                for part, value in enumerate(seat.rewards.parts):
                    self._score.reward_parts[part] += value
                self._score.own_reward += 0.0 if seat.own is None else seat.own.paid
