"""Numbers that follow from others of the same row: matchups, damage, what a foe's set may be, numbers of known moves.

Each is computed anew from the row's own species, types, stats, moves and conditions, which slices.py holds against the
simulator; so a number here is right if it fits them. Where a rule has exceptions (abilities and items that act on
damage, a third type) nothing is claimed; tests of the formulas have those.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple

from poke_env.battle.move import Move
from poke_env.data import GenData

from simul.env_worker.games.pokemon.tables import doubles_layout as doubles
from simul.env_worker.games.pokemon.tables import layout
from simul.env_worker.games.pokemon.tables.movedex import PHYSICAL, STATUS, MoveInfo, move_info, type_chart
from simul.env_worker.games.pokemon.tables.random_sets import Role, known_sets
from simul.env_worker.games.pokemon.tables.vocabulary import vocabulary
from tests.support.pokemon.audit.slices import told_species
from tests.support.pokemon.audit.view import Claim, Expected, Mon, Numbers, Span, View, numbers_of_moves

# What the estimate heeds.
HEEDED_ABILITIES = (
    "technician adaptability protean libero hugepower purepower gorillatactics hustle quickfeet levitate eartheater "
    "waterabsorb stormdrain dryskin voltabsorb motordrive lightningrod flashfire wellbakedbody sapsipper "
    "furcoat icescales"
)
HEEDED_ITEMS = "lifeorb choiceband choicespecs lightball eviolite assaultvest"
# What the damage formula has no exception for.
PLAIN_MOVES = (
    "surf thunderbolt icebeam flamethrower psychic energyball airslash darkpulse dragonpulse flashcannon sludgebomb "
    "aurasphere powergem moonblast earthpower bugbuzz earthquake bodyslam rockslide xscissor nightslash stoneedge "
    "waterfall ironhead playrough crosschop drillpeck razorleaf slash strength cut tackle headbutt"
)
PLAIN_ABILITIES = (
    "pressure innerfocus naturalcure regenerator intimidate synchronize static flamebody keeneye runaway roughskin "
    "poisonpoint owntempo oblivious insomnia vitalspirit cursedbody pickup unnerve serenegrace swiftswim chlorophyll "
    "speedboost limber immunity magmaarmor waterveil frisk shedskin noability"
)
PLAIN_ITEMS = "leftovers heavydutyboots sitrusberry lumberry focussash choicescarf quickclaw noitem"
AVERAGE_ROLL = 0.925
VARIANCE_OF_A_ROLL = 0.00248 / 0.01  # of the mean's square, in the row's unit
ASSUMED_POWER = 75.0  # of a move that a foe has not shown
MOST_DAMAGE, MOST_VARIANCE = 2.0, 4.0
LAST_GEN_OF_BYTES, LARGEST_BYTE = 2, 255  # of stats in the damage formula
FIRE, WATER = 7, 18
STAGES = {n: max(2, 2 + n) / max(2, 2 - n) for n in range(-6, 7)}
PAIR = doubles.PAIR_NAMES
ASSUMED_CHANCE = 0.5  # that a foe has such a move
LIKELY = 0.15  # chance from which a hidden move is reckoned with
ROLLS = [roll / 100 for roll in range(85, 101)]
NEARLY = 2.0**-10  # the half floats of two numbers that are compared


class Course(NamedTuple):
    """What a move's damage goes by.

    Attributes:
        special: its category, which burn and screens go by.
        stat: which of atk, def, spa it attacks with; of_target: of its target's. on_defence: not on special defence.
    """

    special: bool
    stat: int
    of_target: bool
    on_defence: bool


class Blow(NamedTuple):
    """A move that its user may use on a target.

    Attributes:
        damage: if it hits, by the average roll, as a fraction of full hp; without stages.
        chance: that its user has it. assumed: of no known move.
    """

    damage: float
    multiplier: float
    course: Course
    accuracy: float
    chance: float = 1.0
    fixed: bool = False
    fraction: float = 0.0
    assumed: bool = False

    def dealt(self, user: Fighter, target: Fighter) -> float:
        """With stages, burn and screens; Super Fang and its like take of what is left, before it dynamaxed."""
        if self.fixed:
            left = target.hp * (0.5 if target.dynamaxed else 1.0)
            return self.fraction * left if 0 < self.fraction < 1 else self.damage
        return self.damage * stages_and_burn(user, target, self.course)


class Fighter(NamedTuple):
    """A Pokemon as its block and its side of the row describe it.

    Attributes:
        stats: hp, atk, def, spa, spd, spe; 0 where the row's range ends.
        boosts: of the one on the field, else 0s. screens: factors on physical and special damage that it takes.
        likely: hidden moves that it may have by the sets, and their chances, the likeliest first; None: not known.
        open: what the sets leave open of it does not follow from the row.
        plain: nothing that it has or is makes an exception.
    """

    types: tuple[int, ...]
    level: float
    stats: tuple[int, ...]
    moves: tuple[MoveInfo | None, ...]
    guess: bool
    ability: str
    item: str
    burned: bool
    speed: float
    boosts: tuple[int, ...]
    screens: tuple[float, ...]
    tera: int
    terastallized: bool
    hp: float
    fainted: bool
    dynamaxed: bool
    plain: bool
    likely: tuple[tuple[MoveInfo, float], ...] | None = None
    open: bool = False


@cache
def names_of(table: str) -> dict[float, str]:
    """Row -> a name, "" for unknown."""
    rows: dict[str, int] = getattr(vocabulary(), table)
    return {0.0: ""} | {float(row): name for name, row in rows.items()}


@cache
def moves_by_row(gen: int) -> dict[float, MoveInfo]:
    infos = [move_info(gen, name) for name in GenData.from_gen(gen).moves]
    return {float(info.row): info for info in infos if info is not None}


def derived_claims(view: View) -> Iterator[Claim]:
    """All of one row."""
    own, foes = ([fighter(view, whose, place) for place in range(6)] for whose in ("own", "foe"))
    for whose, team, others in (("own", own, foes), ("foe", foes, own)):
        facing = facing_of(view, "foe" if whose == "own" else "own", others)
        for place, one in enumerate(team):
            for side, other in facing:
                yield from pair_claims(view, f"{whose}.{place}.{side}", one, other)
    for block, slot in (("move", view.row.slot), ("partner_move", 1 - view.row.slot))[: 1 + view.doubles]:
        user = next((one for place, one in enumerate(own) if one and place_of(view, "own", place) == slot), None)
        yield from move_effect_claims(view, block, user, facing_of(view, "foe", foes))
    for place, foe in enumerate(foes):
        if foe is not None and not view.doubles:
            yield Claim(f"foe.{place}.moves_known", numbers_of_moves(foe.moves))
    if not view.doubles:
        yield from damage_claims(view, own, foes)
        if view.has_sets:
            for place in range(6):
                yield from set_claims(view, place, foes[place])


def place_of(view: View, whose: str, place: int) -> int:
    """0 left (or the only one), 1 right, -1 on the bench."""
    if not view.doubles:
        return 0 if view.observed(f"{whose}.{place}.active")[0] else -1
    slot = view.observed(f"{whose}.{place}.slot")
    return slot.index(1.0) if 1.0 in slot else -1


def facing_of(view: View, whose: str, team: Sequence[Fighter | None]) -> list[tuple[str, Fighter | None]]:
    """Who stands there: prefix of the slices, Pokemon or None."""
    sides = ("left.", "right.") if view.doubles else ("",)
    standing = {place_of(view, whose, place): one for place, one in enumerate(team) if one is not None}
    return [(side, standing.get(slot)) for slot, side in enumerate(sides)]


def fighter(view: View, whose: str, place: int) -> Fighter | None:
    """None where the block is empty."""

    def read(name: str) -> list[float]:
        return view.observed(f"{whose}.{place}.{name}")

    if not read("present")[0]:
        return None
    slot, status = place_of(view, whose, place), read("status")
    boosts: tuple[int, ...] = (0,) * 7
    dynamaxed = False
    if slot >= 0:
        who = whose
        if view.doubles:
            who = ("self" if slot == view.row.slot else "partner") if whose == "own" else f"{layout_side(slot)}_foe"
        boosts = tuple(round(6 * stage) for stage in view.observed(f"global.{who}_active.boosts"))
        dynamaxed = bool(view.observed(f"global.{who}_active.volatiles")[-1])
    ability, item = names_of("ability")[read("ability")[0]], names_of("item")[read("item")[0]]
    stats = tuple(round(500 * stat) if stat < 1 else 0 for stat in read("stats"))
    rows = [row for row in read("moves") if row]
    raised = view.observed(f"global.{whose}_side.screens") if view.gen > 1 or slot >= 0 else [0.0] * 5
    screens = tuple(behind_screen(view) if raised[n] or raised[2] else 1.0 for n in (0, 1))
    speed = stats[5] * STAGES[boosts[4]] * (1.5 if item == "choicescarf" else 1.0)
    if status[2]:
        speed *= 0.5 if view.gen >= 7 else 0.25
    speed *= 2 if raised[4] else 1  # a tailwind
    plain = all(stats) and ability not in HEEDED_ABILITIES.split() and item not in HEEDED_ITEMS.split()
    plain = plain and not read("terastallized")[0] and not view.has_more(whose, place)
    moves = moves_by_row(view.gen)
    found = Fighter(
        tuple(int(row) for row in read("types") if row), round(100 * read("level")[0]), stats,
        tuple(moves.get(row) for row in rows), whose == "foe" and len(rows) < 4, ability, item, bool(status[0]), speed,
        boosts, screens, int(read("tera_type")[0]),
        bool(read("terastallized")[0]), read("hp")[0], bool(read("fainted")[0]), dynamaxed, plain,
    )  # fmt: skip
    return with_likely(view, place, found) if whose == "foe" and view.has_sets else found


def behind_screen(view: View) -> float:
    """What Reflect, Light Screen or Aurora Veil leave of damage; two Pokemon share one."""
    if not view.doubles:
        return 0.5
    return (2730 if view.gen <= 4 else 2703 if view.gen == 5 else 2732) / 4096


def with_likely(view: View, place: int, foe: Fighter) -> Fighter:
    """A foe with the moves that its sets make likely."""
    mon = view.foe_in_block(place)
    if mon is not None and mon["transformed"]:
        return foe
    if mon is None or sets_are_open(view, mon, foe):
        return foe._replace(open=True)
    if not roles_of(view.gen, mon):
        return foe
    chances = possibilities(view.gen, mon, foe, view.observed(f"foe.{place}.moves"))[0]
    infos = moves_by_row(view.gen)
    hidden = sorted(chances.items(), key=lambda item: -item[1])
    return foe._replace(
        likely=tuple((infos[row], min(chance, 1.0)) for row, chance in hidden if chance >= LIKELY and row in infos),
        open=any(abs(chance - LIKELY) < 1e-9 for chance in chances.values()),
    )


def layout_side(slot: int) -> str:
    return ("left", "right")[slot]


def multiplier(gen: int, kind: int, target: Fighter) -> float:
    found = 1.0
    for own in target.types:
        found *= type_chart(gen)[kind][own]
    return found


def stages_and_burn(user: Fighter, target: Fighter, course: Course) -> float:
    """Factor on an ordinary move: stages of both, a burn, screens."""
    attacker = target if course.of_target else user
    dealt = STAGES[attacker.boosts[course.stat]] * (0.5 if user.burned and not course.special else 1.0)
    return dealt * target.screens[course.special] / STAGES[target.boosts[1 if course.on_defence else 3]]


def course_of(info: MoveInfo) -> Course:
    """Body Press attacks with Defence, Foul Play with the target's Attack; Psyshock hits Defence."""
    special = info.category != PHYSICAL
    return Course(special, 1 if info.own_defence else 2 if special else 0, info.foe_attack, info.hits_defence)


