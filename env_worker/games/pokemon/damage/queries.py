"""Small pure questions about one Pokemon, with the same answers for user and target."""

from __future__ import annotations

from simul.env_worker.games.pokemon.damage.types import FACTS, SUPPRESSED, Fighter, Surroundings

FLYING, GHOST, GROUND, ICE, NORMAL, ROCK, STELLAR = 8, 9, 11, 12, 13, 16, 20
WITHOUT_ITEM = ("klutz",)
_GEN1_LOWERED = (100, 66, 50, 40, 33, 28, 25)
CAP_GEN2 = 999
HEAVY_ITEMS = (
    "ironball",
    "machobrace",
    *[f"power{part}" for part in ("weight", "bracer", "belt", "lens", "band", "anklet")],
)
STUCK = {"arceus": "plate", "silvally": "memory", "genesect": "drive", "giratina": "griseous", "ogerpon": "mask"}
ALWAYS_STUCK = ("iumz", "ite", "itex", "itey", "rustedsword", "rustedshield", "boosterenergy", "blueorb", "redorb")


def at_stage(gen: int, stat: int, stage: int) -> int:
    """A stat at a stage from -6 to 6."""
    if gen <= 2:
        value = stat * (2 + stage) // 2 if stage >= 0 else stat * _GEN1_LOWERED[-stage] // 100
        return min(max(value, 1), CAP_GEN2)
    return stat * (2 + stage) // 2 if stage >= 0 else stat * 2 // (2 - stage)


def with_simple_stages(gen: int, fighter: Fighter) -> Fighter:
    """In gen 4 the ability Simple doubles stages when they are used."""
    if gen != 4 or fighter.ability != "simple":
        return fighter
    return fighter._replace(stages=tuple([max(-6, min(6, 2 * stage)) for stage in fighter.stages]))


def apply_modifier(value: int, mod: int) -> int:
    """value * mod / 4096, halves down: the games' rounding."""
    return (value * mod + 2047) >> 12


def chain_modifiers(first: int, second: int) -> int:
    """Two modifiers as one, halves up."""
    return (first * second + 2048) >> 12


def effective_item(fighter: Fighter) -> str:
    """The held item; SUPPRESSED where it has no effect."""
    return SUPPRESSED if fighter.ability in WITHOUT_ITEM else fighter.item


def grounded(gen: int, fighter: Fighter, around: Surroundings) -> bool:
    """Whether ground moves and terrain affect it."""
    effects, item = fighter.effects, effective_item(fighter)
    if around.gravity or "SMACK_DOWN" in effects or item == "ironball" or (gen >= 4 and "INGRAIN" in effects):
        return True
    if FLYING in fighter.types and "ROOST" not in effects:
        return False
    if fighter.ability == "levitate" or "MAGNET_RISE" in effects or "TELEKINESIS" in effects:
        return False
    return item != "airballoon"


def speed(gen: int, fighter: Fighter, around: Surroundings) -> int:
    """Speed as Gyro Ball and Electro Ball compare it."""
    value = at_stage(gen, fighter.stats[5], fighter.stages[4])
    item, ability = effective_item(fighter), fighter.ability
    if item == "choicescarf":
        value = apply_modifier(value, 6144)
    elif item in HEAVY_ITEMS:
        value = apply_modifier(value, 2048)
    fact = SPEED_ABILITIES.get(ability)
    if fact and around.facts & fact:
        value *= 2
    if "PROTOSYNTHESISSPE" in fighter.effects or "QUARKDRIVESPE" in fighter.effects:
        value = apply_modifier(value, 6144)
    if fighter.status == "PAR" and ability != "quickfeet":
        value = value // 2 if gen >= 7 else value // 4
    return max(value, 1)


SPEED_ABILITIES = {
    "chlorophyll": FACTS["sun"],
    "swiftswim": FACTS["rain"],
    "sandrush": FACTS["sand"],
    "slushrush": FACTS["snow"],
    "surgesurfer": FACTS["electric_terrain"],
}


def takes_type(
    gen: int, ability: str, types: tuple[int, ...], base_types: tuple[int, ...], terastallized: bool
) -> bool:
    """Whether its ability gives it the type of the move that it uses; in gen 9 only until its types have changed."""
    if ability not in ("protean", "libero") or terastallized:
        return False
    return gen <= 8 or types[: len(base_types)] == base_types


def item_removable(fighter: Fighter) -> bool:
    """Whether Knock Off can remove its item."""
    item = fighter.item
    if item == SUPPRESSED or (item.endswith(ALWAYS_STUCK) and item != "eviolite"):
        return False
    return not any(fighter.species.startswith(species) and part in item for species, part in STUCK.items())
