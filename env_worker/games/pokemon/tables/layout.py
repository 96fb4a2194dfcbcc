"""The observation's layout, as data: one global block, 12 Pokemon blocks, 4 move blocks, the mask, damage, sets.

    global | own.0 .. own.5 | foe.0 .. foe.5 | move.0 .. move.3 | mask | damage.0 .. damage.2 | set.0 .. set.5

Blocks of a kind are equally long and hold the same things at the same offsets, so a network can reshape
them from the names alone. own.i is the Pokemon that action i switches to (team order, stable for the whole
battle); foe.i are the revealed opponents in order of appearance; move.k is the move of actions 6+k, 10+k, ...
set.i says what foe.i may still have; it is there where the configuration asks for it and the format's sets are known.
foe.i that only team preview has shown come behind those that have been out.
Everything is what the seat itself knows or may conclude.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from simul.common.config.games.pokemon import PokemonConfig
from simul.common.protocol.specs import Slice
from simul.env_worker.games.pokemon.tables.random_sets import sets_known
from simul.env_worker.games.pokemon.tables.vocabulary import vocabulary


class Field(NamedTuple):
    """`size` numbers in [low, high], or, where `table` is named, `size` ids.

    A number is what it counts, divided by `scale`; `{scale:g}` in the meaning stands for it.
    """

    name: str
    meaning: str
    size: int = 1
    low: float = 0.0
    high: float = 1.0
    table: str = ""
    scale: float = 1.0


SIDE = (
    Field("hazards", "stealth rock, spikes/3, toxic spikes/2, sticky web on this side", 4),
    Field("screens", "reflect, light screen, aurora veil, safeguard or mist, tailwind on this side", 5),
    Field("screen_turns", "turns since each of these began / {scale:g}", 5, scale=8),
    Field("alive", "Pokemon not fainted / {scale:g} (unrevealed ones are alive)", scale=6),
    Field("team_hp", "sum of hp fractions / {scale:g} (unrevealed ones are full)", scale=6),
    Field("gimmick_used", "terastallized, mega evolved, z-move or dynamax already spent"),
)
VOLATILES = (
    "substitute",
    "confusion",
    "leech seed",
    "taunt",
    "encore",
    "disable",
    "yawn",
    "perish song (1/4 when it sounds, 1 when it takes effect)",
    "salt cure",
    "bound or trapped",
    "protosynthesis or quark drive",
    "flash fire or charge",
    "other restraint (torment, attract, throat chop, heal block)",
    "dynamax",
)
ACTIVE = (
    Field("last_move", "move it used last since it came in, Z- and max moves included", table="move"),
    Field("boosts", "atk, def, spa, spd, spe, accuracy, evasion stages / {scale:g}", 7, -1.0, scale=6),
    Field("volatiles", ", ".join(VOLATILES), len(VOLATILES)),
    Field("recharging", "must recharge"),
    Field("preparing", "charges a two-turn move"),
    Field("protect_count", "consecutive protect-like moves / {scale:g}", scale=3),
    Field("turns_active", "turns since it came in / {scale:g}", scale=8),
    Field("transformed", "it is a copy of another Pokemon"),
)
LAST = (
    Field("moved_first", "the turn's first move was its, used or kept from"),
    Field("prevented", "it was kept from moving: asleep, fully paralyzed, flinching, hit itself, ..."),
    Field("missed", "a move of its missed"),
    Field("failed", "a move of its failed or met an immunity"),
    Field("critical", "it landed a critical hit"),
    Field("hp_lost", "hp fractions that its Pokemon lost in all, at most 1"),
    Field("switched", "it switched instead of moving"),
    Field("fainted", "a Pokemon of its fainted"),
)
PREVIEW = (
    Field("preview", "team preview: action i picks own.i"),
    Field("preview_picks", "Pokemon to pick at team preview / {scale:g}", scale=6),
    Field(
        "preview_order", "of own.0 to own.5: place in the order picked so far / {scale:g}, 0 = not picked", 6, scale=6
    ),
)
GLOBAL = (
    Field("turn", "turn / {scale:g}", scale=100),
    Field("force_switch", "a switch is demanded"),
    Field("reviving", "the switch revives a fainted Pokemon"),
    Field("trapped", "switching is impossible"),
    Field("maybe_trapped", "switching may turn out to be impossible"),
    Field("can_gimmick", "mega, z-move, dynamax, terastallize possible now", 4),
    Field("weather", "sun, rain, sand, snow or hail, strong winds", 5),
    Field("weather_turns", "turns since the weather began / {scale:g}", scale=8),
    Field("terrain", "electric, grassy, misty, psychic", 4),
    Field("terrain_turns", "turns since the terrain began / {scale:g}", scale=8),
    Field("trick_room", "slower Pokemon move first"),
    Field("trick_room_turns", "turns since trick room began / {scale:g}", scale=8),
    *(field._replace(name=f"{who}_side.{field.name}") for who in ("own", "foe") for field in SIDE),
    *(field._replace(name=f"{who}_active.{field.name}") for who in ("own", "foe") for field in ACTIVE),
    *(
        field._replace(name=f"{who}_last.{field.name}", meaning=f"in the turn just played, or so far: {field.meaning}")
        for who in ("own", "foe")
        for field in LAST
    ),
    *PREVIEW,
)
POKEMON = (
    Field("species", "species and forme now; a copy keeps its own", table="species"),
    Field("ability", "its ability where known", table="ability"),
    Field("item", "its item where known; a row of its own for none", table="item"),
    Field("moves", "its moves where known", 4, table="move"),
    Field("types", "its types now, of three the first two", 2, table="type"),
    Field("tera_type", "its tera type where known", table="type"),
    Field("present", "this block describes a Pokemon"),
    Field("hp", "hp fraction"),
    Field("fainted", "it has fainted"),
    Field("active", "it is on the field"),
    Field("revealed", "the other side has seen it in battle"),
    Field("terastallized", "it has terastallized"),
    Field("status", "burned, frozen, paralyzed, poisoned, asleep, badly poisoned", 6),
    Field("sleep_turns", "times it could not move since it fell asleep / {scale:g} (gen 5: since it came in)", scale=7),
    Field("resting", "it put itself to sleep by Rest, whose length is fixed"),
    Field(
        "toxic_stage",
        "turns of bad poison since it was poisoned or came in (gens 1, 2: times it did damage) / {scale:g}",
        scale=15,
    ),
    Field("level", "level / {scale:g}", scale=100),
    Field(
        "stats",
        "hp, atk, def, spa, spd, spe / {scale:g} "
        "(own exact, foe's estimated; a copy has its model's, estimated where that is a foe)",
        6,
        scale=500,
    ),
    Field(
        "moves_known",
        "each known move's power / 250, accuracy, priority / 7, physical, special",
        5 * 4,
        -1.0,
    ),
    Field("moves_pp", "each known move's pp left, fraction (foe's estimated from what it used)", 4),
    Field("deals", "largest expected damage to the opposing active, fraction of its full hp"),
    Field("deals_effectiveness", "largest type multiplier of its damage on the opposing active / {scale:g}", scale=4),
    Field("takes", "largest expected damage from the opposing active, fraction of full hp"),
    Field("takes_effectiveness", "largest type multiplier of that damage / {scale:g}", scale=4),
    Field("moves_first", "1: faster than the opposing active, -1: slower (trick room counted)", low=-1.0),
    Field(
        "threat",
        "largest expected damage of a move that the opposing active has shown, or is likely to have "
        "(by the sets: chance of 0.15 or more; without sets: assumed STAB moves), fraction of full hp",
    ),
    Field("threat_chance", "the chance that it has that move: 1 where shown, 0.5 where assumed"),
    Field("falls", "of these moves: largest chance that it has the move and that this takes all of the present hp"),
)
MOVE_FLAGS = (
    "sound",
    "punch",
    "bite",
    "slicing",
    "bullet",
    "pulse",
    "powder",
    "wind",
    "dance",
    "passes substitutes",
    "blocked by protect",
    "reflected by magic bounce",
    "thaws",
    "cannot miss",
    "critical more often",
    "several blows",
    "no power but fixed damage",
    "aims at the user",
    "waits a turn",
    "rests a turn",
    "may burn",
    "may freeze",
    "may paralyze",
    "may poison",
    "puts to sleep",
    "may flinch",
    "binds",
)
STATIC_MOVE = (
    Field("power", "expected base power (all hits) / {scale:g}", scale=250),
    Field("accuracy", "accuracy, 1 where it cannot miss"),
    Field("priority", "priority / {scale:g}", low=-1.0, scale=7),
    Field("category", "physical, special, status", 3),
    Field("heals", "fraction of hp it restores"),
    Field("drains", "fraction of the damage it restores"),
    Field("recoil", "it costs the user hp"),
    Field("raises_self", "stages it raises of the user / {scale:g}", scale=6),
    Field("lowers_self", "stages it lowers of the user / {scale:g}", scale=6),
    Field("lowers_foe", "chance-weighted stages it lowers of the target / {scale:g}", scale=6),
    Field("inflicts", "chance of a status"),
    Field("confuses", "chance of another hindrance (flinch, confusion, seeds, ...)"),
    Field("hazard", "it lays a hazard"),
    Field("clears", "it clears hazards"),
    Field("protects", "it protects the user"),
    Field("pivots", "the user switches out"),
    Field("phazes", "the target is forced out"),
    Field("screen", "it sets a side condition of one's own"),
    Field("field", "it sets weather, terrain or a room"),
    Field("slow", "it takes two turns"),
    Field("contact", "it makes contact"),
    Field("flags", f"{', '.join(MOVE_FLAGS)}", len(MOVE_FLAGS)),
)
MOVE = (
    Field("id", "the move", table="move"),
    Field("type", "its type", table="type"),
    *STATIC_MOVE,
    Field("present", "this block describes a move"),
    Field("usable", "it can be chosen now"),
    Field("pp", "pp left, fraction"),
    Field("stab", "same-type multiplier - 1"),
    Field(
        "effectiveness",
        "type multiplier on the foe's active / {scale:g} (abilities that grant immunity counted)",
        scale=4,
    ),
    Field("damage", "expected damage now, fraction of the foe's full hp"),
    Field("knock_out_chance", "chance that it hits and its damage takes all of the foe's present hp"),
    Field("tera_damage", "expected damage after terastallizing, 0 where that is not possible"),
)
POSSIBLE_MOVES, POSSIBLE_ABILITIES, POSSIBLE_TERAS = 6, 3, 3
POSSIBLE = (
    Field("moves", "moves that it may have and has not shown, the likeliest first", POSSIBLE_MOVES, table="move"),
    Field("moves_chance", "the chance of each", POSSIBLE_MOVES),
    Field("abilities", "while its ability is unknown: those it may have", POSSIBLE_ABILITIES, table="ability"),
    Field("abilities_chance", "the chance of each", POSSIBLE_ABILITIES),
    Field("tera_types", "while its tera type is unknown: the likeliest", POSSIBLE_TERAS, table="type"),
    Field("tera_types_chance", "the chance of each", POSSIBLE_TERAS),
)


TEAM_SIZE = 6
MOVE_SLOTS = 4
NUM_ACTIONS = 26
ATTACKERS = 3
# Classes of what the opponent does, as node/simulate/choice_labels.mjs makes them: it switches to foe.i, to a Pokemon
# that has not been seen, or uses a move: this plus its row of the vocabulary.
FIRST_MOVE_CLASS = TEAM_SIZE + 1


class Extras(NamedTuple):
    """What a layout holds beyond the blocks that all have: damage of no own Pokemon, of 3 or of 6; foes' sets."""

    attackers: int = ATTACKERS
    sets: bool = False


