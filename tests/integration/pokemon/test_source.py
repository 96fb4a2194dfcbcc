"""PokemonSource on the real simulator: sessions, ends, accounts, kills."""

import os
import random
import select
import signal
import subprocess
import sys
import time
from collections import Counter

import numpy as np
import pytest

from common.config import OpponentsConfig, PokemonConfig, RewardsConfig
from common.decisions import Action, Decision
from common.messages import ABORTED, DECISION, GREEDY, RECORD, START, TERMINATED, TRUNCATED
from env_worker.games.pokemon.actions import legal_choices
from env_worker.games.pokemon.battle_host import BattleStart
from env_worker.games.pokemon.encoder import SeatEncoder
from env_worker.games.pokemon.host import SimHost
from env_worker.games.pokemon.host_tables import encoder_tables
from env_worker.games.pokemon.layout import OBSERVATION_SIZE
from env_worker.games.pokemon.node import find_node
from env_worker.games.pokemon.seat_battle import SeatBattle
from env_worker.games.pokemon.source import PokemonSource


def make_source(config: PokemonConfig | None = None, opponents: OpponentsConfig | None = None, **more) -> PokemonSource:
    options = {"envs": 8, "seed": 5, "index": 0, **more}
    return PokemonSource(config or PokemonConfig(), opponents or OpponentsConfig(), **options)


class Table:
    """Plays random legal actions and checks the contract of every decision it is given."""

    def __init__(self, source: PokemonSource) -> None:
        self.source = source
        self.open: dict[tuple[int, int, int], Decision] = {}
        self.ends: dict[tuple[int, int, int], Decision] = {}
        self.starts: list[Decision] = []
        self.rewards: Counter = Counter()
        self.decisions = 0

    def turn(self, answer: bool = True) -> list[Decision]:
        decisions = self.source.poll()
        actions = [action for decision in decisions if (action := self.take(decision)) is not None]
        if answer:
            self.source.act(actions)
        if not decisions:
            select.select(self.source.files(), [], [], 0.05)
        return decisions

    def take(self, decision: Decision) -> Action | None:
        key = (decision.env, decision.seat, decision.episode)
        last = self.open.get(key)
        assert key not in self.ends, "nothing follows an end"
        self.rewards[key] += decision.reward
        if decision.kind != DECISION:
            assert last is not None
            assert decision.step == last.step + 1
            assert decision.attempt == 0
            self.ends[key] = decision
            return None
        self.decisions += 1
        if decision.attempt:
            assert (decision.step, decision.attempt) == (last.step, last.attempt + 1)
            assert decision.reward == 0.0
        else:
            assert decision.step == (last.step + 1 if last is not None else 0)
        assert bool(decision.flags & START) == (decision.step == 0)
        if decision.step == 0 and decision.attempt == 0:
            self.starts.append(decision)
        assert decision.observation.shape == (self.source.spec.observation_size,)
        assert decision.mask.shape == (self.source.spec.num_actions,)
        assert np.isfinite(decision.observation).all()
        legal = np.flatnonzero(decision.mask)
        self.open[key] = decision
        rng = random.Random(repr((key, decision.step, decision.attempt)))
        action = int(rng.choice(list(legal)))
        return Action(*key, decision.step, decision.attempt, action, 0.0, 0.0, 0)

    def play(self, seconds: float = 120.0) -> None:
        deadline = time.monotonic() + seconds
        while not self.source.idle():
            assert time.monotonic() < deadline
            self.turn()


def check_accounts(metrics: dict) -> None:
    episodes = metrics["episodes"]
    assert episodes["started"] == episodes["finished"] + sum(episodes["aborted"].values()) + episodes["alive"]


def test_self_play_to_the_end():
    source = make_source(episodes=12)
    source.start()
    try:
        table = Table(source)
        table.play()
        metrics = source.metrics()
    finally:
        source.close()
    check_accounts(metrics)
    assert metrics["episodes"]["started"] == metrics["episodes"]["finished"] == 12
    assert metrics["invalid_choices"] == metrics["bad_actions"] == 0
    assert metrics["parse_errors"] == {}
    assert len(table.ends) == 24
    assert {end.kind for end in table.ends.values()} == {TERMINATED}
    assert all(start.flags == START | RECORD for start in table.starts)
    for (env, _, episode), end in table.ends.items():
        assert end.reward == -table.ends[env, 1 - end.seat, episode].reward
    assert sum(metrics["results"]["self_play"].values()) == 12


@pytest.mark.parametrize("kind", ["random", "max_base_power", "simple_heuristics"])
def test_scripted_opponents_play_one_seat_and_the_learner_alternates(kind):
    source = make_source(opponents=OpponentsConfig(self_play=0.0, **{kind: 1.0}), episodes=8, greedy=True, record=False)
    source.start()
    try:
        table = Table(source)
        table.play()
        metrics = source.metrics()
    finally:
        source.close()
    check_accounts(metrics)
    results = metrics["results"][kind]
    assert sum(results.values()) == 8
    assert Counter(end.seat for end in table.ends.values()) == {0: 4, 1: 4}
    assert results["wins"] == sum(end.reward > 0 for end in table.ends.values())
    assert results["losses"] == sum(end.reward < 0 for end in table.ends.values())
    assert all(start.flags == START | GREEDY for start in table.starts)
    assert metrics["scripted"]["decisions"] > 50
    assert metrics["scripted"]["invalid"] == 0


