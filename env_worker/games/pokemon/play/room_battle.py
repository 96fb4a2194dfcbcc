"""One battle room: poke-env's `Battle` keeps its log and result; its seat is told lines and requests as in training."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from poke_env.battle.battle import Battle
from poke_env.ps_client import PSClient

from simul.common.errors import SimulError
from simul.common.protocol.decisions import Decision, start_flags
from simul.env_worker.games.pokemon.formats.spec import rules_alike
from simul.env_worker.games.pokemon.host.host_messages import BattleEnd
from simul.env_worker.games.pokemon.opponents.stock_battle import stock_battle
from simul.env_worker.games.pokemon.play.online_seat import OnlineSeat
from simul.env_worker.games.pokemon.play.room_follower import RoomFollower
from simul.env_worker.games.pokemon.replays.battle_replays import write_replay
from simul.env_worker.games.pokemon.showdown.room import ROOM_ONLY, SEATS, early_end, number_of
from simul.env_worker.games.pokemon.source.own_code import OwnCode
from simul.env_worker.games.pokemon.source.own_seat import OwnSeat
from simul.env_worker.games.pokemon.tables.tracker_tables import SKIPPED_LINES
from simul.env_worker.source import ReplayPlayer

CUSTOM_RULES = re.compile(r"custom rules?:</strong></summary> (.*)</details>")  # in a `raw` line before the start
MOST_TEXT = 16 << 20  # characters of a battle's lines; a battle of a thousand turns has less than one million


class OtherRules(SimulError):
    """A battle with other custom rules than the run's. Caught by the agent, which forfeits it."""


