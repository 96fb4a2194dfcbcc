"""Every part of the reward on recorded battles: it fires, and sums to what a second look at the lines finds."""

from __future__ import annotations

import re

import pytest

from simul.common.config.games.pokemon import RewardsConfig
from simul.env_worker.games.pokemon.host.tally import RewardFacts
from simul.env_worker.games.pokemon.source.rewards import PARTS, RewardMeter, reward_weights
from tests.support.pokemon.vectors import SINGLES, Seat, read_vectors

ENDS_A_MOVE = re.compile(r"\n(?=\|(?:move|switch|drag|cant|turn)\||\|upkeep|\|(?:\n|$))")


def played_out() -> list[Seat]:
    """Seats of the golden vectors whose battle came to its end and whose switches all count."""
    seats = [seat for name in SINGLES for seat in read_vectors(name).seats]
    return [seat for seat in seats if seat.records[-1].final is not None and seat.free_switches == 0]


def role_of(seat: Seat) -> str:
    return f"p{seat.seat + 1}"


def text_of(seat: Seat) -> str:
    return "\n".join(record.lines for record in seat.records)


def outcome_of(seat: Seat) -> int:
    """1 won, 0 tied, -1 lost; players are called p1 and p2."""
    won = re.search(r"^\|win\|(.+)$", text_of(seat), re.MULTILINE)
    return 0 if won is None else 1 if won[1] == role_of(seat) else -1


def paid(seat: Seat, config: RewardsConfig) -> tuple[RewardMeter, list[float], RewardFacts]:
    """The seat's meter after the battle, its rewards, and where the battle ended."""
    meter = RewardMeter(reward_weights(config, 1.0))
    final = seat.records[-1].final
    assert final is not None
    facts = [decision.facts for record in seat.records for decision in record.decisions]
    rewards = [*map(meter.advance, facts), meter.finish(outcome_of(seat), final)]
    return meter, rewards, final


def expected(part: str, seat: Seat, final: RewardFacts) -> float:
    """From the lines alone, where they tell; else from where the battle ended."""
    text, own_alive, foe_alive, own_hp, foe_hp = text_of(seat), *final.standing
    foe = "p1" if seat.seat else "p2"
    if part == "win_loss":
        return outcome_of(seat)
    if part == "knockout":
        return text.count(f"|faint|{foe}") - text.count(f"|faint|{role_of(seat)}")
    if part == "pokemon_count":
        return own_alive - foe_alive
    if part == "hp_delta":
        return own_hp - foe_hp
    if part == "turn_penalty":
        return -max(map(int, re.findall(r"^\|turn\|(\d+)$", text, re.MULTILINE)))
    if part == "fail_immune":
        moves = [chunk for chunk in ENDS_A_MOVE.split(text) if chunk.startswith(f"|move|{role_of(seat)}")]
        return -sum("|-fail|" in move or "|-immune|" in move for move in moves)
    switches = text.count(f"|switch|{role_of(seat)}") - 1
    forced = [r.request for r in seat.records if r.request and "forceSwitch" in r.request]
    return len([r for r in forced if not any(mon.get("reviving") for mon in r["side"]["pokemon"])]) - switches


@pytest.mark.parametrize("part", PARTS)
def test_it_fires_and_sums_right(part):
    config = RewardsConfig(**{"win_loss": 0.0, part: 0.5}, potential_based=False)
    fired = 0
    for seat in played_out():
        meter, rewards, final = paid(seat, config)
        assert sum(rewards) == pytest.approx(0.5 * expected(part, seat, final)), seat[:2]
        assert meter.parts[PARTS.index(part)] == pytest.approx(sum(rewards))
        assert sum(map(abs, meter.parts)) == pytest.approx(abs(sum(rewards))), "no other part pays"
        fired += sum(rewards) != 0
    assert fired >= 5


@pytest.mark.parametrize("part", PARTS[1:])
def test_potential_based_it_fires_on_the_way_and_is_taken_back(part):
    config = RewardsConfig(**{"win_loss": 0.0, part: 0.5})
    fired = 0
    for seat in played_out():
        _, rewards, _ = paid(seat, config)
        assert sum(rewards) == pytest.approx(0.0)
        fired += any(rewards)
    assert fired


def test_a_battle_that_is_won_ends_with_all_foes_down():
    for seat in played_out():
        _, _, final = paid(seat, RewardsConfig())
        loser = final.standing[(outcome_of(seat) > 0)]
        assert outcome_of(seat) == 0 or loser == 0.0
