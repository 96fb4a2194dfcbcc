"""Which ability, item, effect, field or screen changes which step of the damage formula, and by how much.

In 4096ths, as the games count (pinned simulator: data/abilities, data/items, data/conditions and their mods).
A rule holds for the generations named and where all its facts do. The tables below have one rule a line:
names | step | 4096ths | facts that must hold | generations | species prefixes of the holder.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from simul.env_worker.games.pokemon.tables.damage.facts import facts

USER_ABILITY = """
technician | power | 6144 | technical | 4-9
aerilate pixilate refrigerate galvanize normalize | power | 4915 | retyped | 7-9
aerilate pixilate refrigerate | power | 5325 | retyped | 6-6
blaze | attack | 6144 | fire user_pinched | 5-9
overgrow | attack | 6144 | grass user_pinched | 5-9
swarm | attack | 6144 | bug user_pinched | 5-9
torrent | attack | 6144 | water user_pinched | 5-9
blaze | power | 6144 | fire user_pinched | 3-4
overgrow | power | 6144 | grass user_pinched | 3-4
swarm | power | 6144 | bug user_pinched | 3-4
torrent | power | 6144 | water user_pinched | 3-4
analytic | power | 5325 | slower | 5-9
darkaura | power | 5448 | dark | 6-9
fairyaura | power | 5448 | fairy | 6-9
defeatist | attack | 2048 | user_weak | 5-9
dragonsmaw | attack | 6144 | dragon | 8-9
flareboost | power | 6144 | user_burned special | 5-9
flowergift | attack | 6144 | physical sun | 4-9
gorillatactics | attack | 6144 | physical | 8-9
guts | attack | 6144 | physical user_status | 3-9
hadronengine | attack | 5461 | special electric_terrain | 9-9
hugepower purepower | attack | 8192 | physical | 3-9
hustle | attack_first | 6144 | physical | 3-9
ironfist | power | 4915 | punch | 4-9
megalauncher | power | 6144 | pulse | 6-9
neuroforce | final | 5120 | super_effective | 7-9
orichalcumpulse | attack | 5461 | physical sun | 9-9
punkrock | power | 5325 | sound | 8-9
reckless | power | 4915 | recoil | 4-9
rockypayload | attack | 6144 | rock | 9-9
sandforce | power | 5325 | sand rock | 5-9
sandforce | power | 5325 | sand ground | 5-9
sandforce | power | 5325 | sand steel | 5-9
sharpness | power | 6144 | slicing | 9-9
sheerforce | power | 5325 | secondary | 5-9
solarpower | attack | 6144 | special sun | 4-9
steelworker steelyspirit | attack | 6144 | steel | 7-9
strongjaw | power | 6144 | bite | 6-9
swordofruin | foe_defence | 3072 | | 9-9
beadsofruin | foe_special_defence | 3072 | | 9-9
tintedlens | final | 8192 | resisted | 4-9
toughclaws | power | 5325 | contact | 6-9
toxicboost | power | 6144 | user_poisoned physical | 5-9
transistor | attack | 6144 | electric | 8-8
transistor | attack | 5325 | electric | 9-9
waterbubble | attack | 8192 | water | 7-9
"""
USER_ITEM = """
choiceband | attack | 6144 | physical | 3-9
choicespecs | attack | 6144 | special | 4-9
lifeorb | middle | 5324 | | 4-4
lifeorb | final | 5324 | | 5-9
expertbelt | final | 4915 | super_effective | 4-9
muscleband | power | 4505 | physical | 4-9
wiseglasses | power | 4505 | special | 4-9
punchingglove | power | 4506 | punch | 9-9
adamantorb adamantcrystal | power | 4915 | steel | 4-9 | dialga
adamantorb adamantcrystal | power | 4915 | dragon | 4-9 | dialga
lustrousorb lustrousglobe | power | 4915 | water | 4-9 | palkia
lustrousorb lustrousglobe | power | 4915 | dragon | 4-9 | palkia
griseousorb griseouscore | power | 4915 | ghost | 4-9 | giratina
griseousorb griseouscore | power | 4915 | dragon | 4-9 | giratina
souldew | power | 4915 | psychic | 7-9 | latias latios
souldew | power | 4915 | dragon | 7-9 | latias latios
souldew | attack | 6144 | special | 3-6 | latias latios
cornerstonemask | power | 4915 | | 9-9 | ogerponcornerstone
hearthflamemask | power | 4915 | | 9-9 | ogerponhearthflame
wellspringmask | power | 4915 | | 9-9 | ogerponwellspring
deepseatooth | attack | 8192 | special | 3-9 | clamperl
lightball | attack | 8192 | special | 2-3 | pikachu
lightball | power | 8192 | | 4-4 | pikachu
lightball | attack | 8192 | | 5-9 | pikachu
thickclub | attack | 8192 | physical | 2-9 | cubone marowak
"""
EFFECTS = """
FLASH_FIRE | attack | 6144 | fire | 5-9
FLASH_FIRE | early | 6144 | fire | 3-4
CHARGE | power | 8192 | electric | 3-9
PROTOSYNTHESISATK QUARKDRIVEATK | attack | 5325 | physical | 9-9
PROTOSYNTHESISSPA QUARKDRIVESPA | attack | 5325 | special | 9-9
SLOW_START | attack | 2048 | physical | 4-9
FALLEN1 | power | 4506 | | 9-9
FALLEN2 | power | 4915 | | 9-9
FALLEN3 | power | 5325 | | 9-9
FALLEN4 | power | 5734 | | 9-9
FALLEN5 | power | 6144 | | 9-9
"""
FIELD = """
any | power | 5325 | electric electric_terrain user_grounded | 8-9
any | power | 5325 | grass grassy_terrain user_grounded | 8-9
any | power | 5325 | psychic psychic_terrain user_grounded | 8-9
any | power | 6144 | electric electric_terrain user_grounded | 6-7
any | power | 6144 | grass grassy_terrain user_grounded | 6-7
any | power | 6144 | psychic psychic_terrain user_grounded | 6-7
any | power | 2048 | dragon misty_terrain target_grounded | 6-9
any | immune | 0 | early psychic_terrain target_grounded | 7-9
"""
MOVE = """
earthquake bulldoze magnitude | power | 2048 | grassy_terrain target_grounded | 6-9
knockoff | power | 6144 | target_item | 6-9
barbbarrage venoshock | power | 8192 | target_poisoned | 5-9
brine | power | 8192 | target_half | 4-9
hex infernalparade | base | 8192 | target_status | 5-9
wakeupslap | base | 8192 | target_asleep | 4-9
smellingsalts | base | 8192 | target_paralyzed | 3-9
facade | power | 8192 | user_status | 3-9
payback | base | 8192 | slower | 4-9
boltbeak fishiousrend | base | 8192 | faster | 8-9
collisioncourse electrodrift | power | 5461 | super_effective | 9-9
expandingforce | power | 6144 | psychic_terrain user_grounded | 8-9
mistyexplosion | power | 6144 | misty_terrain user_grounded | 8-9
risingvoltage | base | 8192 | electric_terrain target_grounded | 8-9
psyblade | power | 6144 | electric_terrain | 9-9
solarbeam solarblade | power | 2048 | rain | 2-9
solarbeam solarblade | power | 2048 | sand | 3-9
solarbeam solarblade | power | 2048 | snow | 3-9
weatherball | base | 8192 | sun | 3-9
weatherball | base | 8192 | rain | 3-9
weatherball | base | 8192 | sand | 3-9
weatherball | base | 8192 | snow | 3-9
terrainpulse | base | 8192 | electric_terrain user_grounded | 8-9
terrainpulse | base | 8192 | grassy_terrain user_grounded | 8-9
terrainpulse | base | 8192 | misty_terrain user_grounded | 8-9
terrainpulse | base | 8192 | psychic_terrain user_grounded | 8-9
"""
_TYPE_ITEMS = """
blackbelt:fighting blackglasses:dark charcoal:fire dragonfang:dragon fairyfeather:fairy hardstone:rock
magnet:electric metalcoat:steel miracleseed:grass mysticwater:water nevermeltice:ice oddincense:psychic
poisonbarb:poison rockincense:rock roseincense:grass seaincense:water sharpbeak:flying silkscarf:normal
silverpowder:bug softsand:ground spelltag:ghost twistedspoon:psychic waveincense:water fistplate:fighting
dreadplate:dark flameplate:fire dracoplate:dragon pixieplate:fairy stoneplate:rock zapplate:electric
ironplate:steel meadowplate:grass splashplate:water icicleplate:ice mindplate:psychic toxicplate:poison
skyplate:flying insectplate:bug earthplate:ground spookyplate:ghost
"""
_GEMS = """
normal fire water electric grass ice fighting poison ground flying psychic bug rock ghost dragon dark
steel fairy
"""


def alike() -> str:
    """Items that differ by their type only."""
    lines = []
    for kind in _GEMS.split():
        lines += [f"{kind}gem | power | 6144 | {kind} | 5-5", f"{kind}gem | power | 5325 | {kind} | 6-9"]
    for pair in _TYPE_ITEMS.split():
        item, kind = pair.split(":")
        lines += [
            f"{item} | power | 4915 | {kind} | 4-9",
            f"{item} | attack | {4300 if item == 'seaincense' else 4505} | {kind} | 3-3",
            f"{item} | final | 4506 | {kind} | 2-2",
        ]
    return "\n".join(lines)


TARGET_ABILITY = """
darkaura | power | 5448 | dark | 6-9
fairyaura | power | 5448 | fairy | 6-9
dryskin | power | 5120 | fire | 4-9
heatproof | power | 2048 | fire | 4-8
heatproof | attack | 2048 | fire | 9-9
thickfat | power | 2048 | fire | 3-4
thickfat | power | 2048 | ice | 3-4
thickfat | attack | 2048 | fire | 5-9
thickfat | attack | 2048 | ice | 5-9
waterbubble | attack | 2048 | fire | 7-9
purifyingsalt | attack | 2048 | ghost | 9-9
tabletsofruin | attack | 3072 | physical | 9-9
vesselofruin | attack | 3072 | special | 9-9
filter solidrock | final | 3072 | super_effective | 4-9
prismarmor | final | 3072 | super_effective | 7-9
multiscale shadowshield | final | 2048 | target_full | 5-9
fluffy | final | 2048 | contact | 7-9
fluffy | final | 8192 | fire | 7-9
icescales | final | 2048 | special | 8-9
punkrock | final | 2048 | sound | 8-9
furcoat | defence | 8192 | | 6-9
marvelscale | defence | 6144 | target_status | 3-9
grasspelt | defence | 6144 | grassy_terrain | 6-9
flowergift | special_defence | 6144 | sun | 4-9
waterabsorb dryskin | immune | 0 | water | 3-9
stormdrain | immune | 0 | water | 5-9
voltabsorb | immune | 0 | electric | 3-9
motordrive | immune | 0 | electric | 4-9
lightningrod | immune | 0 | electric | 5-9
flashfire wellbakedbody | immune | 0 | fire | 3-9
sapsipper | immune | 0 | grass | 5-9
eartheater | immune | 0 | ground | 9-9
bulletproof | immune | 0 | bullet | 6-9
soundproof | immune | 0 | sound | 3-9
windrider | immune | 0 | wind | 9-9
dazzling queenlymajesty armortail | immune | 0 | early | 7-9
"""
TARGET_ITEM = """
assaultvest | special_defence | 6144 | | 6-9
souldew | special_defence | 6144 | | 3-6 | latias latios
deepseascale | special_defence | 8192 | | 3-9 | clamperl
metalpowder | defence | 6144 | | 2-2 | ditto
metalpowder | special_defence | 6144 | | 2-2 | ditto
metalpowder | defence | 8192 | | 3-9 | ditto
chilanberry | final | 2048 | normal | 4-9
"""
TARGET_EFFECTS = """
PROTOSYNTHESISDEF QUARKDRIVEDEF | defence | 5325 | | 9-9
PROTOSYNTHESISSPD QUARKDRIVESPD | special_defence | 5325 | | 9-9
GLAIVE_RUSH | final | 8192 | | 9-9
"""
SCREENS = """
reflect | early | 2048 | physical meets_screens | 3-4
lightscreen | early | 2048 | special meets_screens | 3-4
reflect | final | 2048 | physical meets_screens | 5-9
lightscreen | final | 2048 | special meets_screens | 5-9
auroraveil | final | 2048 | meets_screens | 7-9
"""
SCREENS_OF_DOUBLES = """
reflect | early | 2730 | physical meets_screens | 3-4
lightscreen | early | 2730 | special meets_screens | 3-4
reflect | final | 2703 | physical meets_screens | 5-5
lightscreen | final | 2703 | special meets_screens | 5-5
reflect | final | 2732 | physical meets_screens | 6-9
lightscreen | final | 2732 | special meets_screens | 6-9
auroraveil | final | 2732 | meets_screens | 7-9
"""
_BERRIES = """
occa:fire passho:water wacan:electric rindo:grass yache:ice chople:fighting kebia:poison shuca:ground
coba:flying payapa:psychic tanga:bug charti:rock kasib:ghost haban:dragon colbur:dark babiri:steel
roseli:fairy
"""


def berries() -> str:
    """Rules of the berries that weaken one super effective hit."""
    pairs = [pair.split(":") for pair in _BERRIES.split()]
    return "\n".join(f"{name}berry | final | 2048 | {kind} super_effective | 4-9" for name, kind in pairs)


GRAVITY = """
gravapple | power | 6144 | | 8-9
"""
CRITICAL = """
sniper | final | 6144 | | 4-9
"""
# base: of the power that Technician looks at; attack_first: before all others, rounded by itself; immune: no damage;
# early: gens 3 and 4, before 2 is added; middle: gen 4, after it
STAGE_NAMES = (
    "power", "attack", "defence", "special_defence", "final", "attack_first", "foe_defence", "foe_special_defence",
    "immune", "early", "middle", "base",
)  # fmt: skip


class Rule(NamedTuple):
    """`mask`: facts that must hold; `species`: prefixes of the holder's species id, empty = any."""

    stage: int
    mod: int
    mask: int
    species: tuple[str, ...] = ()


