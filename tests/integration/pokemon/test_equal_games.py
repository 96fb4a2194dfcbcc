"""Equal seeds play equal games, whoever encodes; what is hidden from a seat changes nothing it sees."""

import select

from common.config import PokemonConfig
from env_worker.games.pokemon.actions import legal_choices
from env_worker.games.pokemon.battle_host import BattleStart
from env_worker.games.pokemon.encoder import SeatEncoder
from env_worker.games.pokemon.host import SimHost
from env_worker.games.pokemon.host_tables import encoder_tables
from env_worker.games.pokemon.node import find_node
from env_worker.games.pokemon.seat_battle import SeatBattle
from tests.support.battles import make_source, played


def first_rows(seed: int, encoder: str = "host") -> dict[tuple, bytes]:
    rows, _ = played(make_source(PokemonConfig(encoder=encoder), envs=3, seed=seed, episodes=3))
    return rows


def test_equal_seeds_play_equal_games():
    assert first_rows(1) == first_rows(1)
    assert first_rows(1) != first_rows(2)


def test_both_encoders_play_equal_games():
    assert first_rows(1, "python") == first_rows(1, "host")


LEAD = "Garchomp|||{ability}|{moves}|||M|||80|"


BENCH = "|{species}||{ability}|tackle|||N|||80|"


def first_view(foe_team: str) -> tuple[str, dict, bytes]:
    own = LEAD.format(ability="roughskin", moves="earthquake,surf")
    host = SimHost(find_node().path)
    host.start()
    try:
        seeds = ([1, 2, 3, 4], [5, 6, 7, 8])
        host.send_tables(encoder_tables(9))
        for battle, encode in ((0, False), (1, True)):
            start = BattleStart([9, 9, 9, 9], seeds, teams=(own, foe_team), encode=(encode, encode))
            host.start_battle(battle, "gen9randombattle", start)
        host.flush()
        records, rows = [], []
        while len(records) < 2 or len(rows) < 2:
            select.select([host.fileno()], [], [], 5)
            tick = host.poll()
            records += tick.records
            rows += tick.rows
    finally:
        host.close()
    lines, request = next((record.lines, record.request) for record in records if record.seat == 0)
    battle = SeatBattle("p1", 9)
    battle.feed(lines)
    battle.sync(request)
    here = SeatEncoder(battle, 9).encode(request, legal_choices(request, battle.position))
    there = next(row.observation for row in rows if row.seat == 0)
    assert here.tobytes() == there.tobytes()
    return lines, request, here.tobytes()


def test_a_seat_sees_no_difference_where_only_hidden_facts_differ():
    one = [
        LEAD.format(ability="roughskin", moves="earthquake,surf"),
        "Ditto" + BENCH.format(species="", ability="limber"),
    ]
    two = [
        LEAD.format(ability="sandveil", moves="outrage,firefang").replace("|||sandveil", "||choicescarf|sandveil"),
        "Magnezone" + BENCH.format(species="", ability="sturdy"),
    ]
    assert first_view("]".join(one)) == first_view("]".join(two))
