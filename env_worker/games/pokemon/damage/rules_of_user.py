"""What a user brings to its damage: abilities, items, effects, terrain, the moves themselves.

One line each: names | step | 4096ths | facts that must hold | generations | species prefixes of the holder.
"""

from __future__ import annotations

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
"""
MOVE = """
earthquake bulldoze magnitude | power | 2048 | grassy_terrain target_grounded | 6-9
knockoff | power | 6144 | target_item | 6-9
barbbarrage venoshock | power | 8192 | target_poisoned | 5-9
brine | power | 8192 | target_half | 4-9
hex infernalparade | power | 8192 | target_status | 5-9
wakeupslap | power | 8192 | target_asleep | 4-9
smellingsalts | power | 8192 | target_paralyzed | 3-9
facade | power | 8192 | user_status | 3-9
payback | power | 8192 | slower | 4-9
boltbeak fishiousrend | power | 8192 | faster | 8-9
collisioncourse electrodrift | power | 5461 | super_effective | 9-9
expandingforce | power | 6144 | psychic_terrain user_grounded | 8-9
mistyexplosion | power | 6144 | misty_terrain user_grounded | 8-9
risingvoltage | power | 8192 | electric_terrain target_grounded | 8-9
psyblade | power | 6144 | electric_terrain | 9-9
solarbeam solarblade | power | 2048 | rain | 2-9
solarbeam solarblade | power | 2048 | sand | 3-9
solarbeam solarblade | power | 2048 | snow | 3-9
weatherball | power | 8192 | sun | 3-9
weatherball | power | 8192 | rain | 3-9
weatherball | power | 8192 | sand | 3-9
weatherball | power | 8192 | snow | 3-9
terrainpulse | power | 8192 | electric_terrain user_grounded | 8-9
terrainpulse | power | 8192 | grassy_terrain user_grounded | 8-9
terrainpulse | power | 8192 | misty_terrain user_grounded | 8-9
terrainpulse | power | 8192 | psychic_terrain user_grounded | 8-9
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