def before_stages(gen: int, user: Fighter, target: Fighter, info: MoveInfo, stab: float, kind: int) -> float:
    """Fraction of the target's full hp."""
    if info.fixed:
        return info.fraction or (float(user.level) if info.level_damage else info.flat) / target.stats[0]
    attack = user.stats[1 if info.category == PHYSICAL else 3]
    if info.own_defence:
        attack = user.stats[2]
    if info.foe_attack:
        attack = target.stats[1]
    scale = (0.4 * user.level + 2) * info.power * attack / 50
    defence = target.stats[2 if info.hits_defence else 4]
    return (scale / defence + 2) * stab * multiplier(gen, kind, target) * AVERAGE_ROLL / target.stats[0]


def stab_of(user: Fighter, kind: int) -> float:
    return 1.5 if kind in user.types else 1.0


def blow(gen: int, user: Fighter, target: Fighter, info: MoveInfo, chance: float = 1.0) -> Blow:
    damage = before_stages(gen, user, target, info, stab_of(user, info.type), info.type)
    rest = (info.accuracy, chance, info.fixed, info.fraction)
    return Blow(damage, multiplier(gen, info.type, target), course_of(info), *rest)


def blows(gen: int, user: Fighter, target: Fighter) -> tuple[list[Blow], list[Blow]]:
    """Of the moves that are known, and the STAB moves that are assumed; those that the target is immune to left out."""
    known = [blow(gen, user, target, info) for info in user.moves if info is not None and info.category != STATUS]
    special = user.stats[3] > user.stats[1]
    guessed = []
    for kind in user.types if user.guess else ():
        factor = multiplier(gen, kind, target)
        scale = (0.4 * user.level + 2) * ASSUMED_POWER * user.stats[3 if special else 1] / 50
        damage = (scale / target.stats[4 if special else 2] + 2) * 1.5 * factor * AVERAGE_ROLL / target.stats[0]
        course = Course(special, 2 if special else 0, False, not special)
        guessed.append(Blow(damage, factor, course, 1.0, ASSUMED_CHANCE, assumed=True))
    return [one for one in known if one.multiplier], [one for one in guessed if one.multiplier]


