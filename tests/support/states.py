"""poke-env's state of a battle, slot by slot, as something that can be compared."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from poke_env.battle.abstract_battle import AbstractBattle
from poke_env.battle.battle import Battle
from poke_env.battle.double_battle import DoubleBattle
from poke_env.battle.move import Move, MoveSet
from poke_env.battle.pokemon import Pokemon
from simul.env_worker.games.pokemon.battle_view.corrections import CORRECTED, Corrections
from simul.env_worker.games.pokemon.battle_view.counters import Counters
from simul.env_worker.games.pokemon.battle_view.protocol_lines import SKIPPED_LINES
from simul.env_worker.games.pokemon.battle_view.seat_battle import SeatBattle, SeatDoubleBattle, SeatView

from tests.support.pokemon.recorded import RecordedSeat

# Neither the encoder nor the bots read these: the clock, the players' names, the end of the battle, the log.
OF_THE_ROOM = {
    *("_anybody_inactive", "_battle_tag", "_finished", "_format", "_opponent_rating", "_opponent_username", "_players"),
    *("_player_username", "_rating", "_reconnected", "_replay_data", "_save_replays", "_won", "in_team_preview"),
    *("logger", "rules"),
}
# A policy's seat reads them from the request, not from the battle (the bots' do so by `parse_request`).
OF_THE_REQUEST = {
    *("_available_moves", "_available_switches", "_can_dynamax", "_can_mega_evolve", "_can_tera", "_can_z_move"),
    *("_commanding", "_force_switch", "_last_request", "_max_team_size", "_maybe_trapped", "_reviving", "_teampreview"),
    *("_trapped", "_wait"),
}
MOVE_SLOTS = [name for name in Move.__slots__ if name != "_dynamaxed_move"]  # made when somebody asks for it


def slots_of(battle: AbstractBattle) -> set[str]:
    """Everything that a battle of this class has."""
    return {name for kind in type(battle).__mro__ for name in getattr(kind, "__slots__", ())}


def state_of(battle: AbstractBattle, names: Iterable[str]) -> dict[str, Any]:
    """The named slots. Own Pokemon come in the order of their names: ours are in that of the first request."""
    state = {name: _plain(getattr(battle, name, None)) for name in names}
    state["_team"] = sorted(state["_team"])
    for mon in state["_teampreview_opponent_team"]:
        del mon["_current_hp"], mon["_max_hp"]  # the stock class leaves them without; ours are full
    return state


def _plain(value: Any) -> Any:
    if isinstance(value, Pokemon):
        state = {name: _plain(getattr(value, name, None)) for name in Pokemon.__slots__}
        # Whom a two-turn move aims at: another Pokemon, and so on without end.
        return {**state, "_preparing_target": bool(value._preparing_target)}
    if isinstance(value, Move):
        return [getattr(value, name) for name in MOVE_SLOTS]
    if isinstance(value, MoveSet):
        return {name: _plain(part) for name, part in vars(value).items()}
    if isinstance(value, dict) and any(isinstance(part, Pokemon | Move) for part in value.values()):
        return [(key, _plain(part)) for key, part in value.items()]
    if isinstance(value, list):
        return [_plain(part) for part in value]
    return value


def differences(ours: dict[str, Any], stock: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    """What differs: name -> (ours, poke-env's)."""
    return {name: (ours[name], stock[name]) for name in stock if ours[name] != stock[name]}


def compare_with_stock(seat: RecordedSeat, *, bot: bool, every: int = 1) -> Iterator[dict[str, tuple[Any, Any]]]:
    """What differs, at each n-th request, between what a policy's seat (or a bot's) keeps and poke-env's battle."""
    doubles = "double" in seat.format or "vgc" in seat.format
    ours: SeatView = (SeatDoubleBattle if doubles else SeatBattle)(seat.role, seat.gen)
    stock = (DoubleBattle if doubles else Battle)("battle", seat.role, None, gen=seat.gen)
    stock._player_role = seat.role
    corrections = Corrections(stock, Counters(), lambda changed: None)
    names = slots_of(stock) - OF_THE_ROOM - (set() if bot else OF_THE_REQUEST)
    for number, (lines, request) in enumerate(seat.records):
        if request is None:
            continue
        ours.feed(lines)
        if bot:
            ours.parse_request(request)
        else:
            ours.sync(request)
        for line in lines.split("\n"):
            event = line.split("|")
            if len(event) > 1 and event[1] not in SKIPPED_LINES:
                if event[1] in CORRECTED:
                    corrections.read(event, stock.parse_message)
                else:
                    stock.parse_message(event)
        corrections.request(request, stock.parse_request)
        if number % every == 0:
            yield differences(state_of(ours, names), state_of(stock, names))
    assert ours.parse_errors == {}