PLAIN = Extras()


def extras_of(config: PokemonConfig) -> Extras:
    """The configured extras; there are no sets where those of the format are not known."""
    return Extras(config.damage_attackers, config.set_knowledge and sets_known(config.format))


MASK = (Field("mask", "1 = legal: switch to own.i (6), move.k plain, mega, z, dynamax, tera (5 x 4)", NUM_ACTIONS),)
_PAIR = "fraction of its full hp: as it is and terastallized, x 4 moves, x mean and variance / 0.01"
DAMAGE = tuple(
    Field(f"foe.{j}", f"the attacker's damage to foe.{j}, {_PAIR}", 4 * MOVE_SLOTS, high=4.0) for j in range(TEAM_SIZE)
)
ATTACKER = (Field("attacker", "own.i that attacks: the active one, then the two who stand best", TEAM_SIZE),)

BLOCKS: tuple[tuple[str, tuple[Field, ...]], ...] = (
    ("global", GLOBAL),
    *((f"own.{i}", POKEMON) for i in range(TEAM_SIZE)),
    *((f"foe.{i}", POKEMON) for i in range(TEAM_SIZE)),
    *((f"move.{k}", MOVE) for k in range(MOVE_SLOTS)),
    ("", MASK),
)


def width(fields: tuple[Field, ...]) -> int:
    """Numbers in one block of these fields."""
    return sum(field.size for field in fields)


