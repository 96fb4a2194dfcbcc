"""PokemonSource: many battles on one backend, as decisions and actions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from simul.common.config.games.pokemon import PokemonConfig
from simul.common.config.matchups import Pairing
from simul.common.config.schema import OpponentsConfig
from simul.common.config.trust import NOTHING, Trust
from simul.common.protocol.decisions import Action, Decision
from simul.env_worker.games.base.matchmaking import own_opponents
from simul.env_worker.games.pokemon.formats.spec import generation, is_doubles, pokemon_spec
from simul.env_worker.games.pokemon.formats.tables import configured_tables
from simul.env_worker.games.pokemon.formats.team_draws import TeamDraws
from simul.env_worker.games.pokemon.formats.teams import TeamPool
from simul.env_worker.games.pokemon.host.backend import BackendKeeper, BattleBackend
from simul.env_worker.games.pokemon.host.followed_backend import FollowedKeeper
from simul.env_worker.games.pokemon.host.follower import Follower, following_keeper
from simul.env_worker.games.pokemon.host.host_keeper import HostKeeper
from simul.env_worker.games.pokemon.host.node_host import HostDied
from simul.env_worker.games.pokemon.install.node import find_node
from simul.env_worker.games.pokemon.opponents.player_keeper import Battles, PlayerKeeper
from simul.env_worker.games.pokemon.replays.battle_replays import BattleReplays
from simul.env_worker.games.pokemon.source.backend_events import BackendEvents
from simul.env_worker.games.pokemon.source.battle_pool import BattlePool
from simul.env_worker.games.pokemon.source.matchmaking import LiveBattle, Matchmaker, ScheduledMatchmaker
from simul.env_worker.games.pokemon.source.own_code import own_code
from simul.env_worker.games.pokemon.source.rewards import reward_weights
from simul.env_worker.games.pokemon.source.scoreboard import Scoreboard
from simul.env_worker.games.pokemon.source.scripted_turns import ScriptedTurns
from simul.env_worker.games.pokemon.source.seats import PolicySeat
from simul.env_worker.games.pokemon.tables.action_names import ActionNames
from simul.env_worker.source import SERVER_LOST, ReplayPlayer, ShownPosition


class PokemonSource:
    """An EnvSource (see `simul.env_worker.source`).

    Args:
        episodes: number of battles in all, then idle; None = unlimited.
        pairings: the schedule of an evaluation, in place of `opponents`; their battles must add up to `episodes`.
        mirror_seed: seed of mirrored battles; the same for all workers.
        max_failed_share: where the user's own code failed in more of the last battles, see EpisodeFailures.
        replays: a folder into which every battle is written.
        replay_player: of its page, see `replay_page`.
        trust: in the code that the configuration names.
    """

    def __init__(
        self,
        config: PokemonConfig,
        opponents: OpponentsConfig,
        *,
        envs: int,
        seed: int,
        index: int,
        record: bool = True,
        greedy: bool = False,
        episodes: int | None = None,
        discount: float = 1.0,
        pairings: Sequence[Pairing] = (),
        mirror_seed: int = 0,
        replays: Path | None = None,
        replay_player: ReplayPlayer = "own",
        trust: Trust = NOTHING,
        max_failed_share: float = 1.0,
    ) -> None:
        own = own_code(config, trust)
        builtin = pokemon_spec(config)
        self.spec = builtin if own is None else own.spec(builtin)
        self.envs = envs
        self._config, self._trust = config, trust
        gen, doubles = generation(config.format), is_doubles(config.format)
        self._index = index
        self._score = Scoreboard(own.reward.name if own is not None and own.reward is not None else "")
        self._own_players = {
            name: PlayerKeeper(
                name, Battles(config.format, gen, doubles), opponents.limit_sec, self._score.events.append
            )
            for name in own_opponents(opponents, pairings)
        }
        seating: dict[str, Any] = {
            "seed": f"{seed}/{index}", "weights": reward_weights(config.rewards, discount), "gen": gen,
            "record": record, "greedy": greedy, "doubles": doubles,
            "own": own, "own_players": self._own_players, "labels": self.spec.opponent_labels,
        }  # fmt: skip
        self._matchmaker = (
            ScheduledMatchmaker(pairings, str(mirror_seed), **seating) if pairings else Matchmaker(opponents, **seating)
        )
        self._tables = configured_tables(config)
        self._battles = BattlePool(
            self._matchmaker, self._score, config.format, envs, episodes, config.max_turns, max_failed_share
        )
        pooled = episodes is None and config.team_uses > 1 and config.transport == "ipc"
        self._team_pool = TeamPool(f"{seed}/{index}", config.team_uses) if pooled else None
        if replays is not None:
            self._battles.replays = BattleReplays(replays, index, replay_player)
        self._turns = ScriptedTurns(self._score)
        self._backend_events = BackendEvents(self._battles, self._score, self._turns, config.max_turns)
        self._keeper: BackendKeeper | None = None
        self._closed = False
        self._spectated_log: tuple[int, str] = (-1, "")  # battle and lines
        self._actions = ActionNames(builtin, doubles)
        self._unsent: list[Decision] = []  # made outside poll()

    def start(self) -> None:
        for player in self._own_players.values():  # they import while the simulator starts
            player.start()
        self._keeper = keeper = self._make_keeper()
        backend = keeper.start()
        self._battles.teams = TeamDraws.opened(self._config, backend, self._trust)
        if self._team_pool is not None and backend.check_format(self._config.format, ())["reusable"]:
            self._battles.team_pool = self._team_pool
        self._battles.start_battles(backend)

    def poll(self) -> list[Decision]:
        decisions, self._unsent = self._unsent, []
        keeper = self._keeper
        if keeper is None or self._closed:
            return decisions
        backend = keeper.backend
        if backend is None:
            backend = keeper.revive()
            if backend is not None:
                self._score.events.append("the simulator host runs again")
                self._battles.start_battles(backend)
            return decisions
        self._turns.answer(self._battles.battles, backend)
        decisions += self._poll_own_players(backend)
        try:
            tick = keeper.poll()
        except HostDied as death:
            self._battles.abort_all("host_died", decisions)
            if self._battles.replays is not None:
                self._battles.replays.forget_all()
            self._score.events.append(str(death))
            return decisions
        decisions += self._backend_events.apply(backend, tick)
        for log in tick.spectated:
            self._spectated_log = log
        for player in self._own_players.values():
            player.flush()
        self._battles.start_battles(backend)
        return decisions

    def _poll_own_players(self, backend: BattleBackend) -> list[Decision]:
        decisions: list[Decision] = []
        for name, player in self._own_players.items():
            decisions += self._backend_events.apply_players(backend, player.poll(), name)
        if self._own_players:
            backend.flush()
        return decisions

    def act(self, actions: Sequence[Action]) -> None:
        backend = self._keeper.backend if self._keeper is not None else None
        if backend is None:
            return
        for action in actions:
            if action.action < 0:
                continue
            battle = self._battles.by_env[action.env]
            if battle is None or battle.episode != action.episode:
                continue
            seat = battle.seats[action.seat]
            if not isinstance(seat, PolicySeat) or not seat.answers(action.step, action.attempt):
                continue
            if not seat.answer(backend, battle.number, action.action):
                self._score.bad_actions += 1
                self._abort(battle, "illegal_action", self._unsent)
        backend.flush()

    def episode(self, env: int) -> int:
        battle = self._battles.by_env[env]
        return -1 if battle is None else battle.episode

    def abort(self, envs: Iterable[int], cause: str) -> None:
        """End battles: every seat's session as ABORTED, or none with the cause `server_lost`."""
        for env in envs:
            if cause == SERVER_LOST:
                self._unsent = [decision for decision in self._unsent if decision.env != env]
            battle = self._battles.by_env[env]
            if battle is not None:
                self._abort(battle, cause, None if cause == SERVER_LOST else self._unsent)

    def set_policies(self, names: Sequence[str]) -> None:
        self._matchmaker.set_policies(names)
        self._score.keep_past_selves(names)

    def drain(self) -> None:
        self._battles.open = False

    def idle(self) -> bool:
        replays = self._battles.replays
        over = not self._battles.battles and not self._unsent and not self._battles.may_start()
        return over and (replays is None or replays.complete)

    def files(self) -> list[int]:
        files = self._keeper.files() if self._keeper is not None else []
        if not files:
            return []
        return [
            *files,
            *self._turns.files(),
            *(file for player in self._own_players.values() for file in player.files()),
        ]

    def metrics(self) -> dict[str, Any]:
        metrics = self._score.metrics(alive=len(self._battles.battles))
        keeper = self._keeper
        metrics["host_pids"] = keeper.pids if keeper is not None else []
        metrics["host_restarts"] = keeper.restarts if keeper is not None else 0
        return metrics

    def close(self) -> None:
        self._battles.open = False
        self._battles.abort_all("shutdown", None)
        self._turns.close()
        for player in self._own_players.values():
            player.close()
        self._closed = True
        if self._battles.teams is not None:
            self._battles.teams.close()
        if self._keeper is not None:
            self._keeper.close()

    def spectate(self, env: int | None) -> None:
        backend = self._keeper.backend if self._keeper is not None else None
        before, self._battles.spectated = self._battles.spectated, env
        for one, on in ((before, False), (env, True)):
            battle = None if one is None else self._battles.by_env[one]
            if battle is not None and backend is not None:
                backend.spectate_battle(battle.number, on)
                backend.flush()

    def position(self, env: int) -> ShownPosition:
        battle, (number, lines) = self._battles.by_env[env], self._spectated_log
        return ShownPosition(battle=lines if battle is not None and battle.number == number else "")

    def action_name(self, env: int, seat: int, action: int) -> str:
        battle = self._battles.by_env[env]
        asked = None if battle is None else battle.seats[seat]
        return self._actions.name(action, asked.row if isinstance(asked, PolicySeat) else None)

    def searched_decisions(self) -> list[Decision]:
        return []

    def _make_keeper(self) -> BackendKeeper:
        config = self._config
        if config.transport == "websocket":
            return self._make_showdown_keeper()
        return HostKeeper(
            find_node().path, accelerate=config.accelerate, index=self._index, tables=self._tables,
            replies_per_write=config.replies_per_write, silence_limit_sec=config.host_timeout_sec,
        )  # fmt: skip

    def _make_showdown_keeper(self) -> BackendKeeper:
        from simul.env_worker.games.pokemon.showdown.server_keeper import ShowdownKeeper

        config, say = self._config, self._score.events.append
        node = find_node().path
        servers = ShowdownKeeper(
            node, config.servers, config.local_servers, stall_sec=config.host_timeout_sec, say=say
        )  # fmt: skip
        return FollowedKeeper(
            servers, Follower(following_keeper(node, self._tables, self._index, config.host_timeout_sec), say)
        )

    def _abort(self, battle: LiveBattle, cause: str, ends: list[Decision] | None) -> None:
        self._backend_events.abort(self._keeper.backend if self._keeper is not None else None, battle, cause, ends)
