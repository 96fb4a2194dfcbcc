"""One battle room: poke-env's `Battle` keeps its log and result; what is seen and asked is read as in training."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any, cast

from poke_env.battle.battle import Battle
from poke_env.ps_client import PSClient

from simul.common.protocol.decisions import Decision, start_flags
from simul.env_worker.games.pokemon.battle_view.protocol_lines import SKIPPED_LINES
from simul.env_worker.games.pokemon.doubles.seat import DoubleSeat
from simul.env_worker.games.pokemon.encoding.layout import PLAIN, Extras
from simul.env_worker.games.pokemon.simulator.battle_host import BattleHost
from simul.env_worker.games.pokemon.simulator.host_messages import SimEnd
from simul.env_worker.games.pokemon.source.rewards import RewardWeights
from simul.env_worker.games.pokemon.source.seats import ReadingSeat

# What a server adds to the simulator's protocol: chat, clocks, boxes. None of it is about the battle.
ROOM_ONLY = frozenset(
    ("B", "N", "C", "J", "L", "c", "j", "l", ":", "c:", "b", "battle", "users", "noinit", "unlink", "notify",
     "tempnotify", "tempnotifyoff", "uhtmlchange", "fieldhtml", "controlshtml", "selectorhtml", "pagehtml", "refresh",
     "expire", "usercount", "inputlog", "bigerror", "askreg", "warning")
)  # fmt: skip
# Answers to a choice that came too late or twice; the request it was about is not open any more.
NOTHING_OPEN = ("[Invalid choice] Can't do anything", "[Invalid choice] Sorry", "[Invalid choice] There's nothing")
SEATS = ("p1", "p2")


class OnlineSeat(ReadingSeat):
    """A seat whose session can begin anew in the middle of a battle: when the inference server forgot it."""

    def start_over(self) -> Decision:
        """The open request once more, as the first decision of a new session; the policy's memory is lost."""
        self.episode += 1
        self.step = -1
        self.redo = False
        return self._encoded()


class OnlineDoubleSeat(OnlineSeat, DoubleSeat):
    """The same in doubles: of two slots, the one that decides begins."""


