"""The trained agent as a poke-env `Player`: battles come from a Showdown server, moves from the inference server."""

from __future__ import annotations

import asyncio
import random
from collections import Counter, deque
from dataclasses import dataclass

from poke_env import AccountConfiguration, ServerConfiguration
from poke_env.battle import AbstractBattle
from poke_env.concurrency import POKE_LOOP
from poke_env.data import GenData
from poke_env.player import BattleOrder, Player
from poke_env.teambuilder import Teambuilder

from simul.common.protocol.messages import LEARNER_POLICY
from simul.env_worker.games.pokemon.formats.spec import custom_rules, is_doubles, same_format
from simul.env_worker.games.pokemon.formats.team_draws import TeamSource
from simul.env_worker.games.pokemon.host.follower import Follower
from simul.env_worker.games.pokemon.play.async_bridge import AsyncBridge, SessionLost
from simul.env_worker.games.pokemon.play.challenges import Challenges
from simul.env_worker.games.pokemon.play.guard import USUAL, Guard, Login
from simul.env_worker.games.pokemon.play.room_battle import OtherRules, Rejoins, RoomBattle
from simul.env_worker.games.pokemon.play.room_follower import RoomFollower, RoomLost
from simul.env_worker.games.pokemon.showdown.client import SILENT, ShowdownClient, user_id
from simul.env_worker.games.pokemon.showdown.room import NOTHING_OPEN, UNREADABLE
from simul.env_worker.games.pokemon.source.own_code import OwnCode, OwnCodeError
from simul.env_worker.source import ReplayPlayer


@dataclass
class SlotOrder(BattleOrder):
    """A choice by slot, as a server command."""

    words: str

    @property
    def message(self) -> str:
        return self.words


class DrawnTeams(Teambuilder):
    """Packed teams, as a source draws them."""

    def __init__(self, source: TeamSource) -> None:
        self._source = source
        self._rng = random.Random()

    def yield_team(self) -> str:
        return self._source.draw(self._rng)


FINISHED_KEPT = 32  # a room still sends messages for a moment after its battle is over