def best(gen: int, user: Fighter, target: Fighter) -> tuple[float, float]:
    """Largest damage with stages and accuracy, at most 1, and largest type multiplier."""
    known, guessed = blows(gen, user, target)
    hits, most = [0.0], 0.0
    for one in (*known, *guessed):
        hits.append(one.dealt(user, target) * one.accuracy)
        most = max(most, one.multiplier)
    return min(max(hits), 1.0), most


def threats(gen: int, user: Fighter, target: Fighter) -> list[Blow]:
    """Known moves, then those that the sets make likely or, where these are not known, assumed ones."""
    known, guessed = blows(gen, user, target)
    if user.likely is None:
        return known + guessed
    likely = [blow(gen, user, target, info, chance) for info, chance in user.likely if info.category != STATUS]
    return known + [one for one in likely if one.multiplier]


def knock_out(damage: float, hp: float, step: float | None = None) -> tuple[float, float]:
    """Least and largest share of the rolls that take so much; `step`: between two rolls, None: of an ordinary move."""
    if damage <= 0 or hp <= 0:
        return 0.0, 0.0
    gap = damage / (100 * AVERAGE_ROLL) if step is None else step
    rolls = [damage + (n - (len(ROLLS) - 1) / 2) * gap for n in range(len(ROLLS))]
    low, high = (sum(roll >= bound for roll in rolls) / len(rolls) for bound in (hp * (1 + NEARLY), hp * (1 - NEARLY)))
    return low, high