class RoomBattle(Battle):
    """A battle in a server's room.

    Attributes:
        seat: ours, from the first request on.
        given_up: True = forfeited because play was stopped.
        ended_early: `inactivity` or `forfeit` where one of them decided the battle, else empty.
        refusal: `unavailable` or `invalid` where the last choice was refused, else empty.
        heard: True = after a rejoin, the server confirmed that it has our choice.
    """

    def __init__(
        self, tag: str, username: str, gen: int, *, env: int, policy: str, greedy: bool, replays: str,
        rooms: RoomFollower, replay_player: ReplayPlayer = "own", own: OwnCode | None = None, doubles: bool = False,
        rules: tuple[str, ...] = (),
    ) -> None:  # fmt: skip
        logger = logging.getLogger("simul.battle")
        super().__init__(tag, username, logger, gen, save_replays=replays)
        self.seat: OnlineSeat | None = None
        self.refusal = ""
        self.given_up = False
        self.ended_early = ""
        self.heard = False
        self.env = env
        self._replay_player: ReplayPlayer = replay_player
        self._policy = policy
        self._greedy = greedy
        self._rooms = rooms
        self._own = own
        self._doubles = doubles
        self._rules = rules  # custom ones that the run plays
        self._told_rules = ""  # the same of the battle, comma-separated
        self._log: list[str] = []  # the battle's lines
        self._read = 0  # number of its lines that the seat has read
        self._again: list[str] | None = None  # the lines again, during a rejoin
        self._text = 0  # characters of the lines that are kept
        self._answered: tuple[int, str] | None = None  # rqid, the command

    def save_replay(self, file_path: str | Path) -> Path:
        """Write the log and its page; called by poke-env when the battle is over. Raises ConfigError."""
        page = Path(file_path)
        names = (self._player_username, self._opponent_username or "Opponent")
        log = "\n".join(self._build_replay_events()) + "\n"
        write_replay(page.with_suffix(""), names, log, self._replay_player)
        return page

    def parse_message(self, split_message: list[str]) -> None:
        """Keep a line for the replay and for the seat. Raises ValueError where there is no end of them, OtherRules."""
        self._text += sum(map(len, split_message))
        if self._text > MOST_TEXT:
            raise ValueError(f"more than {MOST_TEXT >> 20} MiB of text")
        if split_message[1] == "player" and len(split_message) > 4:
            super().parse_message(split_message)  # who plays: for the replay
            return
        if split_message[1] == "turn":
            self._turn = int(split_message[2])
        elif split_message[1] == "-message":
            names = [player["username"] for player in self._players]
            self.ended_early = early_end(split_message[2], names) or self.ended_early
        elif split_message[1] == "raw" and (found := CUSTOM_RULES.search(split_message[2])):
            self._told_rules = found[1]
        elif split_message[1] in ("teampreview", "start"):  # the rules have been told
            self._check_rules()
        self._replay_data.append(split_message)
        if split_message[0] == "" and split_message[1] not in ROOM_ONLY and split_message[1] not in SKIPPED_LINES:
            (self._log if self._again is None else self._again).append("|".join(split_message))

    def parse_request(self, request: dict[str, Any], strict_battle_tracking: bool = False) -> None:
        """Keep a request until it is answered. Raises UNREADABLE where no answer can name it."""
        if not request.get("wait"):
            number_of(request)
        self._last_request = request
        self._wait = bool(request.get("wait"))
        self._teampreview = bool(request.get("teamPreview"))
        self._player_role = request["side"]["id"]
        if self.seat is None:
            self.seat = self._new_seat(0)

    def _check_rules(self) -> None:
        if rules_alike(self._told_rules) != self._rules and not self.given_up:
            ours, theirs = ", ".join(self._rules) or "none", self._told_rules or "none"
            raise OtherRules(f"its custom rules are not the run's (the battle's: {theirs}; the run's: {ours})")

    def join_again(self) -> None:
        """Until `joined` the server sends the whole log again."""
        self._again = []
        self._text = 0
        self._replay_data.clear()

    def joined(self) -> Decision | None:
        """The log is complete; the seat reads what is new in it.

        Where it differs from the known log, a new seat reads all of it; returns the old session's end then.
        """
        again, self._again = self._again or [], None
        same = again[: len(self._log)] == self._log
        self._log = again
        if same or self.seat is None:
            return None
        end = self.seat.aborted()
        self.seat.close()
        self.seat = self._new_seat(self.seat.episode + 1)
        self._read = 0
        return end

    def repeated(self) -> str | None:
        """The command that already answered the open request, None for none; empty where the server has it."""
        heard, self.heard = self.heard, False
        if self.refusal or self._answered is None or self._answered[0] != self._last_request["rqid"]:
            return None
        return "" if heard else self._answered[1]

    async def decide(self) -> Decision | None:
        """The decision of the open request; None where every choice was refused. Raises RoomLost, OwnCodeError."""
        seat, request = self.seat, self._last_request
        assert seat is not None
        refusal, self.refusal = self.refusal, ""
        if refusal == "invalid":
            return await seat.refused()
        seat.redo = False
        if refusal == "unavailable":
            seat.unavailable()
        lines = "\n".join(self._log[self._read :])
        self._read = len(self._log)
        return await seat.see(request["rqid"], lines, request)

    async def order(self, request_number: int, action: int) -> str | Decision:
        """The command for an action, bound to its request and empty where that is over; or a next decision.

        Raises RoomLost, and EnvError for an action that is not legal.
        """
        if self.seat is None:
            return ""
        answer = await self.seat.order(request_number, action)
        if not isinstance(answer, str) or not answer:
            return answer
        command = f"/choose {answer}|{request_number}"
        self._answered = (request_number, command)
        return command

    def finish(self) -> Decision | None:
        """The end of our session; frees what is large."""
        outcome = 1 if self.won else -1 if self.lost else 0
        end = BattleEnd(0, None, self._turn, "win" if outcome else "tie")
        decision = self.seat.terminated(outcome, end) if self.seat is not None else None
        self._forget()
        return decision

    def vanish(self) -> Decision | None:
        """The server has dropped the battle: the end of our session."""
        self._finished = True
        decision = self.seat.aborted() if self.seat is not None else None
        self._forget()
        return decision

    def _forget(self) -> None:
        if self.seat is not None:
            self.seat.close()
        self.seat = None
        self._replay_data.clear()
        self._log.clear()

    def _new_seat(self, episode: int) -> OnlineSeat:
        seat, flags = SEATS.index(self._player_role or ""), start_flags(record=False, greedy=self._greedy)
        own = None
        if self._own is not None:
            battle = stock_battle(f"p{seat + 1}", self.gen, doubles=self._doubles, tag=self.battle_tag)
            own = OwnSeat(self._own, seat, battle)
        return OnlineSeat(self._rooms, self.env, seat, episode, self._policy, flags, own)


class Rejoins:
    """Rejoins one player's battles after a lost connection. Lives on poke-env's event loop.

    Attributes:
        rejoined: battles whose room was joined again.
        started_over: of those, battles whose log differed, so that the policy started a new session.
        vanished: battles that the server had dropped.
    """

    def __init__(self, tell: Callable[[Decision], None]) -> None:
        """`tell` takes the ends of sessions."""
        self.rejoined = self.started_over = self.vanished = 0
        self._tell = tell

    async def join(self, client: PSClient, rooms: Iterable[str]) -> None:
        """Join `rooms` after a reconnect."""
        for room in rooms:
            await client.send_message(f"/join {room}")

    def begin(self, battle: RoomBattle, kinds: set[str]) -> bool:
        """Before a room's message with lines of these `kinds` is read. True = it is the whole log again."""
        battle.heard = "sentchoice" in kinds
        if "init" in kinds:
            battle.join_again()
        return "init" in kinds

    def end(self, battle: RoomBattle) -> None:
        """The whole log has been read."""
        self.rejoined += 1
        end = battle.joined()
        if end is not None:
            self.started_over += 1
            self._tell(end)

    def lose(self, battle: RoomBattle) -> None:
        """The room is gone: the battle ends without a result."""
        self.vanished += 1
        end = battle.vanish()
        if end is not None:
            self._tell(end)
