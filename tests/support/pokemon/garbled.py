"""Protocol lines that no simulator would write."""

from __future__ import annotations

import random
import re

from tests.support.pokemon.recorded import RecordedSeat
from tests.support.pokemon.views import SeatToSee, Told

EVENTS_TEXT = """
switch drag -damage move cant turn -heal -boost -unboost -weather faint -ability -start -activate -status
-clearallboost -clearboost -clearnegativeboost -clearpositiveboost -copyboost -curestatus -cureteam -end
-endability -enditem -fieldend -fieldstart -formechange detailschange -invertboost -item -mega -mustrecharge
-prepare -primal -sethp -sideend -sidestart -singleturn -singlemove -swapboost -transform -zpower clearpoke poke
replace swap -immune -swapsideconditions -terastallize -anim nonsense
"""
EVENTS = EVENTS_TEXT.split()
PARTS_TEXT = """
[from] ability: Trace;[from] ability: Frisk;[from] ability: Pickpocket;[from] ability: Imposter
[from] move: Thief;[from] item: Rocky Helmet;[from] item: Leftovers;[from] item: Sitrus Berry
[from] ability: Magic Bounce;[still];[miss];[notarget];[spread] p2a;[from] lockedmove;[zeffect]
[from] move: Sleep Talk;[from] move: Metronome;[from] Mirror Move;[from] move: Fire Pledge
[from] ability: Dancer;[of] p1a: X;[from]move: Guard Swap;ability: Mummy;ability: Dancer
ability: Wandering Spirit;ability: Symbiosis;item: Leppa Berry;move: Mimic;move: Trick;move: Skill Swap;Mimic
typechange;Water/Fire;???;Protosynthesis;protosynthesisatk;quarkdrivespe;Quark Drive;Dynamax;move: Yawn;Charge
ability: Flash Fire;Glaive Rush;fallenundefined;null;none;slp;tox;confusion;0 fnt;50/100 slp;12/100y;3/0;/;atk
atk, spe;7;-1;6;Neutralizing Gas;ability: Neutralizing Gas;move: Electric Terrain;grassyterrain;move: Trick Room
Spikes;move: Stealth Rock;Reflect;Snow;RainDance;p1: X;p2;Minimize;Protect;Transform;Charizardite X;Hidden Power
hiddenpowerfire60;return102;powerherb;Illusion;Regenerator;Feint;tera:Fire;Pikachu, L80, M, shiny;Zoroark
Ditto, L84;Flabébé;Ho-Oh;Porygon-Z, L80
"""
PARTS = PARTS_TEXT.strip().replace("\n", ";").split(";")


def garbled(seat: RecordedSeat, rng: random.Random) -> SeatToSee:
    """The seat with a quarter of its lines spoilt."""
    told = "\n".join(lines for lines, _ in seat.records)
    names = sorted(set(re.findall(r"p[12]a: [^|\n]+", told)))
    records = []
    for number, (lines, request) in enumerate(seat.records):
        if number:
            lines = "\n".join(_spoilt(line, rng, names) for line in lines.split("\n"))
        records.append(Told(lines, request))
    return SeatToSee(seat.format, seat.seat, records)


def _spoilt(line: str, rng: random.Random, names: list[str]) -> str:
    parts = line.split("|")
    if len(parts) < 3 or rng.random() > 0.25:
        return line
    place = rng.randrange(2, len(parts))
    match rng.randrange(6):
        case 0:
            del parts[place]
        case 1:
            parts.insert(place, rng.choice(PARTS))
        case 2:
            parts[place] = rng.choice(rng.choice((PARTS, names)))
        case 3:
            parts[1] = rng.choice(EVENTS)
        case 4:
            parts[1:] = [rng.choice(EVENTS), rng.choice(names), *rng.sample(PARTS, rng.randrange(4))]
        case _:
            parts.append(rng.choice([*PARTS, f"[of] {rng.choice(names)}"]))
    return "|".join(parts)