def between(low: float, high: float) -> Expected:
    """A number, or its bounds, where half floats of the row have gone into them."""
    return low if low == high else Span(low * (1 - NEARLY), high * (1 + NEARLY))


def threat_claims(view: View, name: str, target: Fighter, user: Fighter) -> Iterator[Claim]:
    """What one that stands opposite may do to a Pokemon."""
    if not (target.plain and user.plain) or user.open:
        yield from threat_bounds(view, name, target, user)
        return
    found = threats(view.gen, user, target)
    most, falls = threat_numbers(found, user, target)
    chances = [one.chance for one in found if most and expected(one, user, target) >= most * (1 - 1e-9)]
    yield Claim(f"{name}threat", [between(most, most + 1e-9)])
    yield Claim(f"{name}threat_chance", [chances[0] if most == 1.0 else frozenset(chances or [0.0])])
    yield Claim(f"{name}falls", [between(*falls)])


def expected(one: Blow, user: Fighter, target: Fighter) -> float:
    return min(one.dealt(user, target) * one.accuracy, 1.0)


def threat_numbers(found: list[Blow], user: Fighter, target: Fighter) -> tuple[float, Span]:
    """The largest expected damage, and the largest chance that its user has a move that takes all hp."""
    falls = Span(0.0, 0.0)
    for one in found:
        span = knock_out(one.dealt(user, target), target.hp, 0.0 if one.fixed else None)
        low, high = (one.chance * one.accuracy * share for share in span)
        falls = Span(max(falls.low, low), max(falls.high, high))
    return max([expected(one, user, target) for one in found], default=0.0), falls


