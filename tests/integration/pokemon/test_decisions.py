"""Scripted battles, decision by decision: the last turn, what a foe may do, chances of a knock-out."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from tests.support.pokemon.audit.battles import AuditedRow, BattleJob, rows_by_name, words
from tests.support.pokemon.audit.compare import Audit
from tests.support.pokemon.audit.teams import team
from tests.support.pokemon.audit.view import places

LETTERS = {
    "f": "moved_first", "p": "prevented", "m": "missed", "x": "failed", "c": "critical", "l": "hp_lost",
    "s": "switched", "k": "fainted",
}  # fmt: skip
WALL = "Blissey/naturalcure/splash,softboiled"
SLOW = "Snorlax/thickfat/splash,tackle"
FAST = "Crobat/innerfocus/splash"
PURSUIT = team("Bisharp/defiant/pursuit,splash")


class Turns(NamedTuple):
    """A battle, and what the decisions of its first seat show: letters of its own side, a colon, those of the foe's."""

    name: str
    format: str
    teams: tuple[str, str]
    says: tuple[str, str]
    shows: str


BATTLES = (
    Turns("who is faster", "gen9randombattle", (team(SLOW), team(FAST)), ("1 1", "1 1"), ": :f"),
    Turns("a miss", "gen9randombattle", (team(SLOW), team("Crobat/innerfocus/fly,splash")),
          ("2 1 1", "1 1 2"), ": m:f l:f"),
    Turns("an immunity", "gen9randombattle", (team(SLOW), team("Gengar/cursedbody/splash")),
          ("2 1 1", "1 1 1"), ": x:f :f"),
    Turns("a flinch, then a move that fails", "gen9randombattle", (team(SLOW), team("Weavile/pressure/fakeout,splash")),
          ("1 1 1 1", "1 1 2 2"), ": pl:f :fx :f"),
    Turns("full paralysis", "gen9randombattle", (team(FAST), team("Blissey/naturalcure/thunderwave,splash")),
          ("1 1 1 1 1", "1 2 2 2 2"), ": f: :f p:f :f"),
    Turns("a confused one hits itself", "gen9randombattle", (team(SLOW), team("Crobat/innerfocus/confuseray,splash")),
          ("1 1 1", "1 2 2"), ": pl:f :f"),
    Turns("asleep until it wakes, gen 1", "gen1randombattle", (team("Tauros//splash"), team("Parasect//spore,splash")),
          ("1 1 1 1 1 1", "1 2 2 2 2 2"), ": f: fp: fp: fp: f:"),
    Turns("a critical hit", "gen9randombattle", (team("Urshifu/unseenfist/wickedblow,splash"), team(WALL)),
          ("1 2 2", "1 1 1"), ": fc:l f:"),
    Turns("priority", "gen9randombattle", (team("Conkeldurr/guts/machpunch,splash"), team(FAST)),
          ("1 2 2", "1 1 1"), ": f:l :f"),
    Turns("both faint", "gen9randombattle",
          (team("Gengar/cursedbody/explosion", SLOW, level=100), team("Caterpie/shielddust/splash", WALL)),
          ("1 s2 1 1", "1 s2 1 1"), ": flk:lk flk:lk :f"),
    Turns("a faint, then the foe's move", "gen9randombattle", (team("Crobat/innerfocus/memento", SLOW), team(WALL)),
          ("1 s2 1 1", "1 1 1"), ": flk: flk: :f"),
    Turns("a faint at the end of a turn", "gen9randombattle",
          (team("Shedinja/wonderguard/splash", SLOW), team("Crobat/innerfocus/toxic,splash")),
          ("1 s2 1 1", "1 2 2"), ": lk:f lk:f :f"),
    Turns("u-turn", "gen9randombattle",
          (team("Crobat/innerfocus/uturn,splash", "Golbat/innerfocus/splash"), team("Gyarados/moxie/waterfall,splash")),
          ("1 s2 1 1", "1 2 2"), ": f:l fl:l f:"),
    Turns("a switch, and a drag", "gen9randombattle", (team(FAST, SLOW), team("Blissey/naturalcure/splash,roar")),
          ("s2 1 1", "1 2 1"), ": s:f f:"),
    Turns("a switch into spikes", "gen9randombattle", (team(FAST, SLOW), team("Skarmory/sturdy/spikes,splash")),
          ("1 s2 1", "1 2 2"), ": f: ls:f"),
    Turns("pursuit on the way out", "gen7randombattle", (team(FAST, SLOW), PURSUIT), ("s2 1 1", "1 2 2"), ": ls:f :f"),
    *(Turns(f"a faint by pursuit on the way out, gen {gen}", f"gen{gen}randombattle",
            (team("Abra/synchronize/splash", SLOW, level=50), team("Houndoom/flashfire/pursuit,splash", level=100)),
            (says, "1 2 2"), shows) for gen, says, shows in ((3, "s2 1 1", ": lk:f :f"),
                                                             (7, "s2 s2 1 1", ": lk:f lk:f :f"))),
    Turns("pursuit, then an eject button", "gen7randombattle",
          (team("Snorlax/thickfat/splash/ejectbutton", FAST), PURSUIT), ("1 s2 1 1", "1 2 2"), ": l:f l:f f:"),
    *(Turns(f"an ability of the foe's stops the move: {ability}", "gen9randombattle",
            (team(f"Crobat/innerfocus/{move},splash"), team(f"{foe}/{ability}/splash")), ("1 2 2", "1 1 1"), ": fx: f:")
      for move, foe, ability in (("quickattack", "Tsareena", "queenlymajesty"), ("explosion", "Quagsire", "damp"))),
)  # fmt: skip