class RoomBattle(Battle):
    """A battle in a server's room.

    Attributes:
        seat: ours, from the first request on.
        given_up: True = we forfeit it because we were told to stop.
        refusal: `unavailable` or `invalid` where the last choice was refused, else empty.
        heard: True = the server says that it has our choice (after we have joined again).
    """

    def __init__(
        self, tag: str, username: str, gen: int, *, env: int, policy: str, greedy: bool, replays: str,
        extras: Extras = PLAIN, doubles: bool = False,
    ) -> None:  # fmt: skip
        logger = logging.getLogger("simul.battle")
        super().__init__(tag, username, logger, gen, save_replays=replays)
        self.seat: OnlineSeat | None = None
        self.refusal = ""
        self.given_up = False
        self.heard = False
        self.env = env
        self._policy = policy
        self._greedy = greedy
        self._extras = extras
        self._kind = OnlineDoubleSeat if doubles else OnlineSeat
        self._log: list[str] = []  # all that tells of the battle
        self._read = 0  # so many of its lines has the seat been told
        self._again: list[str] | None = None  # the log once more, while we join again
        self._command = ""
        self._answered: tuple[int, str] | None = None  # rqid, the server's words

    def parse_message(self, split_message: list[str]) -> None:
        """Keep a line for the replay and for the seat."""
        if split_message[1] == "player" and len(split_message) > 4:
            super().parse_message(split_message)  # who plays: for the replay
            return
        if split_message[1] == "turn":
            self._turn = int(split_message[2])
        self._replay_data.append(split_message)
        if split_message[0] == "" and split_message[1] not in ROOM_ONLY and split_message[1] not in SKIPPED_LINES:
            (self._log if self._again is None else self._again).append("|".join(split_message))

    def parse_request(self, request: dict[str, Any], strict_battle_tracking: bool = False) -> None:
        """Keep a request until it is answered."""
        self._last_request = request
        self._wait = bool(request.get("wait"))
        self._teampreview = bool(request.get("teamPreview"))
        self._player_role = request["side"]["id"]
        if self.seat is None:
            self.seat = self._new_seat(0)

    def join_again(self) -> None:
        """From here to `joined` the server tells all that has happened once more."""
        self._again = []
        self._replay_data.clear()

    def joined(self) -> Decision | None:
        """The log is complete; what is new in it is for the seat.

        Where it is not the battle that the seat knows, a new one reads all of it; returns the old session's end then.
        """
        again, self._again = self._again or [], None
        same = again[: len(self._log)] == self._log
        self._log = again
        if same or self.seat is None:
            return None
        end = self.seat.aborted()
        self.seat = self._new_seat(self.seat.episode + 1)
        self._read = 0
        return end

    def repeated(self) -> str | None:
        """The server's words for the open request where they have been found already; empty where it has them."""
        heard, self.heard = self.heard, False
        if self.refusal or self._answered is None or self._answered[0] != self._last_request["rqid"]:
            return None
        return "" if heard else self._answered[1]

    def decide(self) -> Decision | None:
        """What the open request asks of the policy; None where every choice was refused."""
        seat, request = self.seat, self._last_request
        assert seat is not None
        refusal, self.refusal = self.refusal, ""
        if refusal == "invalid":
            return seat.refuse()
        seat.redo = refusal == "unavailable"
        self._catch_up(request)
        return seat.decide(request["rqid"], request)

    def order(self, action: int) -> str:
        """The server's words for an action, bound to the request it answers; empty where that asks for more."""
        assert self.seat is not None
        self._command = ""
        if not self.seat.answer(cast(BattleHost, self), 0, action):  # of a host, a seat needs `choose` alone
            raise ValueError(f"action {action} is not among the legal ones")
        return self._command

    def choose(self, battle: int, seat: int, request_number: int, choice: str) -> None:
        """What a seat tells its simulator: here it becomes a message to the server."""
        self._command = f"/choose {choice}|{request_number}"
        self._answered = (request_number, self._command)

    def finish(self) -> Decision | None:
        """The end of our session; frees what is large."""
        outcome = 1 if self.won else -1 if self.lost else 0
        end = SimEnd(0, None, self._turn, "win" if outcome else "tie")
        decision = self.seat.terminated(outcome, end) if self.seat is not None else None
        self._forget()
        return decision

    def vanish(self) -> Decision | None:
        """The server does not know the battle any more: the end of our session."""
        self._finished = True
        decision = self.seat.aborted() if self.seat is not None else None
        self._forget()
        return decision

    def _forget(self) -> None:
        self.seat = None
        self._replay_data.clear()
        self._log.clear()

    def _new_seat(self, episode: int) -> OnlineSeat:
        return self._kind(
            self.env, SEATS.index(self._player_role or ""), episode, self.gen, self._policy,
            start_flags(record=False, greedy=self._greedy), RewardWeights(), self._extras,
        )  # fmt: skip

    def _catch_up(self, request: dict[str, Any]) -> None:
        assert self.seat is not None
        self.seat.read_lines("\n".join(self._log[self._read :]), request)
        self._read = len(self._log)


class Rejoins:
    """One player's. Lives on poke-env's event loop.

    Attributes:
        rejoined: battles whose room was joined again.
        started_over: of those, such that were not as we knew them: the policy began anew.
        vanished: battles that the server did not know any more.
    """

    def __init__(self, tell: Callable[[Decision], None]) -> None:
        """`tell` takes the ends of sessions."""
        self.rejoined = self.started_over = self.vanished = 0
        self._tell = tell

    async def join(self, client: PSClient, rooms: Iterable[str]) -> None:
        """We are logged in again."""
        for room in rooms:
            await client.send_message(f"/join {room}")

    def begin(self, battle: RoomBattle, kinds: set[str]) -> bool:
        """A room's message with lines of these `kinds` is about to be read: True = it is the whole log once more."""
        battle.heard = "sentchoice" in kinds
        if "init" in kinds:
            battle.join_again()
        return "init" in kinds

    def end(self, battle: RoomBattle) -> None:
        """That log has been read."""
        self.rejoined += 1
        end = battle.joined()
        if end is not None:
            self.started_over += 1
            self._tell(end)

    def lose(self, battle: RoomBattle) -> None:
        """There is no such room any more: not won, not lost, and nothing more will come of it."""
        self.vanished += 1
        end = battle.vanish()
        if end is not None:
            self._tell(end)