def threat_bounds(view: View, name: str, target: Fighter, user: Fighter) -> Iterator[Claim]:
    """What holds whatever acts on the damage: by `takes`, which goes by the same numbers, and by each other."""
    takes, threat, chance = (view.observed(f"{name}{part}")[0] for part in ("takes", "threat", "threat_chance"))
    moves = [info for info in user.moves if info is not None and info.category != STATUS]
    by_sets = user.likely is not None or user.open
    if not by_sets:
        yield Claim(f"{name}threat", [between(takes, takes + 1e-9)])  # of the same moves
    elif not user.guess:
        yield Claim(f"{name}threat", [Span(takes * (1 - NEARLY), 1.0)])
    else:
        yield Claim(f"{name}threat", [Span(0.0, 1.0) if moves or user.guess or by_sets else 0.0])
    chances: Expected = frozenset([1.0] * bool(moves) + [ASSUMED_CHANCE] * (user.guess and not by_sets))
    if by_sets:
        chances = (
            Span(LIKELY * (1 - NEARLY), 1.0)
            if user.open
            else frozenset([1.0] * bool(moves) + [likely for _, likely in user.likely or ()])
        )
    yield Claim(f"{name}threat_chance", [chances if threat else 0.0])
    accuracies = [info.accuracy for info in (*moves, *[info for info, _ in user.likely or ()])]
    least = 0.3 if user.open else min(accuracies, default=1.0)
    may = threat >= 1 or (threat > 0 and threat / least / AVERAGE_ROLL >= target.hp * (1 - NEARLY))
    must = threat * ROLLS[0] / AVERAGE_ROLL >= target.hp * (1 + NEARLY)
    low, high = chance * least if must else 0.0, 1.0 if may else 0.0
    yield Claim(f"{name}falls", [Span(low * (1 - NEARLY), high) if target.hp else 0.0])