@cache
def rules(gen: int, doubles: bool = False) -> dict[str, dict[str, tuple[Rule, ...]]]:
    """Rules by who brings them (`user_ability`, `target_item`, ...) and its name, in the order they are applied."""
    return {
        "user_ability": _parse(gen, USER_ABILITY),
        "user_item": _parse(gen, USER_ITEM + alike()),
        "user_effect": _parse(gen, EFFECTS),
        "target_ability": _parse(gen, TARGET_ABILITY),
        "target_item": _parse(gen, TARGET_ITEM + berries()),
        "target_effect": _parse(gen, TARGET_EFFECTS),
        "screen": _parse(gen, SCREENS_OF_DOUBLES if doubles else SCREENS),
        "field": _parse(gen, FIELD),
        "move": _parse(gen, MOVE),
        "gravity": _parse(gen, GRAVITY),
        "critical": _parse(gen, CRITICAL),
    }


def _parse(gen: int, text: str) -> dict[str, tuple[Rule, ...]]:
    table: dict[str, list[Rule]] = {}
    for line in filter(None, text.split("\n")):
        names, stage, mod, asked, gens, *species = (part.strip() for part in line.split("|"))
        first, last = gens.split("-")
        if int(first) <= gen <= int(last):
            rule = Rule(STAGE_NAMES.index(stage), int(mod), facts(asked), tuple(species[0].split()) if species else ())
            for name in names.split():
                table.setdefault(name, []).append(rule)
    return {name: tuple(found) for name, found in table.items()}