class AgentPlayer(Player):
    """Plays many battles at once; each is a session of its own at the inference server.

    Everything here runs on poke-env's event loop; `bridge` passes decisions to the thread that serves them.

    Args:
        concurrency: number of battles at once; further challenges wait.
        follower: has been started; tracks and encodes the battles.
        teams: for formats that draw none; one is drawn for each battle.
        timer: ask for the battle timer, so that an opponent cannot stall a battle for ever.
        replays: folder of the replays; empty: none are kept.
        replay_player: of their pages.
        patience_sec: how long a lost connection is retried; its battles go on.
        login: time limit of the login, and what to call when it begins and after it.
        own: observation of the user's.
    """

    def __init__(
        self,
        account: AccountConfiguration,
        server: ServerConfiguration,
        bridge: AsyncBridge,
        follower: Follower,
        *,
        battle_format: str,
        concurrency: int,
        paced: bool,
        timer: bool = True,
        teams: TeamSource | None = None,
        policy: str = LEARNER_POLICY,
        greedy: bool = True,
        replays: str = "",
        replay_player: ReplayPlayer = "own",
        patience_sec: float = 60.0,
        login: Login = USUAL,
        own: OwnCode | None = None,
    ) -> None:
        super().__init__(
            account, battle_format=battle_format, log_level=SILENT, max_concurrent_battles=0,
            team=DrawnTeams(teams) if teams is not None else None, server_configuration=server,
            start_timer_on_battle_start=timer, start_listening=False,
        )  # fmt: skip
        self._bridge = bridge
        self._policy, self._greedy, self._replays = policy, greedy, replays
        self._replay_player: ReplayPlayer = replay_player
        self._own = own
        self._stopping = False
        self.tally: Counter[str] = Counter()  # wins, losses, ties of battles that were played out
        self.early: Counter[str] = Counter()  # wins, losses by forfeit or inactivity
        self.given_up = 0  # battles forfeited because we were told to stop
        self.unreadable: list[str] = []  # battles forfeited because the server's text could not be followed, and why
        self.defaulted = 0  # choices left to the server after it refused all of ours
        self._known: set[str] = set()  # tags of all battles, finished ones too
        self._finished: deque[str] = deque()
        self.rejoins = Rejoins(bridge.tell)
        self._tasks: set[asyncio.Task[None]] = set()
        self._challenges = Challenges(self, concurrency)
        self._guard = Guard(login)
        self._rooms = RoomFollower(follower, self._guard.trouble)
        self.ps_client = ShowdownClient(
            account, server, on_trouble=self._guard.trouble, on_popup=self._challenges.popups.put_nowait, paced=paced,
            on_battle_message=self._handle_battle_message, on_update_challenges=self._update_challenges,
            on_challenge_request=self._handle_challenge_request, on_answer=login.begun, open_sec=login.open_sec,
            patience_sec=patience_sec, on_return=self._rejoin_rooms,
        )  # fmt: skip

    async def accept(self, battles: int) -> None:
        """Accept `battles` challenges from any user, and play them. Raises PlayEnded."""
        await self._guard.run(self.ps_client, self._challenges.accept(battles))

    async def challenge(self, user: str, battles: int) -> None:
        """Challenge `user` `battles` times, and play. Raises PlayEnded."""
        await self._guard.run(self.ps_client, self._challenges.challenge(user, battles))

    async def leave(self, patience_sec: float) -> None:
        """Forfeit running battles, accept no new ones, disconnect."""
        self._stopping = True
        for battle in self.running():
            self._forfeit(battle)
        deadline = POKE_LOOP.time() + patience_sec
        while self.running() and not self._guard.troubled and POKE_LOOP.time() < deadline:
            await asyncio.sleep(0.05)
        await self.ps_client.leave()
        self._rooms.close()

    def running(self) -> list[RoomBattle]:
        """Battles that are not over."""
        return [battle for battle in self._battles.values() if not battle.finished]

    async def choose_move(self, battle: AbstractBattle) -> BattleOrder:
        """The inference server's answer to the open request; empty where nothing is to be said."""
        assert isinstance(battle, RoomBattle)
        try:
            return SlotOrder(await self._choice(battle))
        except (RoomLost, OwnCodeError) as lost:
            self._give_up(battle, str(lost))
            return SlotOrder("")

    async def _choice(self, battle: RoomBattle) -> str:
        words = battle.repeated()
        if words is not None:
            return words
        request_number = battle.last_request["rqid"]
        decision = await battle.decide()
        while decision is not None:
            try:
                answer = await battle.order(request_number, await self._bridge.ask(decision))
            except SessionLost:
                assert battle.seat is not None
                decision = battle.seat.start_over()
                continue
            if isinstance(answer, str):
                return answer
            decision = answer
        self.defaulted += 1
        return "/choose default"

    async def teampreview(self, battle: AbstractBattle) -> str:
        """Pick one by one, as in training."""
        return (await self.choose_move(battle)).message

    async def _create_battle(self, split_message: list[str]) -> AbstractBattle:
        tag = "-".join(split_message)[1:]
        if tag not in self._battles:
            battle = RoomBattle(
                tag, self.username, GenData.from_format(self.format).gen, env=len(self._known),
                policy=self._policy, greedy=self._greedy, replays=self._replays, rooms=self._rooms,
                replay_player=self._replay_player, own=self._own, doubles=is_doubles(self.format),
                rules=custom_rules(self.format),
            )  # fmt: skip
            self._known.add(tag)
            await self._battle_count_queue.put(None)
            async with self._battle_start_condition:
                self._battles[tag] = battle
                self._battle_semaphore.release()
                self._battle_start_condition.notify_all()
            if self._start_timer_on_battle_start:
                await self.ps_client.send_message("/timer on", tag)
            if self._stopping:
                self._forfeit(battle)
        return self._battles[tag]

    async def _rejoin_rooms(self, rooms: list[str]) -> None:
        """`rooms`: of our battles, as the server lists them; battles that began during the loss are among them."""
        name = self.format.partition("@@@")[0]  # rooms are called by it, whatever the custom rules; the log tells those
        begun = [room for room in rooms if room not in self._known and name in room.split("-")]
        if not begun:
            self._challenges.nothing_began.set()
        await self.rejoins.join(self.ps_client, [*(battle.battle_tag for battle in self.running()), *begun])

    async def _handle_battle_message(self, split_messages: list[list[str]]) -> None:
        tag = split_messages[0][0][1:]
        battle = self._battles.get(tag)
        if battle is None and tag in self._known:
            return
        kinds = {line[1] for line in split_messages if len(line) > 1}
        if "noinit" in kinds:
            await self._lose(battle)
            return
        again = battle is not None and self.rejoins.begin(battle, kinds)
        lines = [line for line in split_messages if line[1:2] not in (["error"], ["bigerror"])]
        try:
            await super()._handle_battle_message(lines)
        except OtherRules as error:
            self._give_up(self._battles[tag], str(error))
        except UNREADABLE as error:
            battle = self._battles.get(tag)
            if battle is None:
                raise
            self._give_up(battle, repr(error))
        if battle is not None and again and not battle.finished:
            self.rejoins.end(battle)
        for line in split_messages:
            if battle is None or battle.finished or len(line) < 3:
                continue
            if line[1] == "error":
                await self._take_error(battle, line[2])
            elif line[1] == "bigerror" and "simulator process crashed" in line[2]:
                self._guard.trouble(f"The server's simulator crashed in {battle.battle_tag}.")

    async def _lose(self, battle: RoomBattle | None) -> None:
        if battle is None:  # it began and ended while the connection was lost
            self._challenges.nothing_began.set()
        elif not battle.finished:
            self.rejoins.lose(battle)
            await self._battle_count_queue.get()
            self._battle_count_queue.task_done()
            self._retire(battle)

    async def _take_error(self, battle: RoomBattle, words: str) -> None:
        """A refused choice; `[Unavailable choice]` is followed by a new request, `[Invalid choice]` is not."""
        if words.startswith("[Unavailable choice]"):
            battle.refusal = "unavailable"
        elif words.startswith("[Invalid choice]") and not words.startswith(NOTHING_OPEN):
            battle.refusal = "invalid"
            await self._handle_battle_request(battle)

    def _battle_finished_callback(self, battle: AbstractBattle) -> None:
        assert isinstance(battle, RoomBattle)
        if not battle.given_up:
            counts = self.early if battle.ended_early else self.tally
            counts["wins" if battle.won else "losses" if battle.lost else "ties"] += 1
        end = battle.finish()
        if end is not None:
            self._bridge.tell(end)
        self._retire(battle)

    def _retire(self, battle: AbstractBattle) -> None:
        """Release the slot of a finished battle, and drop the oldest finished battle."""
        self._challenges.room_for_more.release()
        self._finished.append(battle.battle_tag)
        if len(self._finished) > FINISHED_KEPT:
            del self._battles[self._finished.popleft()]

    async def _handle_challenge_request(self, split_message: list[str]) -> None:
        challenger, challenged = map(user_id, split_message[2:4])
        if split_message[4].strip() == "/challenge":  # a challenge is over, accepted or not
            if self._challenges.partner in (challenger, challenged):
                self._challenges.challenge_over.set()
        elif challenger == user_id(self.username):
            self._challenges.partner = challenged
        elif len(split_message) > 5 and same_format(split_message[5], self.format):
            await self._challenge_queue.put(split_message[2].strip())

    def _give_up(self, battle: RoomBattle, why: str) -> None:
        """What the server says of a battle cannot be followed: forfeit it, once."""
        if not battle.finished and not battle.given_up:
            self.unreadable.append(f"{battle.battle_tag}: {why}")
            self._leave(battle)

    def _forfeit(self, battle: RoomBattle) -> None:
        self.given_up += 1
        self._leave(battle)

    def _leave(self, battle: RoomBattle) -> None:
        battle.given_up = True
        self._tasks.add(POKE_LOOP.create_task(self.ps_client.send_message("/forfeit", battle.battle_tag)))