def pair_claims(view: View, name: str, one: Fighter | None, other: Fighter | None) -> Iterator[Claim]:
    """One Pokemon against one that stands opposite; nothing where either is missing."""
    if one is None or other is None:
        for part in PAIR:
            yield Claim(f"{name}{part}", [0.0])
        return
    yield from threat_claims(view, name, one, other)
    if not (one.plain and other.plain):
        return
    trick_room = bool(view.observed("global.trick_room")[0])
    first = (one.speed > other.speed) != trick_room
    yield Claim(f"{name}moves_first", [0.0 if one.speed == other.speed else 1.0 if first else -1.0])
    for part, user, target in (("deals", one, other), ("takes", other, one)):
        damage, effectiveness = best(view.gen, user, target)
        shares = any(info is not None and 0 < info.fraction < 1 for info in user.moves)  # of hp that the row rounds
        yield Claim(f"{name}{part}", [between(damage, damage + 1e-9) if shares else damage])
        yield Claim(f"{name}{part}_effectiveness", [effectiveness / 4])


def move_effect_claims(
    view: View, block: str, user: Fighter | None, facing: list[tuple[str, Fighter | None]]
) -> Iterator[Claim]:
    """What the moves of the one that decides (or of its partner) do to the foes."""
    own_rows = [info.row if info else None for info in user.moves] if user else []
    who = "" if not view.doubles else "partner." if block == "partner_move" else "self."
    asked = f"global.{who}can_gimmick"
    for k in range(layout.MOVE_SLOTS):
        row = view.observed(f"{block}.{k}.id")[0]
        info = user.moves[k] if user and k < len(own_rows) and own_rows[k] == row else None
        stabs = []
        for side, foe in facing:
            names = [
                f"{block}.{k}.{side}{part}" for part in ("effectiveness", "damage", "knock_out_chance", "tera_damage")
            ]
            if user is None or foe is None or info is None or info.category == STATUS or not row:
                numbers: list[Expected] = [0.0] * 5
            elif user.plain and foe.plain:
                numbers = effects(view, asked, user, foe, info)
            else:
                numbers = [None] * 5
            stabs.append(numbers[0])
            if info is not None and foe is not None and info.category != STATUS and row:
                numbers[3] = knock_out_claim(view, f"{block}.{k}", side, k, foe, info)
            for name, number in zip(names, numbers[1:]):
                yield Claim(name, [number])
        if len(stabs) == 1 or facing[0][1] is not None:
            yield Claim(f"{block}.{k}.stab", [stabs[0]])
        else:
            yield Claim(f"{block}.{k}.stab", [stabs[1]])


def effects(view: View, asked: str, user: Fighter, foe: Fighter, info: MoveInfo) -> list[Expected]:
    """stab, effectiveness, damage, None, tera_damage. `asked`: the slice that says what gimmicks it has left."""
    factor = multiplier(view.gen, info.type, foe)
    if not factor:
        return [0.0] * 5
    stab = 1.0 if info.fixed else stab_of(user, info.type)
    scale = 1.0
    if 0 < info.fraction < 1:
        scale = foe.hp * (0.5 if foe.dynamaxed else 1.0)
    elif not info.fixed:
        scale = stages_and_burn(user, foe, course_of(info))
        weather = view.observed("global.weather")
        if info.type in (FIRE, WATER) and (weather[0] or weather[1]):
            scale *= 1.5 if weather[0 if info.type == FIRE else 1] else 0.5
    damage = before_stages(view.gen, user, foe, info, stab, info.type) * scale
    tera: Expected = 0.0
    if user.tera and not info.fixed and view.observed(asked)[3]:
        kind = user.tera if info.row == vocabulary().move["terablast"] else info.type
        bonus = (1.5 + 0.5 * (kind in user.types)) if kind == user.tera else stab_of(user, kind)
        tera = min(before_stages(view.gen, user, foe, info, bonus, kind) * scale, 1.0)
    dealt = between(damage, damage + 1e-9) if 0 < info.fraction < 1 else min(damage, 1.0)
    return [stab - 1, factor / 4, dealt, None, tera]


