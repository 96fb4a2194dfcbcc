"""What a request says of the own team, brought into poke-env's Pokemon."""

from __future__ import annotations

from typing import Any

from poke_env.battle.pokemon import Pokemon

from simul.env_worker.games.pokemon.battle_view.common_lines import set_hp

Entry = dict[str, Any]  # one of request["side"]["pokemon"]


def put_in_order(team: dict[str, Pokemon], positions: dict[str, int]) -> None:
    """A lead in disguise was named before the request by another's name: the request's order is the team's."""
    ordered = sorted(team.items(), key=lambda item: positions.get(item[0], len(positions)))
    team.clear()
    team.update(ordered)


def update_from_entry(mon: Pokemon, entry: Entry) -> None:
    """`update_from_request`, without looking at the moves again where they are the same as last time."""
    last = mon._last_request
    moves = mon._moves
    if not last or last["moves"] != entry["moves"] or moves._transform_moves is not None or moves._mimic_move:
        mon.update_from_request(entry)
        return
    mon._active = entry["active"]
    if mon.ability is None:
        mon.ability = entry["baseAbility"]
    if "ability" in entry and entry["ability"] != entry["baseAbility"]:
        mon.temporary_ability = entry["ability"]
    mon._last_request = entry
    set_hp(mon, entry["condition"], store=True)
    mon._name = entry["ident"][4:]
    mon._item = entry["item"]
    mon._update_from_details(entry["details"])
    if "stats" in entry:
        mon._stats.update(entry["stats"])
