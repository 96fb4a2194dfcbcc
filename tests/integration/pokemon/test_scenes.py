"""Rare situations, each in a battle played for it: the observation against the simulator's own state."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

from simul.env_worker.games.pokemon.tables.vocabulary import NO_ITEM, vocabulary
from tests.support.pokemon.audit.battles import AuditedRow, BattleJob, audited_rows, rows_by_name, words
from tests.support.pokemon.audit.compare import Audit
from tests.support.pokemon.audit.teams import team
from tests.support.pokemon.audit.view import places
from tests.support.pokemon.hands import type_id
from tests.support.pokemon.views import DOUBLES

PARALYSED = [0, 0, 1, 0, 0, 0]  # as a status
BOUND, FLASH_FIRE = 9, 11  # of the volatiles
LOCKED = ("mask", "can_gimmick", "move.pp")  # of a move that gen 1 goes on with: the simulator takes any choice
WALL = "Blissey/naturalcure/splash,softboiled"


class Scene(NamedTuple):
    """A battle, and what must come up at least once.

    wanted: (seat, slice) -> numbers that some observation has.
    unjudged: kinds of slices that the audit cannot tell in this battle.
    doubles: a team preview comes before, and the first two of each team stand at first.
    """

    name: str
    gen: int
    teams: tuple[str, str]
    says: tuple[str, str]
    wanted: dict[tuple[int, str], list[float]] = {}
    unjudged: tuple[str, ...] = ()
    doubles: bool = False


def named(packed: str, *names: str) -> str:
    """The same team with nicknames."""
    return "]".join(name + member for name, member in zip(names, packed.split("]"), strict=True))


def species(name: str) -> list[float]:
    return [float(vocabulary().species[name])]


def ability(name: str) -> list[float]:
    return [float(vocabulary().ability[name])]


def eighths(*numbers: int) -> list[float]:
    return [number / 8 for number in numbers]


def item(name: str) -> list[float]:
    return [float(vocabulary().item[name])]


def move_id(name: str) -> list[float]:
    return [float(vocabulary().move[name])]


PASSING = team("Scizor/technician/swordsdance,substitute,batonpass", "Snorlax/thickfat/splash")
SEEDING = team("Venusaur/overgrow/leechseed,splash")
PASSED = {(seat, f"global.{who}_active.boosts"): [2 / 6, 0, 0, 0, 0, 0, 0] for seat, who in ((0, "own"), (1, "foe"))}
MODEL = "Snorlax/thickfat/splash"
MASKED = "Zoroark/illusion/splash,nastyplot"
FULL = "serious|252,252,252,252,252,252"  # stat experience of gen 1's random battles
DISGUISED = team("Zoroark/illusion/splash", "Garchomp/roughskin/splash", level=100)
PRESSING_TEAM = team("Absol/pressure/swordsdance", WALL)
PRESSING = team("Absol/pressure/swordsdance")
HITTER = team("Gyarados/intimidate/splash,surf,seismictoss")
TWINS = named(team("Snorlax/thickfat/tackle", "Snorlax/immunity/leer"), "One", "Other")
SCENES = (
    Scene("rain", 9, (team("Pelipper/drizzle/splash,roost"), team(WALL)), ("1 1 1 1 1 1", "1 1 1 1 1 1"),
          {(0, "global.weather_turns"): eighths(4)}),
    *(Scene(f"paralysis, gen {gen}", gen, (team("Crobat/innerfocus/splash"), team("Snorlax/thickfat/thunderwave")),
            ("1 1 1 1", "1 1 1 1"), {(0, "own.0.status"): PARALYSED, (0, "own.0.moves_first"): [first]})
      for gen, first in ((6, -1), (7, 1))),
    *(Scene(f"baton pass, gen {gen}", gen, (PASSING, SEEDING), ("1 2 3 s2 1", "1 2 2 2 2"),
            PASSED) for gen in (2, 3, 4, 9)),
    Scene("psych up", 9, (team("Snorlax/thickfat/psychup,splash"), team("Blissey/naturalcure/calmmind,splash")),
          ("2 1 2", "1 2 2"), {(0, "global.own_active.boosts"): [0, 0, 1 / 6, 1 / 6, 0, 0, 0]}),
    Scene("shed tail", 9, (team("Cyclizar/regenerator/swordsdance,shedtail", "Snorlax/thickfat/splash"), team(WALL)),
          ("1 2 s2 1", "1 1 1 1")),
    Scene("a copy's stats, gen 1", 1, (team(MODEL, level=70, spread=FULL), team("Mew//transform", spread=FULL)),
          ("1 1 1", "1 1 1")),
    *(Scene(f"a copy's stats, gen {gen}", gen, (team(MODEL, level=70), team("Mew/synchronize/transform", level=90)),
            ("1 1 1", "1 1 1")) for gen in (4, 9)),
    Scene("a copy of one's own", 9, (team(MODEL, spread="adamant|0,252,0,0,4,252"), team("Ditto/imposter/transform")),
          ("1 1 1", "1 1 1"), {}, ("own.stats",)),
    Scene("mega evolution", 7, (team("Charizard/blaze/splash/charizarditex", WALL), team(WALL)),
          ("1m 1 s2 s2 1", "1 1 1 1 1"),
          {(1, "foe.0.species"): species("charizardmegax"), (1, "foe.0.item"): item("charizarditex")}),
    Scene("an ability that mega evolution has brought", 6,
          (team("Sableye/prankster/splash,memento/sablenite", WALL), team("Amoonguss/regenerator/toxic,splash")),
          ("1m 2 s2 1", "1 2 2"), {(1, "foe.0.ability"): ability("magicbounce")}),
    Scene("ultra burst", 7,
          (team("Necrozma-Dusk-Mane/prismarmor/splash/ultranecroziumz", "Charizard/blaze/splash/charizarditex"),
           team(MODEL, WALL)), ("1u+1m 1+1", "1+1 1+1"),
          {(0, "global.self.can_gimmick"): [1.0, 0.0, 0.0, 0.0], (0, "global.own_side.gimmick_used"): [1.0],
           (1, "foe.0.species"): species("necrozmaultra"), (1, "foe.1.species"): species("charizardmegax")},
          doubles=True),
    Scene("stances", 9, (team("Aegislash/stancechange/tackle,kingsshield", WALL), team(WALL)),
          ("1 2 1 s2 s2 1", "1 1 1 1 1 1"), {(1, "foe.0.species"): species("aegislashblade")}),
    Scene("zen mode ends where it transforms", 6,
          (team("Darmanitan/zenmode/bellydrum,transform"), team("Blissey/naturalcure/seismictoss,splash")),
          ("1 2 1", "1 2 2"),
          {(1, "foe.0.species"): species("darmanitanzen"), (1, "global.foe_active.transformed"): [1.0]}),
    Scene("a meteor", 9, (team("Minior/shieldsdown/splash"), team("Golem/sturdy/rockthrow,tackle")),
          ("1 1 1 1 1 1", "1 1 1 1 1 1"), {(1, "foe.0.species"): species("miniormeteor")}),
    Scene("a broken disguise", 9, (team("Mimikyu/disguise/splash"), team("Gyarados/moxie/waterfall")),
          ("1 1", "1 1"), {(1, "foe.0.species"): species("mimikyubusted")}),
    Scene("an embodied ogerpon", 9, (team("Ogerpon-Wellspring/waterabsorb/splash/wellspringmask"), team(WALL)),
          ("1t 1", "1 1"), {(1, "foe.0.species"): species("ogerponwellspringtera")}),
    Scene("solar beam in the sun", 9, (team("Ninetales/drought/solarbeam"), team(WALL)), ("1 1", "1 1"),
          {(0, "global.own_active.last_move"): move_id("solarbeam")}),
    Scene("power herb", 9, (team("Venusaur/overgrow/solarbeam/powerherb"), team(WALL)), ("1 1 1 1", "1 1 1 1"),
          {(1, "global.foe_active.preparing"): [1.0]}),
    Scene("max moves", 8, (team("Snorlax/thickfat/tackle,splash"), team(WALL)), ("1d 2 2", "1 1 1"),
          {(seat, f"global.{who}_active.last_move"): move_id("maxstrike") for seat, who in ((0, "own"), (1, "foe"))}
          | {(0, "global.own_active.protect_count"): [1 / 3]}),
    Scene("max moves after Encore", 8,
          (team("Blissey/naturalcure/tackle,splash"), team("Snorlax/thickfat/encore,splash")), ("1 1d 2 1", "1 2 2 2"),
          {(0, "move.1.usable"): [0.0], (0, "global.own_active.last_move"): move_id("maxguard")}),
    Scene("a z-move", 7, (team("Snorlax/thickfat/tackle,splash/normaliumz"), team(WALL)), ("1z 2", "1 1"),
          {(1, "global.foe_active.last_move"): move_id("breakneckblitz")}),
    Scene("a status z-move", 7, (team("Snorlax/thickfat/tackle,splash/normaliumz"), team(WALL)), ("2z 2", "1 1"),
          {(1, "global.foe_active.last_move"): move_id("splash")}),
    Scene("a block that ends", 9, (team("Snorlax/thickfat/block", WALL), team(WALL)), ("1 s2 1", "1 1 1")),
    Scene("illusion", 9, (DISGUISED, HITTER), ("1 1 1", "1 2 1"),
          {(0, "global.own_active.boosts"): [-1 / 6, 0, 0, 0, 0, 0, 0], (1, "foe.1.species"): species("zoroark")}),
    *(Scene(f"trace, gen {gen}", gen, (team("Porygon2/trace/splash"), HITTER), ("1 1", "1 1"),
            {(0, "own.0.ability"): ability("intimidate")}) for gen in (3, 4, 5, 6, 9)),
    *(Scene(f"poison heal, gen {gen}", gen, (team("Breloom/poisonheal/splash/toxicorb"), team(WALL)),
            ("1 1 1 1 1", "1 1 1 1 1"), {(1, "foe.0.toxic_stage"): [3 / 15]}) for gen in (4, 9)),
    Scene("added types", 7, (team("Snorlax/thickfat/splash"), team("Trevenant/frisk/trickortreat,forestscurse")),
          ("1 1 1", "1 2 1"), {(0, "own.0.types"): [type_id("normal"), type_id("grass")]}),
    *(Scene(f"{move}, gen {gen}", gen, (team(f"Clefable//{move}", "Tauros//tackle"), team("Snorlax//splash")),
            ("1 1 1 1", "1 1 1 1"), {(1, "foe.0.moves"): [move_id(move)[0], 0, 0, 0]})
      for gen, move in ((1, "metronome"), (2, "metronome"), (3, "assist"), (3, "naturepower"), (7, "assist"))),
    *(Scene(f"{move}, gen {gen}", gen, (team(f"Dragonite//{move}"), team("Snorlax//splash")),
            ("1 1 1 1 1 1", "1 1 1 1 1 1"), {(1, "foe.0.moves"): [move_id(move)[0], 0, 0, 0]},
            LOCKED if move == "bide" else ())
      for gen, move in ((1, "thrash"), (1, "fly"), (1, "bide"), (2, "fly"), (3, "fly"), (2, "thrash"), (2, "outrage"),
                        (2, "petaldance"), (2, "rollout"))),
    Scene("rollout into protect, gen 2", 2, (team("Dragonite//rollout"), team("Snorlax//splash,protect")),
          ("1 1 1 1 1", "1 2 1 2 1")),
    Scene("sleep ends recharging", 1, (team("Tauros//hyperbeam"), team("Slowbro//sing")), ("1 1 1 1 1", "1 1 1 1 1"),
          {(1, "foe.0.status"): [0, 0, 0, 0, 1, 0]}),
    Scene("a trapping move ends recharging", 1, (team("Tauros//hyperbeam"), team("Slowbro//wrap")),
          ("1 1 1 1 1", "1 1 1 1 1"), {(1, "global.foe_active.volatiles"): [*[0] * BOUND, 1]}, LOCKED),
    Scene("a flinch ends recharging", 1, (team("Tauros//hyperbeam"), team("Golem//headbutt")),
          ("1 1 1 1 1 1 1 1", "1 1 1 1 1 1 1 1")),
    Scene("mimic, gen 1", 1, (team("Mew//mimic", "Tauros//tackle"), team("Snorlax//splash")),
          ("1 1 1 s2 1", "1 1 1 1 1"), {(0, "own.0.moves_pp"): [13 / 16], (1, "foe.0.moves_pp"): [13 / 16]}),
    Scene("a protecting move that fails, gen 2", 2, (team("Snorlax//protect"), team("Tauros//splash")),
          ("1 1 1 1 1 1", "1 1 1 1 1 1"), {(0, "global.own_active.protect_count"): [1 / 3]}),
    Scene("pursuit on the way out", 7,
          (team("Bisharp/defiant/pursuit"), team("Snorlax/thickfat/splash", "Blissey/naturalcure/splash")),
          ("1 1", "s2 1"), {(1, "foe.0.moves"): [move_id("pursuit")[0], 0, 0, 0]}),
    Scene("flash fire", 9, (team("Heatran/flashfire/ember"), team("Blissey/naturalcure/ember,splash")),
          ("1 1 1", "1 2 2"), {(1, "global.foe_active.volatiles"): [*[0] * FLASH_FIRE, 1]}),
    Scene("bestow", 9, (team("Snorlax/thickfat/bestow/leftovers"), team("Gyarados/moxie/splash")),
          ("1 1", "1 1"), {(0, "foe.0.item"): item("leftovers")}),
    Scene("a sleeper's disguise", 9,
          (team("Snorlax/thickfat/splash", "Zoroark/illusion/splash"),
           team("Amoonguss/regenerator/spore,splash,toxic")),
          ("1 1 s2 1 1", "1 2 3 2 2"), {(0, "own.0.sleep_turns"): [1 / 7], (0, "own.1.toxic_stage"): [1 / 15]}),
    *(Scene(f"a sleeper in disguise, gen {gen}", gen,
            (team("Zoroark/illusion/splash", "Snorlax/thickfat/splash"), team("Amoonguss/regenerator/spore,splash")),
            ("1 1 s2 s2 1", "1 2 2 2 2"), {(0, "own.0.sleep_turns"): [1 / 7]}) for gen in (5, 9)),
    Scene("a healer's disguise", 9,
          (team("Slowbro/regenerator/splash", "Zoroark/illusion/splash"), team("Gyarados/moxie/nightshade,splash")),
          ("1 1 s2 1", "1 1 2 2")),
    *(Scene(f"a faint in disguise, gen {gen}", gen,
            (team("Snorlax/thickfat/splash", "Zoroark/illusion/memento"), team(WALL)),
            ("s2 1 s2 1 1", "1 1 1 1 1"), {(1, "global.foe_side.alive"): [1 / 6]}) for gen in (5, 9)),
    Scene("a flight in gen 1", 1, (team("Dragonite//fly"), team("Snorlax//splash")), ("1 1 1", "1 1 1"),
          {(0, "global.own_active.preparing"): [1.0]}),
    Scene("a disguise that holds", 9, (DISGUISED, HITTER), ("1 1 1", "1 1 2"), {(0, "own.0.revealed"): [0.0]}),
    Scene("role play", 7, (team("Gogoat/grasspelt/roleplay", WALL), team("Cubone/battlearmor/splash")),
          ("1 s2 1", "1 1 1"), {(1, "foe.0.ability"): ability("grasspelt")}),
    Scene("sketch", 7, (team("Smeargle/owntempo/sketch"), team("Electrode/static/tackle")), ("1 1 1", "1 1 1"),
          {(1, "foe.0.moves"): [move_id("tackle")[0], 0, 0, 0]}),
    Scene("metronome calls a move of its user, gen 1", 1,
          (team("Clefable//metronome,pound"), team("Snorlax//splash")), ("1 1 1 1 1 1", "1 1 1 1 1 1")),
    Scene("lunar dance", 4,
          (team("Clefable/magicguard/softboiled", "Cresselia/levitate/lunardance"), team("Snorlax/thickfat/tackle")),
          ("1 s2 1 s2 1", "1 1 1 1")),
    *(Scene(f"spite, gen {gen}", gen, (team("Misdreavus/levitate/spite,splash"), team("Snorlax/thickfat/tackle")),
            ("1 1 2", "1 1 1")) for gen in (3, 4, 9)),
    Scene("grudge", 7, (team("Shedinja/wonderguard/grudge", WALL), team("Torkoal/whitesmoke/ember")),
          ("1 s2 1", "1 1")),
    *(Scene(f"eerie spell, gen {gen}", gen, (team("Slowking-Galar/owntempo/eeriespell"), team(WALL)),
            ("1 1", "1 1")) for gen in (8, 9)),
    Scene("curse under one's own pressure", 4, (team("Absol/pressure/curse"), team(WALL)), ("1 1", "1 1"),
          {(1, "foe.0.moves_pp"): [15 / 16, 0, 0, 0]}),
    Scene("me first under pressure", 4,
          (team("Alakazam/synchronize/mefirst"), team("Absol/pressure/leer,tackle")), ("1 1 1", "2 1 1"),
          {(1, "foe.0.moves_pp"): [29 / 32, 0, 0, 0]}),
    *(Scene(f"{move} under pressure, gen {gen}", gen, (team(f"Alakazam/synchronize/{move}"), PRESSING),
            ("1 1 1", "1 1 1"), {(1, "foe.0.moves_pp"): [left, 0, 0, 0]})
      for gen, move, left in ((4, "naturepower", 28 / 32), (7, "naturepower", 26 / 32),
                              (4, "assist", 30 / 32), (4, "metronome", 14 / 16), (5, "mirrormove", 30 / 32),
                              (4, "snatch", 12 / 16), (7, "snatch", 12 / 16), (7, "imprison", 12 / 16),
                              (7, "stealthrock", 28 / 32), (7, "helpinghand", 30 / 32))),
    *(Scene(f"pursuit of pressure on the way out, gen {gen}", gen, (team("Houndoom/flashfire/pursuit"), PRESSING_TEAM),
            ("1 1", "s2 1")) for gen in (3, 4, 7)),
    *(Scene(f"sleep talk under pressure, gen {gen}", gen,
            (team("Snorlax/thickfat/rest,sleeptalk,tackle"), team("Absol/pressure/leer")),
            ("1 2 2", "1 1 1")) for gen in (3, 4, 9)),
    Scene("pressure without effect", 9, (team("Alakazam/synchronize/gastroacid,splash"), team("Absol/pressure/splash")),
          ("1 2 2", "1 1 1")),
    Scene("pressure in neutralizing gas", 9,
          (team("Weezing/neutralizinggas/tackle"), team("Absol/pressure/tackle")), ("1 1", "1 1")),
    *(Scene(f"skill swap, gen {gen}", gen,
            (team("Alakazam/synchronize/skillswap,splash", WALL), team("Ninjask/speedboost/splash", WALL)),
            ("1 2 s2 1", "1 1 1 s2 1"), {(0, "foe.0.ability"): ability("synchronize")}) for gen in (3, 4, 5)),
    Scene("skill swap of named abilities", 5,
          (team("Alakazam/synchronize/skillswap", WALL), team("Ninjask/speedboost/splash", WALL)),
          ("1 s2 1 1", "1 1 s2 1"), {(0, "foe.0.ability"): ability("speedboost")}),
    Scene("a copy's ability shows", 7,
          (team("Bouffalant/sapsipper/transform", WALL), team("Ninjask/speedboost/splash", WALL)),
          ("1 1 s2 1", "1 1 1"), {(1, "foe.0.ability"): ability("speedboost")}),
    *(Scene(f"an imposter loses an ability that its model has not shown, {name}", 5,
            (team("Ditto/imposter/transform", WALL), team(f"Landorus/sheerforce/{move},splash", other)), says,
            {(0, "foe.0.ability"): ability("sheerforce")})
      for name, move, other, says in (
          ("Skill Swap", "skillswap", "Breloom/poisonheal/splash", ("1 2 2", "s2 1 1")),
          ("Worry Seed", "leer", "Breloom/poisonheal/worryseed", ("2 2 2", "s2 1 1")),
          ("Mummy", "bite", "Cofagrigus/mummy/splash", ("1 2 2", "s2 1 1")))),
    *(Scene(f"imposter at the start, gen {gen}", gen,
            (team("Ditto/imposter/transform", WALL), team("Snorlax/thickfat/splash,tackle")), ("1 1 s2", "1 1 1"),
            {(1, "foe.0.ability"): ability("thickfat"),
             (1, "foe.0.moves"): [*move_id("splash"), *move_id("tackle"), 0, 0]}) for gen in (5, 9)),
    Scene("a mega evolution traces", 7, (team("Alakazam/magicguard/splash/alakazite", WALL), team(MODEL)),
          ("1m 1 s2 s2 1", "1 1 1 1 1"), {(1, "foe.0.ability"): ability("thickfat")}),
    *(Scene(f"hidden power of a copy, gen {gen}", gen,
            (team("Mew/synchronize/transform,splash"), team("Snorlax/thickfat/hiddenpowerice,splash")),
            ("1 1 1", "2 2 2"), {(1, "foe.0.moves"): [*move_id("hiddenpower"), *move_id("splash"), 0, 0]})
      for gen in (4, 7)),
    *(Scene(f"the mega evolution of a copy, gen {gen}", gen,
            (team("Charizard/blaze/transform/charizarditex", WALL), team(MODEL)), ("1 1m 1 s2 s2 1", "1 1 1 1 1 1"),
            {(1, "foe.0.species"): species("charizardmegax")}) for gen in (6, 7)),
    Scene("entrainment of a mega evolution", 7,
          (team("Charizard/blaze/splash/charizarditex", WALL), team("Volcanion/waterabsorb/entrainment")),
          ("1m 1 s2 s2 1", "1 1 1 1 1"), {(1, "foe.0.ability"): ability("waterabsorb")}),
    Scene("gastro acid on a traced ability", 4, (team("Porygon2/trace/splash"), team("Snorlax/thickfat/gastroacid")),
          ("1 1", "1 1"), {(1, "foe.0.ability"): ability("thickfat")}),
    Scene("a meteor transforms", 9, (team("Minior/shieldsdown/transform", WALL), team(MODEL)),
          ("1 1 s2 1", "1 1 1 1"), {(1, "foe.0.species"): species("minior")}),
    Scene("a terastallized forme", 9, (team("Morpeko/hungerswitch/leer", WALL), team(WALL)),
          ("1 1t s2 1", "1 1 1 1"), {(1, "foe.0.species"): species("morpekohangry")}),
    Scene("power trick", 7,
          (team("Shuckle/sturdy/powertrick,batonpass", "Snorlax/thickfat/splash"), team(WALL)),
          ("1 2 s2 1", "1 1 1 1")),
    Scene("power trick twice", 4, (team("Shuckle/sturdy/powertrick"), team(WALL)), ("1 1 1", "1 1 1")),
    Scene("a copy after power trick", 4, (team("Shuckle/sturdy/powertrick"), team("Mew/synchronize/transform,splash")),
          ("1 1 1", "2 1 1")),
    *(Scene(f"a forme after conversion, gen {gen}", gen,
            (team("Castform/forecast/conversion,sunnyday,thunderbolt"), team(WALL)), ("1 2 1", "1 1 1"),
            {(1, "foe.0.types"): [type_id("fire"), 0.0]}) for gen in (3, 9)),
    *(Scene(f"sketch, gen {gen}", gen, (team("Smeargle/owntempo/sketch"), team("Electrode/static/tackle")),
            ("1 1 1", "1 1 1"), {(1, "foe.0.moves"): [move_id("tackle")[0], 0, 0, 0]})
      for gen in (3, 4)),
    *(Scene(f"mimic, gen {gen}", gen,
            (team("Pikachu/static/mimic,splash", WALL), team("Golem/sturdy/leer")),
            ("2 1 1 s2 1", "1 1 1 1 1")) for gen in (2, 4, 7)),
    *(Scene(f"what a line names as a cause, gen {gen}", gen,
            (team("Breloom/poisonheal/splash/toxicorb"), team("Blissey/naturalcure/tackle")), ("1 1 1", "1 1 1"),
            {(1, "foe.0.ability"): ability("poisonheal"), (1, "foe.0.item"): item("toxicorb")})
      for gen in (4, 9)),
    Scene("shell bell", 5, (team("Gyarados/moxie/tackle/shellbell"), team("Blissey/naturalcure/tackle")),
          ("1 1 1", "1 1 1"), {(1, "foe.0.item"): item("shellbell")}),
    Scene("neutralizing gas is an ability", 9, (team("Weezing/neutralizinggas/tackle"), team(WALL)), ("1", "1"),
          {(1, "foe.0.ability"): ability("neutralizinggas")}),
    Scene("switcheroo with one in disguise", 6,
          (team("Ekans/shedskin/switcheroo/leftovers"),
           team(WALL, "Zoroark/illusion/splash/lifeorb", "Snorlax/thickfat/splash/airballoon")),
          ("1 1", "s2 1"), {(1, "foe.0.item"): item("lifeorb")}),
    Scene("the copied one shows its ability", 6,
          (team("Breloom/poisonheal/tackle/toxicorb"), team("Mew/synchronize/transform")),
          ("1 1 1 1", "1 1 1 1"), {(1, "own.0.ability"): ability("poisonheal")}),
    Scene("the copied ability shows", 6,
          (team("Breloom/poisonheal/tackle"), team("Mew/synchronize/transform/toxicorb")),
          ("1 1 1 1", "1 1 1 1"), {(1, "foe.0.ability"): ability("poisonheal")}),
    Scene("transform brings few pp, gen 4", 4, (team(WALL), team("Ditto/limber/transform")), ("1 1", "1 1"),
          {(1, "own.0.moves_pp"): [5 / 64, 5 / 10]}),
    *(Scene(f"a mimicked move has few pp, gen {gen}", gen, (team("Golem/sturdy/rest"), team("Mew/synchronize/mimic")),
            ("1 1 1", "1 1 1"), {(1, "own.0.moves_pp"): [left], (0, "foe.0.moves_pp"): [left]})
      for gen, left in ((4, 5 / 16), (9, 1))),
    Scene("trump card has no pp ups", 6, (team("Gengar/cursedbody/trumpcard"), team("Golem/sturdy/tackle")),
          ("1 1", "1 1"), {(1, "foe.0.moves_pp"): [4 / 5]}),
    Scene("a frustration without power, gen 2", 2, (team("Snorlax//frustration"), team("Golem//splash")), ("1", "1"),
          {(0, "own.0.moves"): move_id("frustration")}),
    Scene("mirror move calls a move of its user, gen 1", 1,
          (team("Pidgeot//mirrormove,fly"), team("Dodrio//fly")), ("2 1 1 1 1 1", "1 1 1 1 1 1"), {}, LOCKED),
    Scene("one wrap after another, gen 1", 1, (team("Electrode//wrap"), team("Cloyster//splash")),
          ("1 " * 40, "1 " * 40), {}, LOCKED),
    Scene("an eaten berry", 9,
          (team("Snorlax/thickfat/splash/jabocaberry"), team("Gyarados/moxie/waterfall/leftovers")),
          ("1 1", "1 1"), {(1, "foe.0.item"): item(NO_ITEM)}),
    *(Scene(f"a trapper passes, gen {gen}", gen,
            (team("Umbreon/synchronize/meanlook,batonpass", "Snorlax/thickfat/splash"), team(WALL)),
            ("1 2 s2 1", "1 1 1"), {(0, "global.foe_active.volatiles"): [*[0] * BOUND, 1]}) for gen in (4, 5)),
    Scene("a charge that sleep ends", 9,
          (team("Snorlax/thickfat/solarbeam"), team("Breloom/technician/splash,spore")), ("1 1 1", "1 2 1"),
          {(seat, f"global.{who}_active.preparing"): [1.0] for seat, who in ((0, "own"), (1, "foe"))}),
    Scene("a sleeper flinches", 9,
          (team("Snorlax/thickfat/sleeptalk,splash"), team("Jirachi/serenegrace/spore,headbutt")),
          ("2 1 1 1 1", "1 2 2 2 2"), {(1, "foe.0.sleep_turns"): [1 / 7]}),
    Scene("a sleeper comes in again, gen 5", 5,
          (team("Snorlax/thickfat/splash", WALL), team("Breloom/technician/spore")), ("1 1 s2 s2 1", "1 1 1 1 1"),
          {(1, "foe.0.sleep_turns"): [1 / 7]}),
    Scene("asleep in gen 1", 1, (team("Snorlax//splash,bodyslam", "Slowbro//surf"), team("Jynx//spore")),
          ("1 1 1", "1 1 1"), {(0, "own.0.status"): [0, 0, 0, 0, 1, 0]}),
    Scene("an imposter of a team mate's kind", 9,
          (team("Slowbro/oblivious/splash", "Ditto/imposter/transform", "Garchomp/roughskin/earthquake"),
           team("Garchomp/roughskin/swordsdance,protect,dragonclaw,firefang")),
          ("s2 2 2 s3 1", "1 1 1 1 1"), {(0, "move.3.id"): move_id("firefang")}),
    Scene("revival blessing", 9,
          (team("Pawmot/ironfist/revivalblessing", "Slowbro/oblivious/memento", "Torkoal/drought/splash"), team(WALL)),
          ("s2 1 s2 1 s2 1", "1 1 1 1"), {(0, "global.reviving"): [1.0]}),
    Scene("struggle", 9, (team("Shuckle/sturdy/splash,calmmind", WALL), team("Whimsicott/prankster/taunt")),
          ("1 1 1", "1 1 1"), {(0, "move.0.id"): move_id("struggle")}),
    Scene("recharging", 9, (team("Necrozma/prismarmor/prismaticlaser,splash", WALL), team(WALL)), ("1 1 1", "1 1 1"),
          {(seat, f"global.{who}_active.recharging"): [1.0] for seat, who in ((0, "own"), (1, "foe"))}),
    Scene("forced switches", 9,
          (team("Slowbro/oblivious/memento", "Torkoal/drought/uturn", "Ditto/limber/splash"), team(WALL)),
          ("1 s2 1 s3 1", "1 1 1"), {(0, "global.force_switch"): [1.0]}),
    Scene("maybe trapped", 9, (team("Ditto/limber/splash", WALL), team("Gothitelle/shadowtag/splash")),
          ("s2 1", "1 1"), {(0, "global.maybe_trapped"): [1.0], (0, "global.trapped"): [1.0]}),
    Scene("two of a kind", 9, (TWINS, TWINS), ("1 s2 1 s2 1", "1 1 s2 1 s2"),
          {(seat, f"{whose}.{place}.moves"): [*move_id(move), 0, 0, 0]
           for seat, whose in ((0, "own"), (1, "foe")) for place, move in ((0, "tackle"), (1, "leer"))}),
    Scene("a disguise of one that has terastallized", 9,
          (team("Zoroark/illusion/splash", "Snorlax/thickfat/splash", "Garchomp/roughskin/splash"), HITTER),
          ("s3 1t s3 1 1", "1 1 1 1 1"), {(0, "own.2.terastallized"): [1.0]}),
    *(Scene(f"a type added to a disguise, {when}", 7,
            (team("Snorlax/thickfat/splash", "Zoroark/illusion/splash", "Hydreigon/levitate/splash"),
             team("Trevenant/frisk/forestscurse,splash,tackle")), says,
            {(0, "own.1.types"): [type_id("dark"), type_id("grass")]})
      for when, says in (("as it comes in", ("s2 1", "1 2")), ("which breaks", ("s2 1 1", "1 3 2")))),
    Scene("a stellar one keeps its types", 9,
          (f"{team(MODEL)},,,,,Stellar", team("Vaporeon/waterabsorb/soak,splash")), ("1 1t 1", "1 2 2"),
          {(seat, f"{whose}.0.types"): [type_id("water"), 0] for seat, whose in ((0, "own"), (1, "foe"))}),
    Scene("one of two with illusion in disguise", 9,
          (team("Zorua/illusion/splash,nastyplot", "Snorlax/thickfat/splash", "Zoroark/illusion/splash"),
           team("Umbreon/synchronize/splash,meanlook")), ("2 1 1 1", "1 2 1 1")),
    Scene("a move that goes on", 9, (team("Dragonite/multiscale/outrage,splash"), team(WALL)), ("1 1 1", "1 1 1"),
          {(0, "move.0.pp"): [15 / 16], (0, "move.1.pp"): [1.0]}),
    Scene("one that commands", 9,
          (team("Tatsugiri/commander/splash", "Dondozo/oblivious/splash"), team(MODEL, WALL)), ("-+1 -+1", "1+1 1+1"),
          {(0, "partner_move.0.pp"): [1.0], (0, "partner_move.0.usable"): [0.0]}, doubles=True),
    Scene("a berry fills a move that was used in disguise", 9,
          (team("Zoroark/illusion/leer,pluck", "Garchomp/roughskin/splash"),
           team("Gyarados/moxie/surf,splash/leppaberry")),
          ("1 2 1", "1 2 2"), {(1, "foe.1.moves"): [*move_id("pluck"), *move_id("leer"), 0, 0]}),
    Scene("a herb is used as it changes hands", 9,
          (team("Alakazam/synchronize/splash,trick/whiteherb"), team("Snorlax/thickfat/superpower,splash/leftovers")),
          ("1 2 1", "1 2 2"), {(0, "foe.0.item"): item(NO_ITEM), (1, "foe.0.item"): item("leftovers")}),
    Scene("who fainted in disguise is revived", 9,
          (team("Zoroark/illusion/memento", "Pawmot/ironfist/revivalblessing", "Snorlax/thickfat/splash"), team(WALL)),
          ("1 s2 1 s2 s3 1", "1 1 1 1 1"), {(1, "global.foe_side.alive"): [3 / 6]}),
    Scene("symbiosis", 9,
          (team("Oranguru/symbiosis/splash/leftovers", "Snorlax/thickfat/splash/sitrusberry"),
           team("Gyarados/moxie/tackle,superfang", WALL)),
          ("1+1 1+1 1+1", "2>2+1 2>2+1 2>2+1"),
          {(1, "foe.0.item"): item(NO_ITEM), (1, "foe.1.item"): item("leftovers")}, doubles=True),
    Scene("the partner's disguise, of who comes in", 9,
          (team("Slowbro/oblivious/memento", "Snorlax/thickfat/splash,tackle", "Zoroark/illusion/splash,nastyplot"),
           team("Gyarados/moxie/waterfall,splash", "Milotic/marvelscale/splash,scald,willowisp")),
          ("1>1+1 s3+- 2+1 1+2>1 1+1 1+1", "2+1 2+1 2+1 2+3>1 1>1+1 2+1"),
          {(1, "global.left_foe_active.boosts"): [0, 0, 2 / 6], (1, "global.right_foe_active.boosts"): [0, 0, 0]},
          doubles=True),
    *(Scene(f"the partner's disguise, of who was there, place {place}", 9,
            (team(*leads, "Snorlax/thickfat/splash,tackle"),
             team("Gyarados/moxie/waterfall,splash", "Milotic/marvelscale/splash,scald,willowisp")),
            (says, f"2+1 2+1 2+1 2+3>{place} 1>{place}+1 2+1"), doubles=True)
      for place, leads, says in ((1, (MASKED, WALL), "2+1 1+s3 2+2>1 1+1 1+1 1+1"),
                                 (2, (WALL, MASKED), "1+2 s3+1 2>1+2 1+1 1+1 1+1"))),
    Scene("the partner's disguise, as both come in", 9,
          (team("Ninjask/speedboost/splash", WALL, MASKED, "Snorlax/thickfat/splash,tackle"),
           team("Gyarados/moxie/charm,splash", "Toxapex/regenerator/toxic,splash")),
          ("s3+s4 1+1 1+1", "1>1+1>2 2+2 2+2"),
          {(0, "global.self_active.boosts"): [-2 / 6], (0, "own.3.toxic_stage"): [1 / 15]}, doubles=True),
    Scene("a faint in the partner's disguise", 9,
          (team("Slowbro/oblivious/memento", "Snorlax/thickfat/splash", "Zoroark/illusion/splash,memento"),
           team(MODEL, WALL)),
          ("1>1+1 s3+- 1+1 2>1+1 -+1", "1+1 1+1 1+1 1+1 1+1"), {(1, "global.foe_side.alive"): [1 / 6]}, doubles=True),
    Scene("who had terastallized is revived", 9,
          (team("Pawmot/ironfist/revivalblessing", "Slowbro/oblivious/memento", "Torkoal/drought/splash"), team(WALL)),
          ("s2 1t s2 1 s2 s2 1", "1 1 1 1 1 1 1"), {(1, "foe.1.terastallized"): [1.0]}),
)  # fmt: skip


SYMBIOSIS = BattleJob(
    "gen9randomdoublesbattle", 1, turns=2,
    teams=(team("Florges/symbiosis/splash/leftovers", "Snorlax/thickfat/tackle/normalgem"),
           team("Blissey/naturalcure/splash", "Chansey/naturalcure/splash")),
    choices={"p1": ["move 1, move 1 1"], "p2": ["move 1, move 1"]},
)  # fmt: skip


def read(row: AuditedRow, name: str, count: int) -> np.ndarray:
    """The first numbers of a slice."""
    start = places(row.job.format)[name].start
    return row.observation[start : start + count]


@pytest.fixture(scope="module")
def played() -> dict[str, list[AuditedRow]]:
    """The rows of every scene."""
    jobs = {}
    for number, scene in enumerate(sorted(SCENES, key=lambda scene: (scene.doubles, scene.gen)), start=1):
        first = ["team 1,2"] if scene.doubles else []
        says = {f"p{seat}": first + words(text) for seat, text in enumerate(scene.says, start=1)}
        turns = max(len(said) for said in says.values())
        battle_format = f"gen{scene.gen}{'doublescustomgame' if scene.doubles else 'randombattle'}"
        jobs[scene.name] = BattleJob(battle_format, number, scene.teams, turns, says)
    return rows_by_name(jobs)


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.name)
def test_the_observation_is_the_simulators_state(played: dict[str, list[AuditedRow]], scene: Scene) -> None:
    rows = played[scene.name]
    audit = Audit().read(rows)
    wrong = [found for kind in audit.wrong if kind not in scene.unjudged for found in audit.examples[kind]]
    assert audit.rows > 0
    assert not wrong, "\n".join(wrong)
    for (seat, name), numbers in scene.wanted.items():
        wanted = np.array(numbers, dtype=np.float16)
        seen = [read(row, name, len(numbers)) for row in rows if row.seat == seat]
        assert any((one == wanted).all() for one in seen), f"seat {seat}: {name} is never {wanted}"


def test_symbiosis_hands_an_item_to_the_partner() -> None:
    rows = list(audited_rows([SYMBIOSIS]))
    audit = Audit().read(rows)
    assert not audit.wrong, audit.examples
    held = [[row.observation[DOUBLES[f"foe.{k}.item"].start] for k in (0, 1)] for row in rows if row.seat == 1]
    assert [*item(NO_ITEM), *item("leftovers")] in held


@pytest.mark.parametrize("scene", [scene for scene in SCENES if "a copy" in scene.name], ids=lambda scene: scene.name)
def test_a_copy_has_the_stats_that_it_copies(played: dict[str, list[AuditedRow]], scene: Scene) -> None:
    """The audit leaves those of foes that are copies out: others are estimates."""
    copies = 0
    for row in played[scene.name]:
        mon = row.truth["sides"][1 - row.seat]["pokemon"][0]
        if mon["transformed"]:
            stats = [min(stat / 500, 1.0) for stat in (mon["max_hp"], *mon["stats"])]
            assert read(row, "foe.0.stats", 6).tolist() == np.array(stats, np.float16).tolist(), row.place
            copies += 1
    assert copies > 0
