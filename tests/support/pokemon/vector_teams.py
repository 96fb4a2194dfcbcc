"""Teams of the golden vectors, so that rare slices of the observation occur: species/ability/moves/item, see `team`."""

from __future__ import annotations

from tests.support.pokemon.audit.teams import team

# Fours in which every gimmick of generations 7 to 9 can occur.
GIMMICKS_TEXT = """
charizard/blaze/flamethrower,solarbeam,protect,willowisp/charizarditey
snorlax/thickfat/bodyslam,bellydrum,acupressure,yawn/normaliumz
gardevoir/trace/hypervoice,psychic,followme,healpulse/gardevoirite
rotomwash/levitate/hydropump,discharge,thunderwave,allyswitch/sitrusberry

kangaskhan/scrappy/fakeout,return,suckerpunch,protect/kangaskhanite
tapufini/mistysurge/muddywater,moonblast,taunt,healpulse/fairiumz
lucario/innerfocus/closecombat,bulletpunch,swordsdance,icywind/lucarionite
garchomp/roughskin/earthquake,dragonclaw,tailwind,wideguard/dragoniumz

salamence/intimidate/doubleedge,dragondance,roost,tailwind/salamencite
mimikyu/disguise/playrough,shadowclaw,trickroom,curse/ghostiumz
tapulele/psychicsurge/psychic,moonblast,helpinghand,trick/psychiumz
togekiss/serenegrace/airslash,dazzlinggleam,skyattack,metronome/flyiniumz
"""
# Field, sides and hindrances.
EFFECTS_TEXT = """
ironvaliant/quarkdrive/encore,disable,taunt,lightscreen/boosterenergy
garganacl/purifyingsalt/saltcure,recover,stealthrock,reflect/leftovers
pawmot/voltabsorb/revivalblessing,charge,wildcharge,fakeout/
ninetalesalola/snowwarning/auroraveil,blizzard,powdersnow,safeguard/lightclay
whimsicott/prankster/leechseed,tailwind,torment,helpinghand/
galvantula/compoundeyes/stickyweb,toxicspikes,thunder,electroweb/

greattusk/protosynthesis/spikes,rapidspin,headlongrush,icespinner/boosterenergy
heatran/flashfire/magmastorm,lavaplume,willowisp,safeguard/
rayquaza/deltastream/dragonascent,hyperbeam,mist,dragondance/
rabsca/psychicsurge/revivalblessing,yawn,followme,healpulse/
gengar/cursedbody/perishsong,hypnosis,poisongas,substitute/
smeargle/owntempo/acupressure,batonpass,confuseray,gravity/

tyranitar/sandstream/rockslide,crunch,thunderwave,protect/
torkoal/drought/lavaplume,solarbeam,rest,sleeptalk/
tapukoko/electricsurge/discharge,lightscreen,reflect,naturesmadness/
tapubulu/grassysurge/leechseed,hornleech,substitute,protect/
politoed/drizzle/icebeam,hypnosis,perishsong,helpinghand/
bellibolt/electromorphosis/gigaimpact,triattack,discharge,charge/
"""


def _teams(text: str) -> tuple[str, ...]:
    return tuple(team(*members.split("\n")) for members in text.strip().split("\n\n"))


GIMMICKS = _teams(GIMMICKS_TEXT)
EFFECTS = _teams(EFFECTS_TEXT)