def knock_out_claim(view: View, block: str, side: str, k: int, foe: Fighter, info: MoveInfo) -> Expected:
    """By the row's damage of the move: the formula's mean and variance, in doubles the estimate."""
    if not view.doubles:
        j = next(j for j in range(6) if place_of(view, "foe", j) == 0)
        mean, variance = view.observed(f"damage.0.foe.{j}")[2 * k : 2 * k + 2]
        low, high = knock_out(mean, foe.hp, math.sqrt(12 / 255 * 0.01 * variance))
    elif 0 < info.fraction < 1:
        low = high = 0.0
    else:
        damage = view.observed(f"{block}.{side}damage")[0]
        low, high = knock_out(damage, foe.hp, 0.0 if info.fixed else None)
        high = 1.0 if damage == 1.0 else high
    return between(info.accuracy * low, info.accuracy * high)


def damage_claims(view: View, own: list[Fighter | None], foes: list[Fighter | None]) -> Iterator[Claim]:
    """Who attacks, and for plain moves between plain Pokemon what comes of it."""
    who = [] if view.at_preview else attackers(view, own)
    field = view.observed("global.weather") + view.observed("global.terrain")
    for k in range(layout.ATTACKERS):
        user = own[who[k]] if k < len(who) else None
        yield Claim(f"damage.{k}.attacker", [float(k < len(who) and place == who[k]) for place in range(6)])
        for j, foe in enumerate(foes):
            numbers: Numbers = [0.0] * 16
            if user is not None and foe is not None and not foe.fainted:
                numbers = [None] * 16 if any(field) else hits(view, user, foe)
            yield Claim(f"damage.{k}.foe.{j}", numbers)


def attackers(view: View, own: list[Fighter | None]) -> list[int]:
    """The active one, then those that take least for what they deal."""
    alive = [place for place, one in enumerate(own) if one is not None and not one.fainted]
    out = [place for place in alive if place_of(view, "own", place) == 0]
    taken = {p: view.observed(f"own.{p}.takes")[0] - view.observed(f"own.{p}.deals")[0] for p in alive}
    return out + sorted((place for place in alive if place not in out), key=taken.__getitem__)[: layout.ATTACKERS - 1]


def hits(view: View, user: Fighter, foe: Fighter) -> Numbers:
    """Mean and variance of four moves, as it is and terastallized."""
    numbers: list[Expected] = []
    known = [*user.moves, *[None] * (4 - len(user.moves))]
    for info in known:
        numbers += rolls(view.gen, user, foe, info) if info is not None else [0.0, 0.0]
    can_tera = view.gen == 9 and user.tera and not user.terastallized
    can_tera = can_tera and not view.own["terastallized"]
    return numbers + ([None] * 8 if can_tera else [0.0] * 8)


def rolls(gen: int, user: Fighter, foe: Fighter, info: MoveInfo) -> list[Expected]:
    if info.category == STATUS:
        return [0.0, 0.0]
    even = not any((*user.boosts, *foe.boosts)) and not user.burned and foe.screens == (1.0, 1.0)
    plain = all(one.plain and is_plain(one.ability, one.item) for one in (user, foe))
    if gen <= LAST_GEN_OF_BYTES and max(*user.stats[1:], *foe.stats[1:]) > LARGEST_BYTE:  # quartered, with roundings
        return [None, None]
    if not even or not plain or names_of("move")[info.row] not in PLAIN_MOVES.split():
        return [None, None]
    whole = user._replace(level=2.5 * math.floor(0.4 * user.level))  # the games cut off what the level adds
    mean = before_stages(gen, whole, foe, info, stab_of(user, info.type), info.type)
    if not mean:
        return [0.0, 0.0]
    slack = 0.03 * mean + 2 * max(multiplier(gen, info.type, foe), 1.0) / foe.stats[0]
    spread = VARIANCE_OF_A_ROLL * mean**2
    low, high = (min(bound, MOST_DAMAGE) for bound in (mean - slack, mean + slack))
    least, most = (min(bound, MOST_VARIANCE) for bound in (0.7 * spread - 0.01, 1.4 * spread + 0.01))
    return [Span(max(low, 0.0), high), Span(least, most)]


