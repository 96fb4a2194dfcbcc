"""The simulator host, through host.py, on the real simulator."""

from __future__ import annotations

import json
import os
import random
import select
import signal
import subprocess
import sys
import time
from collections import defaultdict

import psutil
import pytest

from env_worker.games.pokemon.battle_host import BattleStart
from env_worker.games.pokemon.host import HOST_SCRIPT, HostDied, SimHost
from env_worker.games.pokemon.node import find_node

GEN9 = "gen9randombattle"


@pytest.fixture(scope="module")
def host():
    host = SimHost(find_node().path)
    host.start()
    yield host
    host.close()


@pytest.fixture
def own_host():
    host = SimHost(find_node().path, index=3)
    host.start()
    yield host
    host.close()


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


def wait(host, seconds=20.0):
    """Waits for the host, writing on where the pipe was full."""
    ready, _, _ = select.select([host.fileno()], [host.write_fileno()] if host.wants_write else [], [], seconds)
    return host.poll() if ready or host.wants_write else pytest.fail("the host says nothing")


def start_of(number):
    seed, *team_seeds = [[7, 7, which, number] for which in range(3)]
    return BattleStart(seed, tuple(team_seeds), names=("a", "b"))


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


def test_many_battles_at_once_all_end_and_memory_stays_small(host):
    table = Table(host).play(range(96), live=64)
    assert len(table.ended) == 96
    assert {end.reason for end in table.ended.values()} <= {"win", "tie"}
    for number, end in table.ended.items():
        for seat in (0, 1):
            _, lines, request = table.records[number, seat][-1]
            assert request is None
            won = [line for line in lines.split("\n") if line.startswith(("|win|", "|tie"))]
            assert won == ([f"|win|{'ab'[end.winner_seat]}"] if end.reason == "win" else ["|tie"])
    assert psutil.Process(host.pid).memory_info().rss < 600e6


def test_same_seeds_and_choices_give_the_same_records_whatever_runs_beside(host, own_host):
    together = Table(host).play(range(6), live=6, base=1000)
    alone = Table(own_host).play(reversed(range(6)), live=1)
    assert together.records == alone.records
    assert together.ended.keys() == alone.ended.keys()


@pytest.mark.parametrize("battle_format", ["gen1randombattle", "gen5randombattle", GEN9, "gen9randomdoublesbattle"])
def test_each_seat_hears_what_its_player_stream_would_deliver(host, battle_format):
    table = Table(host, battle_format).play(range(2), live=2, base=2000)
    for number in range(2):
        script = {"format": battle_format, "choices": table.choices[number], **start_of(number)._asdict()}
        reference = subprocess.run(
            [find_node().path, HOST_SCRIPT.with_name("reference_streams.mjs")],
            input=json.dumps(script),
            capture_output=True,
            text=True,
            check=True,
        )
        for seat, (lines, requests) in enumerate(json.loads(reference.stdout)):
            records = table.records[number, seat]
            assert "\n".join(text for _, text, _ in records if text) == lines
            assert [request for _, _, request in records if request is not None] == requests


def test_a_seat_sees_nothing_hidden(host):
    table = Table(host).play(range(8), live=8, base=3000)
    for (_, seat), records in table.records.items():
        text = "\n".join(lines for _, lines, _ in records)
        for hidden in ("|split|", "inputLog", "|request|", '"seed"', "|t:|"):
            assert hidden not in text
        foe = f"p{2 - seat}a: "
        for line in text.split("\n"):
            parts = line.split("|")
            if len(parts) > 4 and parts[1] in ("switch", "drag") and parts[2].startswith(foe):
                assert parts[4].split(" ")[0].endswith("/100")  # percent, never points
        for _, _, request in records:
            assert request is None or request["side"]["id"] == f"p{seat + 1}"


def test_request_numbers_count_up_per_seat(host):
    table = Table(host).play([1], live=1, base=4000)
    for seat in (0, 1):
        numbers = [request_number for request_number, _, _ in table.records[1, seat]]
        assert numbers == list(range(1, len(numbers) + 1))


def test_unavailable_choice_asks_only_that_seat_again(host):
    table = Table(host, "gen6randombattle").play(range(40), live=16, base=5000)
    errors = [error for errors in table.errors.values() for error in errors]
    assert errors, "no trapping ability met: change the seeds"
    assert {error.kind for error in errors} == {"unavailable"}
    for error in errors:
        records = table.records[error.battle - 5000, error.seat]
        again = next(record for record in records if record[0] == error.request_number + 1)
        assert again[2] is not None
        assert again[1] == ""  # nothing has happened in between
        assert again[2]["active"][0].get("trapped") or any(m.get("disabled") for m in again[2]["active"][0]["moves"])


def start_one(host, battle, battle_format=GEN9, **keywords):
    host.start_battle(battle, battle_format, BattleStart(**keywords))
    host.flush()
    return wait(host)


