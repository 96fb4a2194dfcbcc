"""What is hidden from a seat moves nothing it sees: battles played again where the hidden facts are others."""

from __future__ import annotations

import pytest

from simul.env_worker.games.pokemon.formats.spec import is_doubles
from simul.env_worker.games.pokemon.host.backend import BattleStart
from simul.env_worker.games.pokemon.host.node_host import NodeHost
from simul.env_worker.games.pokemon.install.node import find_node
from simul.env_worker.games.pokemon.tables.host_tables import encoder_tables
from tests.support.pokemon.audit.teams import custom_team
from tests.support.pokemon.views import SINGLES, Views
from tests.support.worlds import FULL, Chooser, World, again, agreed, play, told_apart

# Nobody of seat 0's team does damage or is fast, the foe only does what its level says: no roll decides anything.
OWN = "]".join(
    f"|{species}||{ability}|swordsdance,reflect,recover,{move}|sassy||M|0,0,0,0,0,0||70|"
    for species, ability, move in (
        ("Shuckle", "sturdy", "safeguard"),
        ("Snorlax", "thickfat", "amnesia"),
        ("Slowpoke", "oblivious", "trickroom"),
        ("Torkoal", "drought", "irondefense"),
    )
)
SHOWN = (("Chansey", "seismictoss,calmmind"), ("Gengar", "nightshade,nastyplot"))
BENCHED = ("Garchomp", "Kingambit", "Arceus-Fire", "Urshifu"), ("Ditto", "Zoroark", "Lugia", "Ferrothorn")
# Team preview calls both of a place by one name: Silvally-*, Urshifu-*.
PREVIEWED = (
    ("Garchomp", "Kingambit", "Silvally-Fire", "Urshifu"),
    ("Garchomp", "Kingambit", "Silvally-Water", "Urshifu-Rapid-Strike"),
)
HIDDEN = (
    ("leftovers", "naturalcure", "softboiled,thunderwave", "bold|252,0,252,0,4,0|M||", ",,,,,Fire"),
    ("rockyhelmet", "serenegrace", "icebeam,protect", "modest|,,,252,252,4|M|0,5,7,31,31,31|", ",,,,,Ghost"),
)
# Ability and item do nothing by themselves.
INERT = (("runaway", "pokeball"), ("honeygather", "greatball"))


@pytest.fixture(scope="module")
def host():
    host = NodeHost(find_node().path)
    host.start()
    host.send_tables(encoder_tables(9, FULL))
    yield host
    host.close()


def foe_team(world: int, *members: tuple[str, str]) -> str:
    """Shown of (species, moves): the level, the gender, what they do. The rest is the world's."""
    item, ability, moves, spread, rest = HIDDEN[world]
    return "]".join(f"|{species}|{item}|{ability}|{known}{moves}|{spread}|80|{rest}" for species, known in members)


def team_of(world: int, bench: tuple[str, ...]) -> str:
    return foe_team(world, *((species, known + ",") for species, known in SHOWN), *((species, "") for species in bench))


def start_of(world: int, foe: str) -> BattleStart:
    seed = [world + 1, 7 * world, 3, 4]
    return BattleStart(seed, ([world, 2, 3, 4], [5, world, 7, 8]), teams=(OWN, foe))


def check_all(views: Views, world: World, other: World, least: int) -> None:
    """Nothing tells the worlds apart, to the end."""
    assert told_apart(world, other) == []
    assert agreed(views, world, other) >= least


@pytest.mark.parametrize("battle_format", ["gen9randombattle", "gen9randomdoublesbattle"])
def test_sets_bench_and_seeds(host, views, battle_format):
    one, other = (start_of(world, team_of(world, BENCHED[world])) for world in (0, 1))
    world = play(host, battle_format, one, Chooser(views, battle_format, 1, requests=40, switches=(0, 1)))
    check_all(views, world, again(host, battle_format, other, world), least=12)
    assert "Gengar|Night Shade" in world.lines
    assert "Garchomp" not in world.lines
    if not is_doubles(battle_format):
        chances = [row.observation[SINGLES["own.0.threat_chance"].start] for row in world.rows]
        assert any(0 < chance < 1 for chance in chances)  # of a move that the sets make likely


@pytest.mark.parametrize(
    ("battle_format", "picked"), [("gen9ou", ""), ("gen9bssregi", "team 1,2,6"), ("gen9vgc2025regi", "team 1,2,6,5")]
)
def test_sets_behind_a_preview_and_who_was_picked(host, views, battle_format, picked):
    one, other = (start_of(world, team_of(world, PREVIEWED[world])) for world in (0, 1))
    world = play(host, battle_format, one, Chooser(views, battle_format, 2, requests=40, switches=(0, 1)))
    check_all(views, world, again(host, battle_format, other, world, {(1, 1): picked} if picked else None), least=12)
    assert "|poke|p2|Silvally-*" in world.lines
    assert world.choices[1, 1] != picked


