"""The host, through `NodeHost`, on the real simulator."""

from __future__ import annotations

import json
import os
import random
import select
import subprocess
from collections import defaultdict
from pathlib import Path

import psutil
import pytest

from simul.env_worker.games.pokemon.host.backend import BattleStart
from simul.env_worker.games.pokemon.host.node_host import NodeHost
from simul.env_worker.games.pokemon.install.node import find_node
from tests.support.hosts import GEN9, wait
from tests.support.waiting import PATIENCE_SEC

TRAPPING = (23, 37, 38)  # battles of gen6randombattle in which one meets a trapping ability
REFERENCE_STREAMS = Path("tests/support/pokemon/reference_streams.mjs")


def random_choice(request, rng):
    """A random legal choice in singles; `default` where order or targets would have to be named."""
    if request.get("teamPreview") or len(request.get("active") or request["forceSwitch"]) > 1:
        return "default"
    team = request["side"]["pokemon"]
    reviving = team[0].get("reviving", False)
    switches = [
        f"switch {slot}"
        for slot, pokemon in enumerate(team, 1)
        if not pokemon["active"] and pokemon["condition"].endswith(" fnt") == reviving
    ]
    if "forceSwitch" in request:
        return rng.choice(switches)
    active = request["active"][0]
    moves = [f"move {slot}" for slot, move in enumerate(active["moves"], 1) if not move.get("disabled")]
    return rng.choice(moves + ([] if active.get("trapped") else switches))


def start_of(number):
    """Odd ones are of a team pool: the host keeps what it draws for them."""
    seed, *team_seeds = [[7, 7, which, number] for which in range(3)]
    return BattleStart(seed, tuple(team_seeds), names=("a", "b"), reuse=number % 2 == 1)


class Table:
    """Plays battles to their end; each battle has its own random player, so order does not matter."""

    def __init__(self, host, battle_format=GEN9):
        self.host, self.format = host, battle_format
        self.records, self.errors, self.ended = defaultdict(list), defaultdict(list), {}
        self.choices = defaultdict(list)
        self.rngs = {}

    def play(self, numbers, live, base=0):
        todo = list(numbers)
        alive = set()
        while todo or alive:
            while todo and len(alive) < live:
                number = todo.pop()
                alive.add(number)
                self.rngs[number] = [random.Random(f"{number} {seat}") for seat in (0, 1)]
                self.host.start_battle(base + number, self.format, start_of(number))
            self.host.flush()
            self.take(wait(self.host), base)
            alive -= self.ended.keys()
        return self

    def take(self, tick, base):
        for battle, seat, request_number, lines, request in tick.records:
            number = battle - base
            self.records[number, seat].append((request_number, lines, request))
            if request is not None:
                choice = random_choice(request, self.rngs[number][seat])
                self.choices[number].append((seat, choice))
                self.host.choose(battle, seat, request_number, choice)
        for error in tick.errors:
            self.errors[error.battle - base].append(error)
        for end in tick.ended:
            self.ended[end.battle - base] = end


@pytest.mark.parametrize(("battles", "live"), [(16, 12), pytest.param(40, 32, marks=pytest.mark.slow)])
def test_many_battles_at_once_all_end_and_memory_stays_small(host, battles, live):
    """.ci/long has the forty."""
    table = Table(host).play(range(battles), live=live)
    assert len(table.ended) == battles
    assert {end.reason for end in table.ended.values()} <= {"win", "tie"}
    for number, end in table.ended.items():
        for seat in (0, 1):
            _, lines, request = table.records[number, seat][-1]
            assert request is None
            won = [line for line in lines.split("\n") if line.startswith(("|win|", "|tie"))]
            assert won == ([f"|win|{'ab'[end.winner_seat]}"] if end.reason == "win" else ["|tie"])
    assert psutil.Process(host.pid).memory_info().rss < 600e6


def test_a_host_writes_after_so_many_requests():
    host = NodeHost(find_node().path, replies_per_write=3)
    host.start()
    try:
        for number in range(6):
            host.start_battle(number, GEN9, start_of(number))
        host.flush()
        said = bytearray()
        while said.count(b"\n") < 3:
            assert select.select([host.fileno()], [], [], PATIENCE_SEC)[0]
            said += os.read(host.fileno(), 1 << 20)
        assert [len(json.loads(line)["records"]) for line in said.splitlines()] == [4, 4, 4]  # a battle asks two seats
    finally:
        host.close()


@pytest.mark.parametrize(
    "battle_format",
    [
        "gen1randombattle",
        pytest.param("gen5randombattle", marks=pytest.mark.slow),  # .ci/long runs the two
        pytest.param(GEN9, marks=pytest.mark.slow),
        "gen9randomdoublesbattle",
    ],
)
def test_each_seat_hears_what_its_player_stream_would_deliver(host, battle_format):
    table = Table(host, battle_format).play(range(2), live=2, base=2000)
    scripts = [
        {"format": battle_format, "choices": table.choices[number], **start_of(number)._asdict()} for number in range(2)
    ]
    reference = subprocess.run(
        [find_node().path, REFERENCE_STREAMS],
        input=json.dumps(scripts),
        capture_output=True,
        text=True,
        check=True,
    )
    for number, heard in enumerate(json.loads(reference.stdout)):
        for seat, (lines, requests) in enumerate(heard):
            records = table.records[number, seat]
            assert "\n".join(text for _, text, _ in records if text) == lines
            assert [request for _, _, request in records if request is not None] == requests


def test_custom_rules_of_a_format_hold(host):
    rules = "Max Team Size=3,Inverse Mod"
    for number, reuse in ((6000, False), (6001, True)):
        host.start_battle(number, f"{GEN9}@@@{rules}", start_of(number)._replace(reuse=reuse))
    host.flush()
    records = wait(host).records
    assert len(records) == 4
    for record in records:
        assert len(record.request["side"]["pokemon"]) == 3
        assert "|rule|Inverse Mod: " in record.lines


def test_unavailable_choice_asks_only_that_seat_again(host):
    table = Table(host, "gen6randombattle").play(TRAPPING, live=3, base=5000)
    errors = [error for errors in table.errors.values() for error in errors]
    assert table.errors.keys() == set(TRAPPING), "no trapping ability met: look for other numbers"
    assert {error.kind for error in errors} == {"unavailable"}
    for error in errors:
        records = table.records[error.battle - 5000, error.seat]
        again = next(record for record in records if record[0] == error.request_number + 1)
        assert again[2] is not None
        assert again[1] == ""  # nothing has happened in between
        assert again[2]["active"][0].get("trapped") or any(m.get("disabled") for m in again[2]["active"][0]["moves"])
