"""The host's tracker knows what SeatBattle knows, after every request."""

from __future__ import annotations

import json
import random
import subprocess
from collections import defaultdict

import pytest
from poke_env.battle.effect import Effect
from poke_env.battle.field import Field
from poke_env.battle.side_condition import SideCondition
from poke_env.battle.weather import Weather

from simul.env_worker.games.pokemon.encoding.actions import FIRST_MOVE, legal_choices
from simul.env_worker.games.pokemon.encoding.host_tables import tracker_tables
from simul.env_worker.games.pokemon.host.backend import BattleStart
from simul.env_worker.games.pokemon.install.folder import HOST_FOLDER
from simul.env_worker.games.pokemon.install.node import find_node
from tests.support.hosts import wait
from tests.support.pokemon.garbled import garbled
from tests.support.pokemon.recorded import RecordedSeat, recorded_seats
from tests.support.pokemon.tracker_reference import (
    Seat,
    compare,
    compare_generations,
    reference_states,
    tracker_states,
    write_tables,
)
from tests.support.pokemon.wild_teams import wild_team
from tests.support.states import compare_with_stock

# What must have come up: each is part of a line.
RARE_TEXT = """
|-transform| Imposter |replace| |Mimic| |Revival_Blessing| |-terastallize| |Dynamax |-mega| |-zpower| |-primal|
|Baton_Pass| |-formechange| |detailschange| |-curestatus| |-cureteam| |cant| |-swapboost| |-copyboost|
|-setboost| |-clearallboost |-clearnegativeboost| |-sethp| |typechange| Skill_Swap move:_Trick Mummy Symbiosis
Trace Frisk Magician |-prepare| |-mustrecharge| Neutralizing_Gas Leppa_Berry Regenerator Thief
"""
RARE = RARE_TEXT.split()
FEW_RECORDED = (3, 4, 5, 6)  # battles; there the state is compared with poke-env's own in fresh ones, too
GENERATIONS = range(1, 10)
GIMMICKS = FIRST_MOVE + 4  # the first action with one


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    return write_tables(tmp_path_factory.mktemp("tables"))


def random_command(request, positions, rng):
    """A legal choice; gimmicks are taken as soon as they come up half of the time."""
    if request.get("teamPreview"):
        return "default"
    for entry in request["side"]["pokemon"]:
        positions.setdefault(entry["ident"], len(positions))
    choices = legal_choices(request, positions.__getitem__)
    legal = [action for action, allowed in enumerate(choices.mask) if allowed]
    special = [action for action in legal if action >= GIMMICKS]
    return choices.command(rng.choice(special if special and rng.random() < 0.5 else legal))


def play(host, battle_format, numbers, live=16, teams=None):
    """Plays battles by random choices; returns what every seat was told."""
    gen = int(battle_format[3])
    seats, players = {}, {}
    todo, ended = list(numbers), defaultdict(int)
    while todo or len(ended) * 2 < len(seats):
        while todo and len(seats) // 2 - len(ended) < live:
            number = todo.pop(0)
            for seat in (0, 1):
                seats[number, seat] = Seat(f"p{seat + 1}", gen, [])
                players[number, seat] = {}, random.Random(f"{battle_format} {number} {seat}")
            start = BattleStart(
                seed=[5, 5, number >> 16, number & 0xFFFF], team_seeds=([6, 6, 6, number], [8, 8, 8, number]),
                teams=teams(number) if teams else (None, None), names=("a", "b"),
            )  # fmt: skip
            host.start_battle(number, battle_format, start)
        host.flush()
        tick = wait(host)
        for battle, seat, request_number, lines, request in tick.records:
            seats[battle, seat].records.append((lines, request))
            if request is not None:
                host.choose(battle, seat, request_number, random_command(request, *players[battle, seat]))
        assert {error.kind for error in tick.errors} <= {"unavailable"}, tick.errors
        for end in tick.ended:
            assert end.reason != "crashed"
            ended[end.battle] += 1
    return list(seats.values())