class Numbers(NamedTuple):
    """A battle, and the first number of a slice in the decisions of its first seat."""

    name: str
    format: str
    teams: tuple[str, str]
    says: tuple[str, str]
    slice: str
    shows: list[float]


BODY = "Snorlax/thickfat/splash,bodyslam"
DRAGON = team("Salamence/moxie/splash,roost,outrage")  # by its sets it has four of five moves: Roost, Outrage, ...
GHOST = f"{team(SLOW)},,,,,Ghost"
THREATS = (
    Numbers("a hidden move, beside one that no set has, and one that some have; then it shows", "gen9randombattle",
            (team(SLOW), DRAGON), ("1 1 1 1", "1 2 3"), "own.0.threat_chance", [0.8, 0.8, 0.75, 1]),
    Numbers("sets are not known: a move is assumed until one shows that does more", "gen4customgame",
            (team(SLOW), DRAGON), ("1 1 1 1", "1 2 3"), "own.0.threat_chance", [0.5, 0.5, 0.5, 1]),
    Numbers("a species that has no sets", "gen9randombattle", (team(SLOW), team("Caterpie/shielddust/splash")),
            ("1 1", "1 1"), "own.0.threat_chance", [0.5, 0.5]),
    Numbers("a copy has the moves of its model", "gen9randombattle", (team(BODY), team("Ditto/limber/transform")),
            ("1 1", "1 1"), "own.0.threat_chance", [0, 1]),
    Numbers("an own one terastallizes and is immune", "gen9randombattle", (GHOST, team(WALL)),
            ("1t 1", "1 1"), "own.0.threat_chance", [0.8, 0]),
    Numbers("a foe terastallizes", "gen9randombattle", (team(SLOW), f"{DRAGON},,,,,Dragon"),
            ("1 1", "1t 1"), "own.0.threat", [0.518, 0.518 * 2 / 1.5]),
    Numbers("80 of 267 hp", "gen9randombattle", (team(FAST), team("Blissey/naturalcure/seismictoss")),
            ("1 1 1 1", "1 1 1 1"), "own.0.falls", [0, 0, 0, 1]),
    Numbers("what an own one may do to a foe", "gen9randombattle",
            (team("Garchomp/roughskin/stoneedge,splash", level=100), team(FAST)), ("2", "1"),
            "foe.0.falls", [0.8 * 14 / 16]),
    Numbers("a knock-out by 0, 15 and 16 rolls: 219 hp, then 139, then 59 against 139 to 163", "gen9randombattle",
            (team("Snorlax/thickfat/bodyslam,seismictoss"), team("Alakazam/innerfocus/splash")),
            ("2 2 2", "1 1 1"), "move.0.knock_out_chance", [0, 15 / 16, 1]),
    *(Numbers(f"a knock-out: {name}", "gen9randombattle",
              (team(f"{user},splash", level=level), team(foe)), ("2", "1"), "move.0.knock_out_chance", [chance])
      for name, user, level, foe, chance in (
          ("never", "Snorlax/thickfat/tackle", 80, WALL, 0),
          ("always", "Garchomp/roughskin/earthquake", 100, "Pichu/static/splash", 1),
          ("where it hits", "Machamp/guts/dynamicpunch", 100, "Pichu/static/splash", 0.5),
          ("where it hits, of several hits", "Cinccino/technician/rockblast", 80, "Charizard/blaze/splash", 0.9),
          ("where it hits, of any damage", "Dugtrio/arenatrap/fissure", 80, WALL, 0.3),
          ("not of an immune foe", "Snorlax/thickfat/tackle", 100, "Gastly/levitate/splash", 0),
      )),
)  # fmt: skip


def shown(row: AuditedRow) -> str:
    """Letters of what is not 0."""
    known = places(row.job.format)
    sides = [
        "".join(letter for letter, name in LETTERS.items() if row.observation[known[f"global.{who}_last.{name}"].start])
        for who in ("own", "foe")
    ]
    return ":".join(sides)


@pytest.fixture(scope="module")
def played() -> dict[str, list[AuditedRow]]:
    jobs = {}
    battles: list[Turns | Numbers] = [*BATTLES, *THREATS]
    for number, battle in enumerate(battles, start=1):
        says = {f"p{seat}": words(text) for seat, text in enumerate(battle.says, start=1)}
        turns = max(map(len, says.values()))
        jobs[battle.name] = BattleJob(battle.format, number, battle.teams, turns, says)
    return rows_by_name(jobs)


@pytest.mark.parametrize("battle", BATTLES, ids=lambda battle: battle.name)
def test_what_happened_in_the_last_turn(played: dict[str, list[AuditedRow]], battle: Turns) -> None:
    rows = played[battle.name]
    audit = Audit().read(rows)
    assert not audit.wrong, audit.examples
    letters = [shown(row) for row in rows if row.seat == 0]
    assert letters[: len(battle.says[0].split())] == battle.shows.split()


@pytest.mark.parametrize("battle", THREATS, ids=lambda battle: battle.name)
def test_a_number_goes_by_what_the_seat_knows(played: dict[str, list[AuditedRow]], battle: Numbers) -> None:
    rows = played[battle.name]
    audit = Audit().read(rows)
    assert not audit.wrong, audit.examples
    start = places(battle.format)[battle.slice].start
    numbers = [float(row.observation[start]) for row in rows if row.seat == 0]
    assert numbers[: len(battle.shows)] == pytest.approx(battle.shows, abs=1e-3)