@pytest.mark.parametrize("kind", ["random", "max_base_power", "simple_heuristics"])
def test_doubles_are_played_and_encoded_in_python(kind):
    config = PokemonConfig(format="gen9randomdoublesbattle", max_turns=60)
    source = make_source(config, OpponentsConfig(self_play=0.5, **{kind: 0.5}), envs=6, episodes=6)
    _, metrics = played(source)
    check_accounts(metrics)
    assert metrics["episodes"]["finished"] == 6
    assert metrics["invalid_choices"] == metrics["bad_actions"] == metrics["scripted"]["invalid"] == 0
    assert metrics["scripted"]["decisions"] > 10
    assert metrics["parse_errors"] == {}
    assert "does not know doubles" in metrics["events"][0]


def test_past_selves_are_bound_for_the_battle_and_not_recorded():
    source = make_source(opponents=OpponentsConfig(self_play=0.0, past=1.0), envs=2, episodes=4)
    source.start()
    try:
        table = Table(source)
        while len(table.starts) < 4:
            table.turn(answer=False)
        assert all(start.policy == "learner" and start.flags & RECORD for start in table.starts)
        source.set_policies(["learner", "past/3", "past/9"])
        source.abort([0, 1], "test")
        while len(table.starts) < 8:
            table.turn(answer=False)
    finally:
        source.close()
    later = table.starts[4:]
    assert sorted(start.policy.split("/")[0] for start in later) == ["learner", "learner", "past", "past"]
    assert all(bool(start.flags & RECORD) == (start.policy == "learner") for start in later)
    assert [end.kind for end in table.ends.values()] == [ABORTED] * 4
    assert source.metrics()["episodes"]["aborted"] == {"test": 2, "shutdown": 2}


def test_sessions_the_server_lost_get_no_end():
    source = make_source(envs=2)
    source.start()
    try:
        table = Table(source)
        while len(table.starts) < 4:
            table.turn(answer=False)
        source.abort([0, 1], "server_lost")
        while len(table.starts) < 8:
            table.turn(answer=False)
    finally:
        source.close()
    assert table.ends == {}
    check_accounts(source.metrics())


def test_turn_limit_truncates_with_the_final_observation():
    source = make_source(PokemonConfig(max_turns=3, rewards=RewardsConfig(hp_delta=0.5)), episodes=8)
    source.start()
    try:
        table = Table(source)
        table.play()
        metrics = source.metrics()
    finally:
        source.close()
    check_accounts(metrics)
    assert metrics["episodes"]["truncated"] == 8
    assert metrics["episodes"]["finished"] == 8
    assert len(table.ends) == 16
    for key, end in table.ends.items():
        assert end.kind == TRUNCATED
        assert end.observation.shape == (OBSERVATION_SIZE,)
        assert end.mask.any()
        assert end.observation[0] == np.float16(4 / 100), "the turn after the last one played"
        assert table.open[key].observation[0] <= np.float16(3 / 100)


def test_a_killed_host_costs_its_battles_only():
    source = make_source(episodes=20)
    source.start()
    try:
        table = Table(source)
        while table.decisions < 100:
            table.turn()
        os.kill(source.metrics()["host_pids"][0], signal.SIGKILL)
        died = time.monotonic()
        before = len(table.starts)
        while len(table.starts) == before:
            table.turn()
            assert time.monotonic() < died + 10
        aborted = [end for end in table.ends.values() if end.kind == ABORTED]
        table.play()
        metrics = source.metrics()
    finally:
        source.close()
    check_accounts(metrics)
    assert metrics["episodes"]["aborted"]["host_died"] == len({end.env for end in aborted})
    assert all(end.reward == 0.0 for end in aborted)
    assert metrics["host_restarts"] == 1
    assert any("exited" in event for event in metrics["events"])
    assert metrics["episodes"]["started"] == 20


def first_rows(seed: int, encoder: str = "host") -> dict[tuple, bytes]:
    rows, _ = played(make_source(PokemonConfig(encoder=encoder), envs=3, seed=seed, episodes=3))
    return rows


def played(source: PokemonSource) -> tuple[dict[tuple, bytes], dict]:
    """Every observation of a source that plays its episodes to the end, and its metrics."""
    source.start()
    rows = {}
    try:
        table = Table(source)
        while not source.idle():
            for decision in table.turn():
                if decision.observation is not None:
                    key = (decision.env, decision.seat, decision.episode, decision.step, decision.attempt)
                    rows[key] = decision.observation.tobytes()
        metrics = source.metrics()
    finally:
        source.close()
    return rows, metrics


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


MEMORY_SCRIPT = """
import random, select, time
import psutil
from common.config import OpponentsConfig, PokemonConfig
from common.decisions import Action
from env_worker.games.pokemon.source import PokemonSource
source = PokemonSource(PokemonConfig(), OpponentsConfig(), envs=64, seed=1, index=0)
source.start()
rss, end = [], time.monotonic() + {seconds}
while time.monotonic() < end:
    actions = []
    for d in source.poll():
        if d.kind == 0:
            action = random.choice([i for i, bit in enumerate(d.mask) if bit])
            actions.append(Action(d.env, d.seat, d.episode, d.step, d.attempt, action, 0.0, 0.0, 0))
    source.act(actions)
    if not actions:
        select.select(source.files(), [], [], 0.05)
    rss.append(psutil.Process().memory_info().rss / 1e6)
import sys
assert "torch" not in sys.modules
print(max(rss), rss[len(rss) // 2], rss[-1], source.metrics()["episodes"]["finished"])
source.close()
"""


@pytest.mark.timeout(500)
@pytest.mark.parametrize("seconds", [12, pytest.param(300, marks=pytest.mark.slow)])
def test_memory_with_64_battles(seconds):
    """Megabytes of the Python process: below 200, and flat once the static data of all species is in."""
    script = MEMORY_SCRIPT.replace("{seconds}", str(seconds))
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=seconds + 100)
    assert done.returncode == 0, done.stderr
    peak, middle, last, _ = map(float, done.stdout.split())
    assert peak < 200
    if seconds > 100:
        assert last < 1.05 * middle
