"""Which type a move has in a user's hands."""

from __future__ import annotations

from simul.env_worker.games.pokemon.damage import moves as kinds
from simul.env_worker.games.pokemon.damage.facts import FACTS
from simul.env_worker.games.pokemon.damage.fighter import Fighter, Surroundings
from simul.env_worker.games.pokemon.damage.moves import DamageMove
from simul.env_worker.games.pokemon.damage.state import NORMAL, STELLAR, grounded, held

BUG, DARK, DRAGON, ELECTRIC, FAIRY, FIGHTING, FIRE, FLYING, GHOST, GRASS, GROUND, ICE = range(1, 13)
POISON, PSYCHIC, ROCK, STEEL, WATER = range(14, 19)
RETYPING = {
    "aerilate": (FLYING, 6),
    "pixilate": (FAIRY, 6),
    "refrigerate": (ICE, 6),
    "galvanize": (ELECTRIC, 7),
    "normalize": (NORMAL, 4),
}
BY_WEATHER = (("sun", FIRE), ("rain", WATER), ("sand", ROCK), ("snow", ICE))
BY_TERRAIN = (
    ("electric_terrain", ELECTRIC), ("grassy_terrain", GRASS), ("misty_terrain", FAIRY), ("psychic_terrain", PSYCHIC),
)  # fmt: skip
BY_FORME = (
    ("ivycudgel", "ogerponwellspring", WATER),
    ("ivycudgel", "ogerponhearthflame", FIRE),
    ("ivycudgel", "ogerponcornerstone", ROCK),
    ("aurawheel", "morpekohangry", DARK),
    ("ragingbull", "taurospaldeacombat", FIGHTING),
    ("ragingbull", "taurospaldeablaze", FIRE),
    ("ragingbull", "taurospaldeaaqua", WATER),
    ("terastarstorm", "terapagosstellar", STELLAR),
)
_PLATES = (
    "fist:6 dread:2 flame:7 draco:3 pixie:5 stone:16 zap:4 iron:17 meadow:10 splash:18 icicle:12 mind:15 toxic:14 "
    "sky:8 insect:1 earth:11 spooky:9"
)
_MEMORIES = (
    "bug:1 dark:2 dragon:3 electric:4 fairy:5 fighting:6 fire:7 flying:8 ghost:9 grass:10 ground:11 ice:12 poison:14 "
    "psychic:15 rock:16 steel:17 water:18"
)


def _item_types(pairs: str, ending: str) -> dict[str, int]:
    return {f"{name}{ending}": int(kind) for name, kind in (pair.split(":") for pair in pairs.split())}


ITEM_TYPES = {
    **_item_types(_PLATES, "plate"),
    **_item_types(_MEMORIES, "memory"),
    **_item_types("burn:7 douse:18 shock:4 chill:12", "drive"),
}


def move_type(gen: int, user: Fighter, name: str, move: DamageMove, around: Surroundings) -> tuple[int, bool]:
    """The move's type id, and whether an ability changed it."""
    how = move.type_kind
    if how == kinds.OWN_TYPE or (how == kinds.TERA_TYPE and not user.terastallized):
        return _by_ability(gen, user, move)
    if how == kinds.TERA_TYPE:
        return user.tera, False
    if how == kinds.WEATHER_TYPE:
        return _first(BY_WEATHER, around, move.type), False
    if how == kinds.TERRAIN_TYPE:
        return (_first(BY_TERRAIN, around, move.type) if grounded(gen, user, around) else move.type), False
    if how == kinds.ITEM_TYPE:
        return ITEM_TYPES.get(held(user), move.type), False
    if how == kinds.FIRST_TYPE:
        return user.types[0], False
    if how == kinds.FORME_TYPE:
        for asked, species, kind in BY_FORME:
            if asked == name and user.species.startswith(species):
                return kind, False
    return move.type, False


def _by_ability(gen: int, user: Fighter, move: DamageMove) -> tuple[int, bool]:
    if user.ability == "liquidvoice" and move.mask & FACTS["sound"]:
        return WATER, False
    kind, first = RETYPING.get(user.ability, (0, 99))
    if gen >= first and (move.type == NORMAL or kind == NORMAL) and not move.bits & kinds.STRUGGLES:
        return kind, True
    return move.type, False


def _first(pairs: tuple[tuple[str, int], ...], around: Surroundings, otherwise: int) -> int:
    for fact, kind in pairs:
        if around.facts & FACTS[fact]:
            return kind
    return otherwise