def test_recorded_battles(tables):
    recorded = (*recorded_seats(), *recorded_seats("gen9bssregi"))
    seats = [Seat(seat.role, seat.gen, seat.records) for seat in recorded]
    assert compare(tables, seats) > 1500


def test_spoilt_lines(tables):
    """Both fail on the same lines. What they make of the others may differ: no simulator writes them."""
    rng = random.Random(1)
    seats = [garbled(Seat(seat.role, seat.gen, seat.records), rng) for seat in recorded_seats()]
    failed = [dict(state["parseErrors"]) for seat in seats for state in reference_states(seat)]
    assert len(failed) > 500
    assert [state["parseErrors"] for state in tracker_states(tables, seats)] == failed


def spellings(members):
    """How the protocol might write each name."""
    for name in members:
        words = name.replace("_", " ").lower()
        yield from (
            words,
            f"move: {words.title()}",
            f"ability: {words}",
            f"item: {words}",
            words.replace(" ", "-"),
            name,
        )
        yield words.replace(" ", "")


def test_names_are_read_as_poke_env_reads_them():
    enums = {"effect": Effect, "weather": Weather, "field": Field, "side": SideCondition}
    texts = [text for kind in enums.values() for text in spellings(kind.__members__)] + ["fallenundefined"]
    script = f"""
        import {{ readFileSync }} from 'node:fs';
        import {{ dexOf }} from {json.dumps((HOST_FOLDER / "tracker" / "dex.mjs").as_uri())};
        const [tables, texts] = JSON.parse(readFileSync(0, 'utf8'));
        const dex = dexOf(tables);
        const read = kind => texts.map(text => dex[kind](text));
        console.log(JSON.stringify({{{", ".join(f"{kind}: read('{kind}')" for kind in enums)}}}));
    """
    answer = subprocess.run(
        [find_node().path, "--input-type=module", "--eval", script],
        input=json.dumps([tracker_tables(9), texts]).encode(),
        capture_output=True,
        check=True,
    )
    found = json.loads(answer.stdout)
    for kind, enum in enums.items():
        expected = [enum.from_showdown_message(text).name for text in texts]
        assert dict(zip(texts, found[kind])) == dict(zip(texts, expected))


@pytest.mark.slow  # .ci/long runs it
def test_fresh_battles(host, tables):
    seats = {gen: play(host, f"gen{gen}randombattle", range(3)) for gen in GENERATIONS}
    compared = compare_generations(tables, [seat for found in seats.values() for seat in found])
    assert min(compared[gen] for gen in GENERATIONS) > 100
    for gen in FEW_RECORDED:
        for seat in seats[gen][:2]:
            recorded = RecordedSeat(f"gen{gen}randombattle", 0, int(seat.role[1]) - 1, seat.records)
            assert [different for different in compare_with_stock(recorded, bot=False) if different] == [], gen


def wild_battles(host, gen, numbers):
    return play(host, f"gen{gen}customgame", numbers, teams=lambda n: (wild_team(gen, (n, 0)), wild_team(gen, (n, 1))))


@pytest.mark.slow  # .ci/long runs it
def test_rare_events(host, tables):
    seats = [seat for gen in GENERATIONS for seat in wild_battles(host, gen, range(6 if gen == 9 else 2))]
    compared = compare_generations(tables, seats)
    assert min(compared[gen] for gen in GENERATIONS) > 100
    told = "\n".join(lines for seat in seats for lines, _ in seat.records)
    assert not [event for event in RARE if event.replace("_", " ") not in told]


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("gen", GENERATIONS)
def test_many_battles(host, tables, gen):
    for first in range(1000, 1560, 40):
        compare(tables, play(host, f"gen{gen}randombattle", range(first, first + 40)))
        compare(tables, wild_battles(host, gen, range(first, first + 5)))
