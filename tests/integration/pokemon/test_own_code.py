"""Observation and reward of one's own on the real simulator: singles, doubles, and failures."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from simul.common.config.games.pokemon import PokemonConfig, RewardsConfig
from simul.common.config.trust import EVERYTHING
from simul.common.errors import FailingEnvError
from simul.common.protocol.messages import ABORTED, DECISION, TERMINATED
from simul.env_worker.games.pokemon.source.own_code import observed_spec
from tests.support.battles import Table, check_accounts, make_source

HERE = "tests.integration.pokemon.test_own_code"


class Seen:
    """Turn, living Pokémon of both sides, and the seat."""

    size = 4

    def embed_battle(self, battle):
        fainted = sum(mon.fainted for mon in battle.opponent_team.values())
        alive = sum(not mon.fainted for mon in battle.team.values())
        return np.array([battle.turn, alive, 6 - fainted, battle.player_role == "p2"])


class Notes(Seen):
    """Keeps notes by the battle's tag, as users do; another seat's would raise."""

    def __init__(self):
        self.roles = {}

    def embed_battle(self, battle):
        assert self.roles.setdefault(battle.battle_tag, battle.player_role) == battle.player_role
        return super().embed_battle(battle)


class Slots:
    """The slot that decides, and whether its Pokémon stands."""

    size = 2

    def embed_battle(self, battle, slot):
        return [slot, battle.active_pokemon[slot] is not None]


class RaisesInOneBattle(Seen):
    def embed_battle(self, battle):
        if battle.battle_tag.endswith("-6") and battle.turn == 4:
            raise ValueError("not this battle")
        return super().embed_battle(battle)


class AlwaysRaises(Seen):
    def embed_battle(self, battle):
        raise ValueError("never")


def fainted(battle, before, seat, parts):
    """+1 for each foe that has fainted since the last decision; 100 for a battle that is won."""
    news = [sum(mon.fainted for mon in each.opponent_team.values()) for each in (battle, before)]
    assert parts["win_loss"] == (0 if battle.won is None else 1 if battle.won else -1)
    return news[0] - news[1] + (100 if battle.won else 0)


def played(config: PokemonConfig, battles: int):
    source = make_source(config, seed=3, episodes=battles, trust=EVERYTHING)
    found = []
    source.start()
    try:
        table = Table(source)
        while not source.idle():
            found += table.turn()
        metrics = source.metrics()
    finally:
        source.close()
    check_accounts(metrics)
    return found, table, metrics


@pytest.mark.parametrize("settings", [{}, {"format": "gen9randomdoublesbattle"}], ids=["singles", "doubles"])
def test_each_decision_shows_its_own_turn_and_seat(settings):
    check_each_decision(settings)


def check_each_decision(settings):
    """Two battles. Those in rooms: test_websocket.py, which has a server."""
    config = PokemonConfig(
        observation=f"{HERE}:Notes", builtin_observation=False, reward=f"{HERE}:fainted", **settings
    )  # fmt: skip
    found, table, metrics = played(config, battles=2)
    assert (metrics["episodes"]["finished"], metrics["episodes"]["aborted"]) == (2, {})
    turns: dict[tuple[int, int, int], list[float]] = {}
    for decision in found:
        if decision.kind != DECISION:
            continue
        turn, alive, foes, seat = decision.observation
        assert seat == decision.seat
        assert 0 <= alive <= 6
        assert 0 <= foes <= 6
        turns.setdefault((decision.env, decision.seat, decision.episode), []).append(turn)
    assert all(seen == sorted(seen) and seen[-1] > 3 for seen in turns.values())
    totals = list(table.rewards.values())
    assert sorted(total == 1 + 100 + 6 for total in totals) == [False] * 2 + [True] * 2
    assert all(total in range(-1, 6) for total in totals if total < 50)  # 5: the last two faint together
    assert metrics["reward_parts"]["fainted"] == sum(totals)
    assert metrics["recent"]["all"]["figure.reward_fainted"] > 0


def test_in_doubles_it_is_told_which_slot_decides():
    config = PokemonConfig(format="gen9randomdoublesbattle", observation=f"{HERE}:Slots")
    right = observed_spec(config, EVERYTHING).slice("global.right").start
    found, *_ = played(config, battles=1)
    decided = [decision.observation for decision in found if decision.kind == DECISION]
    assert {seen[-2] for seen in decided} == {0.0, 1.0}
    assert all(seen[-2] == seen[right] for seen in decided)


@pytest.mark.slow  # .ci/long runs it
def test_beside_the_built_in_row_and_rewards_nothing_of_them_changes():
    weights = RewardsConfig(hp_delta=0.5)
    plain, *_ = played(PokemonConfig(rewards=weights), battles=2)
    config = PokemonConfig(rewards=weights, observation=f"{HERE}:Seen")
    beside, *_ = played(config, battles=2)
    assert len(plain) == len(beside)
    for mine, other in zip(plain, beside):
        assert mine.reward == other.reward
        if mine.kind == DECISION:
            assert np.array_equal(mine.observation, other.observation[:-4].astype(np.float16))
            assert np.array_equal(mine.mask, other.mask)


def test_a_battle_in_which_it_raises_is_aborted_counted_and_named():
    _, table, metrics = played(PokemonConfig(observation=f"{HERE}:RaisesInOneBattle"), battles=4)
    assert metrics["episodes"]["aborted"] == {"own_code": 1}
    assert metrics["episodes"]["finished"] == 3
    assert Counter(end.kind for end in table.ends.values()) == {ABORTED: 2, TERMINATED: 6}
    (event,) = [line for line in metrics["events"] if "own_code" in line]
    assert "test_own_code.py:" in event
    assert "ValueError: not this battle" in event
    assert "(battle 3, which is aborted)" in event


def test_one_that_fails_again_and_again_ends_the_run():
    said = r"20 of the last 20 episodes failed, .*: \S*test_own_code.py:\d+: ValueError: never"
    with pytest.raises(FailingEnvError, match=said):
        played(PokemonConfig(observation=f"{HERE}:AlwaysRaises"), battles=100)
