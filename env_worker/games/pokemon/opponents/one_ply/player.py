"""The one-ply damage bot: picks the attack that does most now by the damage formula, without search.

It reads its own seat's view, picks among the mask's legal actions, and answers by slot.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

from simul.env_worker.games.pokemon.battle_view.seat_battle import Entry, Request, SeatView
from simul.env_worker.games.pokemon.doubles.actions import Meaning, SlotChoices, meaning, slot_choices
from simul.env_worker.games.pokemon.encoding.actions import FIRST_MOVE, Choices, legal_choices, picks_wanted
from simul.env_worker.games.pokemon.opponents.one_ply.combatants import MOVES, Combatant, View, read_view, shown_foes
from simul.env_worker.games.pokemon.opponents.one_ply.scoring import OnePlyMatchup, Rating, matchups
from simul.env_worker.games.pokemon.opponents.scripted import ScriptedChoice

TERA_WORTH = 0.4  # terastallizing must add this much: a knock-out, or 40% of a foe's hp
BONUS = 0.0005  # mega evolution and Dynamax win ties
HEALTHY = 0.9  # a Pokemon dynamaxes above this share of hp
FUTILE = 0.3  # a switch is considered where no attack is worth this much
SWITCH_GAIN = 0.6  # margin that a switch must gain over staying
USELESS = 0.001  # attacks that are worth less do nothing
NONE, MEGA, DYNAMAX, TERA = 0, 1, 3, 4  # gimmicks; Z-moves are never used: the damage formula does not cover them


class OnePlyPlayer:
    """Stateless, like the other scripted players: it reads the battle of the seat that asks."""

    def __init__(self, gen: int, doubles: bool = False) -> None:
        self._gen, self._doubles = gen, doubles

    def choose(self, battle: SeatView, request: Request, seed: int) -> ScriptedChoice:
        """The answer to `request`, whose lines `battle` has read. Equal seeds answer equally."""
        battle.parse_request(request)
        rng = random.Random(seed)
        if request.get("teamPreview"):
            return ScriptedChoice(self._preview(battle, request), False)
        view = read_view(self._gen, battle, request)
        if self._doubles:
            return ScriptedChoice(self._pair(view, request, rng), False)
        choices = legal_choices(request, _places(request).index)
        meanings = {action: _single(action) for action, legal in enumerate(choices.mask) if legal}
        action, _ = self._pick(view, request, 0, choices, meanings, rng)
        return ScriptedChoice(choices.command(action), False)

    def _pair(self, view: View, request: Request, rng: random.Random) -> str:
        """Choose for the left slot, then for the right one with the left choice known."""
        first, commands = None, []
        for slot in (0, 1):
            choices = slot_choices(request, slot, _places(request).index, first)
            meanings = {action: meaning(action) for action, legal in enumerate(choices.mask) if legal}
            action, rating = self._pick(view, request, slot, choices, meanings, rng)
            commands.append(choices.command(action))
            first = action
            view = view._replace(foes=tuple([_hurt(foe, dealt) for foe, dealt in zip(view.foes, rating.dealt)]))
        return ", ".join(commands)

    def _pick(
        self, view: View, request: Request, slot: int, choices: Choices | SlotChoices, meanings: Mapping[int, Meaning],
        rng: random.Random,
    ) -> tuple[int, Rating]:  # fmt: skip
        """The best legal action of a slot, and what it does."""
        nothing = Rating(0.0, (0.0,) * len(view.foes))
        switches = {action: told.member for action, told in meanings.items() if told.member >= 0}
        moves = {action: told for action, told in meanings.items() if told.move >= 0}
        user = view.bench[slot] if moves else None
        if user is None:
            return (self._entrant(view, switches)[0] if switches else rng.choice(list(meanings))), nothing
        user = user._replace(names=_offered(choices, request["side"]["pokemon"][slot]))
        ally = view.bench[1 - slot] if self._doubles and _stands(request, 1 - slot) else None
        tera = any(told.gimmick == TERA for told in moves.values())
        (matchup,) = matchups(self._gen, view, [user], tera=tera, ally=ally)
        ratings = _ratings(matchup, moves, last=not switches)
        best = max(ratings, key=lambda action: (ratings[action].value, rng.random()))
        if ratings[best].value < FUTILE and switches:
            entrant, margin = self._entrant(view, switches)
            if margin > matchup.margin() + SWITCH_GAIN:
                return entrant, nothing
        if ratings[best].value > USELESS:
            return best, ratings[best]
        plain = [action for action, told in moves.items() if not told.gimmick and told.target >= 0]
        return rng.choice(plain or list(moves)), nothing

    def _entrant(self, view: View, switches: Mapping[int, int]) -> tuple[int, float]:
        """The switch with the best margin of damage dealt over taken, and that margin."""
        margins = self._margins(view, [view.bench[member] for member in switches.values()])
        best, margin = max(zip(switches, margins), key=lambda pair: pair[1])
        return best, margin

    def _margins(self, view: View, candidates: Sequence[Combatant | None]) -> list[float]:
        """The margin of each candidate; -1 for those that poke-env has lost."""
        found = iter(matchups(self._gen, view, [mon for mon in candidates if mon is not None]))
        return [-1.0 if mon is None else next(found).margin() for mon in candidates]

    def _preview(self, battle: SeatView, request: Request) -> str:
        """The team order by margin against all foes that the preview shows."""
        view = read_view(self._gen, battle, request)
        foes = shown_foes(self._gen, battle)
        totals = [0.0] * len(view.bench)
        for foe in foes:
            margins = self._margins(view._replace(foes=(foe,)), view.bench)
            totals = [total + margin for total, margin in zip(totals, margins)]
        order = sorted(range(len(totals)), key=totals.__getitem__, reverse=True)
        return "team " + ",".join([str(place + 1) for place in order[: picks_wanted(request, len(order))]])


def _ratings(matchup: OnePlyMatchup, moves: Mapping[int, Meaning], *, last: bool) -> dict[int, Rating]:
    """By action. `last`: no switch is possible."""
    grow = last or (matchup.user.hp >= HEALTHY and matchup.margin() > 0.0)
    used = (NONE, MEGA, DYNAMAX, TERA) if grow else (NONE, MEGA, TERA)
    return {action: _rate(matchup, told) for action, told in moves.items() if told.gimmick in used}


def _rate(matchup: OnePlyMatchup, told: Meaning) -> Rating:
    rating = matchup.rate(told.move, told.target - 1, tera=told.gimmick == TERA)
    if told.target < 0:
        return rating._replace(value=-1.0)  # aimed at the own side
    if told.gimmick == TERA:
        return rating._replace(value=rating.value - TERA_WORTH)
    if told.gimmick and rating.value > 0.0:
        return rating._replace(value=rating.value + BONUS)
    return rating


def _single(action: int) -> Meaning:
    """The meaning of one of the 26 actions of singles."""
    if action < FIRST_MOVE:
        return Meaning(member=action)
    gimmick, move = divmod(action - FIRST_MOVE, MOVES)
    return Meaning(move=move, gimmick=gimmick)


def _places(request: Request) -> list[str]:
    return [entry["ident"] for entry in request["side"]["pokemon"]]


def _stands(request: Request, slot: int) -> bool:
    side: list[Entry] = request["side"]["pokemon"]
    return slot < len(side) and side[slot]["active"] and not side[slot]["condition"].endswith(" fnt")


def _offered(choices: Choices | SlotChoices, entry: Entry) -> tuple[str, ...]:
    """Names of the moves by slot; struggle and its like stand where their action is."""
    known: list[str] = entry["moves"]
    names = []
    for slot, offered in enumerate(choices.move_entries):
        name = known[slot] if slot < len(known) else ""
        names.append(name if offered is None or name.startswith(offered["id"]) else offered["id"])
    return tuple(names)


def _hurt(foe: Combatant | None, dealt: float) -> Combatant | None:
    return None if foe is None else foe._replace(hp=max(foe.hp - dealt, 0.01))