def test_invalid_choice_leaves_the_request_open(own_host):
    start_one(own_host, 1)
    own_host.choose(1, 0, 1, "move 9")
    own_host.flush()
    tick = wait(own_host)
    assert [(error.kind, error.request_number) for error in tick.errors] == [("invalid", 1)]
    assert not tick.records
    own_host.choose(1, 0, 1, "move 1")
    own_host.choose(1, 1, 1, "move 1")
    own_host.flush()
    assert {record.seat for record in wait(own_host).records} <= {0, 1}


def test_stale_choices_are_reported_and_change_nothing(own_host):
    start_one(own_host, 1)
    own_host.choose(99, 0, 1, "move 1")
    own_host.choose(1, 0, 2, "move 1")
    own_host.choose(1, 0, 1, "move 1")
    own_host.choose(1, 0, 1, "move 2")
    own_host.choose(1, 7, 1, "move 2")
    own_host.flush()
    tick = wait(own_host)
    assert [error.kind for error in tick.errors] == ["stale"] * 4
    assert not tick.records


def test_a_crash_ends_only_its_own_battle(own_host):
    own_host.start_battle(1, "gen9randombatle")
    own_host.start_battle(2, GEN9, BattleStart(names=("same", "same")))
    own_host.start_battle(3, GEN9)
    own_host.start_battle(4, GEN9)
    own_host.choose(3, 0, 1, {"not": "a string"})
    own_host.choose(4, 0, 1, "move 1")
    own_host.choose(4, 1, 1, "move 1")
    own_host.flush()
    tick = wait(own_host)
    assert [(end.battle, end.winner_seat, end.reason) for end in tick.ended] == [
        (1, None, "crashed"),
        (2, None, "crashed"),
        (3, None, "crashed"),
    ]
    assert "unknown format gen9randombatle" in tick.errors[0].message
    assert "battle 1 crashed" in own_host.stderr_tail() or "battle 3 crashed" in own_host.stderr_tail()
    assert [record.request_number for record in tick.records if record.battle == 4][:2] == [1, 1]


def test_stop_frees_a_battle_without_a_result(own_host):
    start_one(own_host, 5)
    own_host.stop_battle(5)
    own_host.choose(5, 0, 1, "move 1")
    own_host.ping(42)
    own_host.flush()
    tick = wait(own_host)
    assert [end[:4] for end in tick.ended] == [(5, None, 1, "stopped")]
    assert [error.kind for error in tick.errors] == ["stale"]
    assert tick.pong == 42
    assert start_one(own_host, 5).records  # the id is free again


def test_turn_limit_is_told_apart_from_a_tie(own_host):
    team = "Magikarp||||splash|||||||]Weedle||||tackle|||||||"
    tick = start_one(own_host, 1, "gen1ou", teams=(team, team), seed=[1, 2, 3, 4])
    while not tick.ended:
        for record in tick.records:
            if record.request is not None:
                own_host.choose(1, record.seat, record.request_number, "switch 2")
        own_host.flush()
        tick = wait(own_host)
    assert [end[:4] for end in tick.ended] == [(1, None, 1000, "turn_limit")]


def test_full_pipes_do_not_block_either_end(own_host):
    started = time.monotonic()
    for battle in range(400):  # about 5 MB of answers, many times what the pipe holds
        own_host.start_battle(battle, GEN9, BattleStart(names=("a" * 2000, "b"), seed=[1, 2, 3, battle]))
        if battle % 40 == 0:
            own_host.flush()
    own_host.flush()
    records = []
    while len(records) < 800:
        records += wait(own_host).records
        assert time.monotonic() - started < 60
    assert {(record.battle, record.seat) for record in records} == {(b, s) for b in range(400) for s in (0, 1)}


def test_a_killed_host_is_noticed_with_its_exit_code(own_host):
    start_one(own_host, 1)
    os.kill(own_host.pid, signal.SIGKILL)
    own_host.choose(1, 0, 1, "move 1")
    own_host.flush()
    with pytest.raises(HostDied, match=r"host 3 exited with code -9"):
        wait(own_host)


def test_close_leaves_no_process():
    host = SimHost(find_node().path)
    host.start()
    pid = host.pid
    start_one(host, 1)
    host.close()
    assert not psutil.pid_exists(pid)
    host.close()  # twice is fine


def test_the_host_ends_with_its_owner():
    program = (
        "import os; from env_worker.games.pokemon.host import SimHost; "
        "from env_worker.games.pokemon.node import find_node; "
        "h = SimHost(find_node().path); h.start(); print(h.pid, flush=True); os._exit(1)"
    )
    owner = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    pid = int(owner.stdout)
    deadline = time.monotonic() + 10
    while psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_acceleration_can_be_turned_off():
    host = SimHost(find_node().path, accelerate=False)
    host.start()
    assert host.hello["accelerated"] is False
    host.close()


def test_acceleration_is_on_for_the_pinned_version(host):
    assert host.hello["accelerated"] is True
    assert host.hello["showdown"] == "0.11.11"
