"""Turns what a battle backend reports into decisions and ends of sessions; a refused action is asked for again."""

from __future__ import annotations

from collections.abc import Iterable

from simul.common.protocol.decisions import Decision
from simul.env_worker.games.pokemon.host.backend import BattleBackend
from simul.env_worker.games.pokemon.host.host_messages import BattleEnd, CommandError, HostTick, SeatRecord, SeatRow
from simul.env_worker.games.pokemon.opponents.player_keeper import PlayerAnswer, PlayerFailure
from simul.env_worker.games.pokemon.source.battle_pool import (
    OPPONENT_ERROR,
    OWN_CODE,
    SIMULATOR_CRASHED,
    BattlePool,
)
from simul.env_worker.games.pokemon.source.matchmaking import LiveBattle
from simul.env_worker.games.pokemon.source.own_code import OwnCodeError
from simul.env_worker.games.pokemon.source.scoreboard import Scoreboard
from simul.env_worker.games.pokemon.source.scripted_turns import ScriptedTurns
from simul.env_worker.games.pokemon.source.seats import HostedBotSeat, OwnPlayerSeat, PolicySeat, ScriptedSeat


class BackendEvents:
    """Applies a backend's reports to the battles of a pool. Battles beyond `max_turns` are truncated."""

    def __init__(self, pool: BattlePool, score: Scoreboard, turns: ScriptedTurns, max_turns: int) -> None:
        self._battles = pool
        self._score = score
        self._turns = turns
        self._max_turns = max_turns

    def apply(self, backend: BattleBackend, tick: HostTick) -> list[Decision]:
        """Decisions and ends that a tick brings; requests to scripted seats are queued (`ScriptedTurns`).

        Raises FailingEnvError where the user's code fails in too many battles, or too many crash.
        """
        decisions: list[Decision] = []
        for error in tick.errors:
            self._apply_error(backend, error, decisions)
        for record in tick.records:
            self._apply_record(backend, record, decisions)
        for row in tick.rows:
            self._apply_row(backend, row, decisions)
        if tick.rows or tick.records:
            decisions = self._truncate_long(backend, decisions)
        self._score.parse_errors.update(tick.parse_errors)
        for played in tick.played:
            self._score.count_played(played)
        for end in tick.ended:
            self._apply_end(backend, end, decisions)
        if self._battles.replays is not None:
            for number, log in tick.logs:
                self._battles.replays.save(number, log)
            for end in tick.ended:
                self._battles.replays.forget(end.battle)
        return decisions

    def abort(self, backend: BattleBackend | None, battle: LiveBattle, cause: str, ends: list[Decision] | None) -> None:
        """End a battle as ABORTED, on the backend too; its seats' ends go into `ends` unless that is None."""
        self._battles.abort(battle, cause, ends)
        if backend is not None:
            backend.stop_battle(battle.number)

    def fail(
        self, backend: BattleBackend, battle: LiveBattle, cause: str, what: Exception | str, ends: list[Decision],
        detail: str = "",
    ) -> None:  # fmt: skip
        """End a battle because of the user's own code, on the backend too; see `BattlePool.fail`."""
        backend.stop_battle(battle.number)
        self._battles.fail(battle, cause, what, ends, detail)

    def apply_players(
        self, backend: BattleBackend, said: Iterable[PlayerAnswer | PlayerFailure], name: str
    ) -> list[Decision]:
        """Pass on what the own player `name` chose; the ends of battles in which it failed."""
        ends: list[Decision] = []
        for each in said:
            battle = self._battles.battles.get(each.battle)
            if battle is None:
                continue
            if isinstance(each, PlayerFailure):
                self.fail(backend, battle, OPPONENT_ERROR, f"the opponent {name}: {each.what}", ends)
                continue
            seat = battle.seats[each.seat]
            assert isinstance(seat, OwnPlayerSeat)
            seat.take(each)
            self._score.scripted_decisions += 1
            backend.choose(each.battle, each.seat, each.request_number, each.choice)
        return ends

    def _apply_row(self, backend: BattleBackend, row: SeatRow, decisions: list[Decision]) -> None:
        battle = self._battles.battles.get(row.battle)
        if battle is None:
            return
        seat = battle.seats[row.seat]
        assert isinstance(seat, PolicySeat)
        self._score.previews += row.pick == 1 and not seat.redo
        try:
            decisions.append(seat.decide(row))
        except OwnCodeError as error:
            self.fail(backend, battle, OWN_CODE, error, decisions)
            return
        self._score.decisions += 1

    def _apply_record(self, backend: BattleBackend, record: SeatRecord, decisions: list[Decision]) -> None:
        battle = self._battles.battles.get(record.battle)
        if battle is None:
            return  # already over here
        seat = battle.seats[record.seat]
        if isinstance(seat, PolicySeat):
            self._read(backend, battle, seat, record, decisions)
            return
        if record.request is None:
            return  # the last lines: a scripted seat does not need them
        self._score.previews += "teamPreview" in record.request
        if isinstance(seat, ScriptedSeat):
            self._turns.add_request(record)
        elif isinstance(seat, OwnPlayerSeat):
            seat.ask(record)

    def _read(
        self, backend: BattleBackend, battle: LiveBattle, seat: PolicySeat, record: SeatRecord,
        decisions: list[Decision],
    ) -> None:  # fmt: skip
        """What the user's code reads of a policy's seat; its row follows."""
        if seat.own is None:
            return
        try:
            seat.own.read(record.lines, record.request)
        except OwnCodeError as error:
            self.fail(backend, battle, OWN_CODE, error, decisions)

    def _apply_error(self, backend: BattleBackend, error: CommandError, decisions: list[Decision]) -> None:
        battle = self._battles.battles.get(error.battle) if error.battle is not None else None
        if battle is not None and error.kind == "crashed":
            self._battles.fail(battle, SIMULATOR_CRASHED, f"a battle crashed: {error.message}", decisions)
            return
        if battle is None or error.seat is None or error.kind not in ("unavailable", "invalid", "exhausted"):
            return
        seat = battle.seats[error.seat]
        if isinstance(seat, HostedBotSeat):
            return  # the host tells the bot
        if isinstance(seat, OwnPlayerSeat):
            if error.kind == "invalid":  # after one that is unavailable another request follows
                what = f"the opponent {seat.keeper.name}: its choice is invalid"
                detail = f"{seat.choice!r}, to which the simulator says: {error.message}"
                self.fail(backend, battle, OPPONENT_ERROR, what, decisions, detail)
            return
        if isinstance(seat, ScriptedSeat):
            if error.kind == "invalid":
                choice = seat.answer_again()
                self._score.scripted_defaults += choice.defaulted
                self._score.replace_scripted("invalid", error.message)
                backend.choose(battle.number, error.seat, seat.request_number, choice.command)
            return
        if error.kind == "exhausted":
            self.abort(backend, battle, "no_valid_choice", decisions)
            return
        self._score.redos += 1
        seat.redo = True  # a new row follows
        if error.kind == "invalid":
            self._score.invalid_choices += 1
            self._score.events.append(f"an allowed choice was refused: {error.message}")

    def _apply_end(self, backend: BattleBackend, end: BattleEnd, decisions: list[Decision]) -> None:
        battle = self._battles.battles.get(end.battle)
        if battle is None:
            return
        if end.reason == "truncated":
            self._battles.finish(battle, None, self._max_turns)
            return
        if end.reason not in ("win", "tie", "turn_limit"):
            self._battles.abort(battle, f"simulator_{end.reason}", decisions)
            return
        try:
            ends = [seat.terminated(_outcome(end.winner_seat, seat.seat), end) for seat in battle.policy_seats]
        except OwnCodeError as error:
            self.fail(backend, battle, OWN_CODE, error, decisions)
            return
        self._score.turn_limit_ties += end.reason == "turn_limit"
        decisions += [decision for decision in ends if decision is not None]
        self._battles.finish(battle, _outcome(end.winner_seat, battle.learner_seat), end.turns)

    def _truncate_long(self, backend: BattleBackend, decisions: list[Decision]) -> list[Decision]:
        """End battles beyond the turn limit; decisions they just made become their final observations."""
        over = [battle for battle in self._battles.battles.values() if battle.turn > self._max_turns]
        for battle in over:
            ours = [d for d in decisions if d.env == battle.env and d.episode == battle.episode]
            decisions = [d for d in decisions if d.env != battle.env or d.episode != battle.episode]
            for seat in battle.policy_seats:
                carried = sum(seat.withdraw(decision) for decision in ours if decision.seat == seat.seat)
                end = seat.truncated()
                if end is not None:
                    end.reward += carried
                    decisions.append(end)
            self._battles.finish(battle, None, self._max_turns)
            backend.stop_battle(battle.number)
        return decisions


def _outcome(winner: int | None, seat: int) -> int:
    """1 won, 0 tied, -1 lost."""
    return 0 if winner is None else 1 if winner == seat else -1
