import pytest

from simul.common.checkpoints.meta import WEIGHTS_FILE
from simul.common.nets.build import build_network
from simul.common.nets.io import weights_to_bytes
from simul.learner.checkpoints.league import League


@pytest.fixture
def join(facts, network):
    def add(league, version, decisions):
        weights = weights_to_bytes(network)
        league.add_past_self(facts.meta(version, decisions, 0, {WEIGHTS_FILE: weights}, True), weights)

    return add


def test_joins_by_decisions_and_outlives_a_restart(tmp_path, facts, join):
    league = League(tmp_path, every_decisions=100, resident=2)
    assert not league.due(99)
    assert league.due(100)
    for version, decisions in ((3, 104), (9, 200), (12, 330)):
        assert league.due(decisions)
        join(league, version, decisions)
        assert not league.due(decisions)
    assert [past.name for past in league.resident] == ["past/3", "past/12"]
    again = League(tmp_path, every_decisions=100, resident=2)
    again.load_past_selves(facts.spec, 340)
    assert again.drain_notes() == []
    assert again.resident == league.resident
    assert not again.due(399)
    assert again.due(400)


def test_a_damaged_past_self_leaves_the_league(tmp_path, facts, join):
    league = League(tmp_path, every_decisions=100, resident=2)
    join(league, 3, 104)
    join(league, 9, 200)
    (tmp_path / "000000003" / WEIGHTS_FILE).write_bytes(b"")
    again = League(tmp_path, every_decisions=100, resident=2)
    again.load_past_selves(facts.spec, 250)
    assert "damaged" in again.drain_notes()[0]
    assert [past.name for past in again.resident] == ["past/9"]


def test_no_residents_no_past_selves(tmp_path):
    assert not League(tmp_path, every_decisions=1, resident=0).due(10**9)


def test_a_version_that_comes_twice_is_one_past_self_with_the_new_weights(tmp_path, facts, join, network):
    league = League(tmp_path, every_decisions=100, resident=3)
    join(league, 3, 104)
    join(league, 9, 200)
    again = League(tmp_path, every_decisions=100, resident=3)
    again.load_past_selves(facts.spec, 150)
    assert "past/9 is newer than the checkpoint" in again.drain_notes()[0]
    assert [past.name for past in again.resident] == ["past/3"]
    join(again, 9, 200)
    other = weights_to_bytes(build_network(facts.network, facts.spec, seed=99))
    again.add_past_self(facts.meta(9, 300, 0, {WEIGHTS_FILE: other}, True), other)
    assert [past.version for past in again.resident] == [3, 9]
    assert again.resident[1].weights == other