def is_plain(ability: str, item: str) -> bool:
    return ability in ("", *PLAIN_ABILITIES.split()) and item in ("", *PLAIN_ITEMS.split())


def set_claims(view: View, place: int, foe: Fighter | None) -> Iterator[Claim]:
    """What the public sets leave open, by what the row shows of the foe."""
    name = f"set.{place}"
    if foe is None:
        for part in layout.POSSIBLE:
            yield Claim(f"{name}.{part.name}", [0.0] * part.size)
        return
    mon = view.foe_in_block(place)
    if mon is None or sets_are_open(view, mon, foe):
        return
    moves, abilities, teras = possibilities(view.gen, mon, foe, view.observed(f"foe.{place}.moves"))
    for kind, chances in (("moves", moves), ("abilities", abilities), ("tera_types", teras)):
        size = next(part.size for part in layout.POSSIBLE if part.name == kind)
        best_chances = [*sorted(chances.values(), reverse=True), *[0.0] * size][:size]
        rows = [
            frozenset(float(row) for row, chance in chances.items() if abs(chance - wanted) < 1e-9) if wanted else 0.0
            for wanted in best_chances
        ]
        if kind == "abilities" and "mega" in mon["species"]:  # the one it was born with is not in the row
            continue
        yield Claim(f"{name}.{kind}", rows)
        yield Claim(f"{name}.{kind}_chance", [min(chance, 1.0) for chance in best_chances])


def sets_are_open(view: View, mon: Mon, foe: Fighter) -> bool:
    """Whether the row does not show by what its sets go: its moves or its ability are others than those it had."""
    if mon["slots"] != mon["base_slots"] or mon["ability"] != mon["base_ability"] or mon["swapped"]:
        return True
    return not foe.ability and view.row.told.of(mon["name"]).ability is not None  # it is suppressed


def roles_of(gen: int, mon: Mon) -> list[Role]:
    sets = known_sets(gen)
    return sets.get(told_species(mon)) or sets.get(mon["base_form"]) or []


def possibilities(gen: int, mon: Mon, foe: Fighter, shown_rows: Sequence[float]) -> list[dict[int, float]]:
    """Chance of each move, ability, tera type that it may have and has not shown, by Bayes' rule over its roles."""
    roles = roles_of(gen, mon)
    shown = {Move.retrieve_id(names_of("move")[row]) for row in shown_rows if row}
    ability = int(vocabulary().ability.get(foe.ability, 0))
    tera = foe.tera if foe.terastallized else 0
    roles = [role for role in roles if role.level in (0, foe.level)] or roles
    shown = {move for move in shown if any(move in role.moves for role in roles)}
    roles = [role for role in roles if shown <= set(role.moves)] or roles
    roles = [role for role in roles if ability in role.abilities] or roles
    roles = [role for role in roles if tera in role.teras] or roles
    found: list[dict[int, float]] = [defaultdict(float) for _ in range(3)]
    weights = [drawn(len(role.moves), len(shown)) for role in roles]
    for role, weight in zip(roles, weights):
        share = weight / sum(weights)
        hidden = [row for move, row in zip(role.moves, role.rows) if move not in shown]
        unknown = max(min(4 - len(shown), len(hidden)), 0)
        counts = (unknown, int(not ability), int(not tera))
        for chances, rows, count in zip(found, (hidden, role.abilities, role.teras), counts):
            for row in rows if count else ():
                chances[row] += share * count / len(rows)
    return found


def drawn(pool: int, shown: int) -> float:
    """The chance that four of a pool hold the ones shown."""
    chance = 1.0
    for n in range(min(shown, 4) if pool > 4 else 0):
        chance *= (4 - n) / (pool - n)
    return chance
