"""The blocks of a Pokemon's moves in doubles: what each is, and what it would do to either foe."""

from __future__ import annotations

from simul.env_worker.games.pokemon.battle_view.seat_battle import Request
from simul.env_worker.games.pokemon.doubles import layout
from simul.env_worker.games.pokemon.doubles.actions import FIRST_MOVE, PER_MOVE, SlotChoices
from simul.env_worker.games.pokemon.doubles.matchups import Matchups
from simul.env_worker.games.pokemon.doubles.pokemon_features import Fighter, Standers
from simul.env_worker.games.pokemon.encoding import fields
from simul.env_worker.games.pokemon.encoding import layout as singles
from simul.env_worker.games.pokemon.encoding.field_state import Scene
from simul.env_worker.games.pokemon.encoding.move_features import offered_move, present_numbers, static_numbers, swing

_STARTS = {field.name: singles.width(fields.MOVE[:i]) for i, field in enumerate(fields.MOVE)}
_AGAINST = [_STARTS[name] for name in layout.AGAINST_NAMES]
_ALONE = [place for place in range(singles.MOVE_WIDTH) if place not in _AGAINST]
_NO_MOVE = [0.0] * layout.MOVE_WIDTH


class MoveBlocks:
    """Writes `move.*` and `partner_move.*`."""

    def __init__(self, matchups: Matchups, gen: int) -> None:
        self._matchups = matchups
        self._gen = gen

    def numbers(
        self, request: Request, slot: int, choices: SlotChoices, scene: Scene, user: Fighter | None, foes: Standers
    ) -> list[float]:
        """All four blocks of who stands in a slot; zeros where nobody does, or no move is asked for."""
        if user is None or "active" not in request:
            return _NO_MOVE * singles.MOVE_SLOTS
        numbers: list[float] = []
        known = request["side"]["pokemon"][slot]["moves"]
        can_tera = "canTerastallize" in request["active"][slot]
        blows = [self._matchups.blows(user.profile, foe.profile.body) if foe else None for foe in foes]
        for k in range(singles.MOVE_SLOTS):
            entry = choices.move_entries[k]
            if k >= len(known) and entry is None:
                numbers += _NO_MOVE
                continue
            name = known[k] if k < len(known) else ""
            info = user.profile.moves[k] if k < len(user.profile.moves) else None
            first = FIRST_MOVE + PER_MOVE * k
            usable = int(any(choices.mask[first : first + PER_MOVE]))
            rows = []
            for foe, of_foe in zip(foes, blows):
                blow = of_foe[k] if of_foe and k < len(of_foe) else None
                against = swing(scene, user.factors.strength, foe.factors.strength, foe.mon) if foe else None
                move = offered_move(self._gen, (name, info, blow), entry)
                present = present_numbers(move, entry, against, usable, can_tera)
                rows.append((*static_numbers(*move[:2]), *present))
            alone = rows[0] if foes[0] else rows[1]
            numbers += [alone[place] for place in _ALONE]
            numbers += [row[place] for row in rows for place in _AGAINST]
        return numbers