@pytest.mark.parametrize("battle_format", ["gen9randombattle", "gen9randomdoublesbattle"])
def test_a_zoroark_in_disguise_is_whom_it_looks_like(host, views, battle_format):
    garchomp = foe_team(0, ("Garchomp", "swordsdance,calmmind,"))
    zoroark = foe_team(1, ("Zoroark", "swordsdance,calmmind,")).replace("serenegrace", "illusion")
    others = foe_team(0, ("Chansey", "seismictoss,calmmind,"), ("Gengar", "nastyplot,splash,"))
    disguised, real = f"{zoroark}]{others}]{garchomp}", f"{garchomp}]{others}]{zoroark}"
    world = play(host, battle_format, start_of(0, disguised), Chooser(views, battle_format, 3, 30, switches=(0, 1)))
    check_all(views, world, again(host, battle_format, start_of(1, real), world), least=12)
    own_request = world.told[1].records[0][1]
    assert own_request is not None
    assert own_request["side"]["pokemon"][0]["ident"] == "p2: Zoroark"
    assert "|Garchomp, L80, M|" in world.lines


def wild_foe(gen: int, number: int) -> list[str]:
    """Six named Pokemon of any kind; half of them with an ability and an item that show only if something asks."""
    members = []
    for place, member in enumerate(gendered(custom_team(gen, ("foe", number)))):
        _, species, item, ability, *rest = member.split("|")
        if place % 2:
            item, ability = item and INERT[0][1], ability and INERT[0][0]
        members.append("|".join((f"Foe{place}", species, item, ability, *rest)))
    return members


def gendered(team: str) -> list[str]:
    """The members, all male where they can be: a gender that is left open is drawn from the battle's seed."""
    parts = [member.split("|") for member in team.split("]")]
    return ["|".join((*part[:7], "M", *part[8:])) for part in parts]


def with_other_secrets(gen: int, number: int, members: list[str], world: World) -> str:
    """The same team as far as seat 0 has been shown it (a request shows whose copy one's own Pokemon is)."""
    lines, shown = world.lines, world.moves_shown
    untold = not any(text in lines for text in ("Run Away", "Poke Ball", "|-transform|p1"))
    strangers = gendered(custom_team(gen, ("stranger", number)))
    found = []
    for place, (member, stranger) in enumerate(zip(members, strangers)):
        if f": Foe{place}|" not in lines:
            found.append(f"Foe{place}{stranger}")
            continue
        name, species, item, ability, known, *rest = member.split("|")
        if untold and (ability, item) == INERT[0]:
            ability, item = INERT[1]
        spare = [move for move in stranger.split("|")[4].split(",") if move not in shown]
        moves = known.split(",")  # the foe chooses among the first two
        moves[2:] = [move if move in shown or not spare else spare.pop() for move in moves[2:]]
        if gen == 9:
            rest[-1] = f",,,G,10,{'Water' if rest[-1].endswith('Fire') else 'Fire'}"
        found.append("|".join((name, species, item, ability, ",".join(moves), *rest)))
    return "]".join(found)


def compare_wild(host: NodeHost, views: Views, battle_format: str, numbers: range) -> tuple[int, int]:
    """Requests of seat 0, and how many came before anything told it of the difference."""
    gen = int(battle_format[3])
    host.send_tables(encoder_tables(gen, FULL, is_doubles(battle_format)))
    asked = same = 0
    for number in numbers:
        own, members = "]".join(gendered(custom_team(gen, ("own", number)))), wild_foe(gen, number)
        start = BattleStart([number, gen, 3, 4], teams=(own, "]".join(members)))
        world = play(host, battle_format, start, Chooser(views, battle_format, number, requests=30))
        foe = with_other_secrets(gen, number, members, world)
        assert foe != "]".join(members)
        other = again(host, battle_format, start._replace(teams=(own, foe)), world)
        asked += sum(request is not None for _, request in world.told[0].records)
        same += agreed(views, world, other)
    return asked, same


WILD = [*(f"gen{gen}randombattle" for gen in range(1, 10)), "gen9randomdoublesbattle"]
BETWEEN = {f"gen{gen}randombattle" for gen in (2, 3, 4, 6, 7, 8)}  # .ci/long runs them


@pytest.mark.parametrize(
    "battle_format", [pytest.param(name, marks=pytest.mark.slow if name in BETWEEN else ()) for name in WILD]
)
def test_wild_battles(host, views, battle_format):
    asked, same = compare_wild(host, views, battle_format, range(1, 2))
    assert same > 0.9 * asked > 10


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("battle_format", WILD)
def test_many_wild_battles(host, views, battle_format):
    asked, same = compare_wild(host, views, battle_format, range(100, 150))
    assert same > 0.85 * asked


def test_the_comparison_notices_what_is_told(host, views):
    host.send_tables(encoder_tables(9, FULL))
    one = start_of(0, team_of(0, BENCHED[0]))
    world = play(host, "gen9randombattle", one, Chooser(views, "gen9randombattle", 1, requests=12))
    told = again(host, "gen9randombattle", start_of(0, team_of(0, BENCHED[0]).replace("|80|", "|81|")), world)
    assert agreed(views, world, told) == 0