GLOBAL_WIDTH = width(GLOBAL)
POKEMON_WIDTH = width(POKEMON)
MOVE_WIDTH = width(MOVE)
OWN_START = GLOBAL_WIDTH
FOE_START = OWN_START + TEAM_SIZE * POKEMON_WIDTH
MOVE_START = FOE_START + TEAM_SIZE * POKEMON_WIDTH
MASK_START = MOVE_START + MOVE_SLOTS * MOVE_WIDTH
DAMAGE_START = MASK_START + NUM_ACTIONS


def damage_fields(attackers: int) -> tuple[Field, ...]:
    """Fields of one attacker. With six attackers damage.k is that of own.k, so no field says who attacks."""
    return DAMAGE if attackers == TEAM_SIZE else ATTACKER + DAMAGE


def set_start(attackers: int) -> int:
    """Place of `set.0`."""
    return DAMAGE_START + attackers * width(damage_fields(attackers))


def observation_size(extras: Extras) -> int:
    """Size of the observation."""
    return set_start(extras.attackers) + (TEAM_SIZE * width(POSSIBLE) if extras.sets else 0)


OBSERVATION_SIZE = observation_size(PLAIN)


@cache
def slices(extras: Extras = PLAIN) -> tuple[Slice, ...]:
    """The layout as the spec publishes it."""
    damage = damage_fields(extras.attackers)
    return lay_out(
        (
            *BLOCKS,
            *((f"damage.{k}", damage) for k in range(extras.attackers)),
            *((f"set.{i}", POSSIBLE) for i in range(TEAM_SIZE) if extras.sets),
        )
    )


def lay_out(blocks: tuple[tuple[str, tuple[Field, ...]], ...]) -> tuple[Slice, ...]:
    """Slices of (prefix, fields) blocks, one after the other."""
    sizes = vocabulary().sizes
    parts: list[Slice] = []
    start = 0
    for prefix, fields in blocks:
        for field in fields:
            rows = sizes[field.table] if field.table else 0
            parts.append(
                Slice(
                    name=f"{prefix}.{field.name}" if prefix else field.name,
                    start=start,
                    size=field.size,
                    kind="id" if field.table else "number",
                    low=field.low,
                    high=float(rows - 1) if rows else field.high,
                    meaning=field.meaning.format(scale=field.scale),
                    vocabulary=rows,
                    table=field.table,
                )
            )
            start += field.size
    return tuple(parts)
