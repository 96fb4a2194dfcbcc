"""Seats that a bot plays inside the simulator host."""

from __future__ import annotations

import pytest

from simul.env_worker.games.pokemon.host.backend import BattleStart
from simul.env_worker.games.pokemon.tables.host_tables import encoder_tables
from tests.support.hosts import GEN9, wait

START = BattleStart([1, 2, 3, 4], ([5, 6, 7, 8], [9, 10, 11, 12]), names=("a", "b"), log=True)
BOTS = (("one_ply", 1), ("one_ply", 2))


@pytest.fixture(scope="module")
def bot_host(host):
    host.send_tables(encoder_tables(9))
    return host


def played(host, number, **how):
    """A battle of which nobody is asked anything."""
    host.start_battle(number, GEN9, START._replace(play=BOTS, **how))
    host.flush()
    tick = wait(host)
    assert (tick.records, tick.rows, tick.errors, tick.parse_errors) == ([], [], [], {})
    (end,), ((_, log),), (counts,) = tick.ended, tick.logs, tick.played
    return end, log, counts


def test_a_battle_of_bots_needs_nobody_and_equal_seeds_play_it_again(bot_host):
    end, log, counts = played(bot_host, 1)
    assert end.reason == "win"
    assert counts.decisions >= 2 * end.turns
    assert counts.refused == 0
    assert played(bot_host, 2)[1] == log


def test_a_battle_of_bots_that_is_too_long_is_ended(bot_host):
    end, log, _ = played(bot_host, 3, max_turns=4)
    assert (end.reason, end.winner_seat) == ("truncated", None)
    assert "|turn|5\n" in log
    assert "|turn|6\n" not in log


def test_a_battle_of_seats_that_answer_elsewhere_is_ended_before_another_turn_is_played(bot_host):
    bot_host.start_battle(6, GEN9, START._replace(max_turns=2))
    ticks = []
    while not any(tick.ended for tick in ticks):
        bot_host.flush()
        ticks.append(wait(bot_host))
        for record in ticks[-1].records:
            if record.request is not None:
                bot_host.choose(6, record.seat, record.request_number, "default")
    (end,), ((_, log),) = ticks[-1].ended, ticks[-1].logs
    assert (end.reason, end.winner_seat, end.turns) == ("truncated", None, 3)
    assert log.endswith("|turn|3\n")


def test_the_other_seat_is_asked_as_ever(bot_host):
    bot_host.start_battle(4, GEN9, START._replace(play=(None, BOTS[1])))
    bot_host.flush()
    (record,) = wait(bot_host).records
    assert record.seat == 0
    bot_host.choose(4, 0, record.request_number, "default")
    bot_host.flush()
    (record,) = wait(bot_host).records
    assert "|turn|2" in record.lines
    bot_host.stop_battle(4)
    bot_host.flush()
    assert wait(bot_host).played[0].decisions >= 2


def test_a_bot_that_there_is_not_is_named(bot_host):
    bot_host.start_battle(5, GEN9, START._replace(play=(("two_ply", 1), None)))
    bot_host.flush()
    assert wait(bot_host).errors[0].message == "no bot is called two_ply; there is one_ply"
