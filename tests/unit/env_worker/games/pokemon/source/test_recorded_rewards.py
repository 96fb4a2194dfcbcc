"""Every part of the reward on recorded battles: it fires, and sums to what a second look at the lines finds."""

from __future__ import annotations

import re

import pytest

from simul.common.config.games.pokemon import RewardsConfig
from simul.env_worker.games.pokemon.battle_view.seat_battle import SeatBattle
from simul.env_worker.games.pokemon.encoding.actions import legal_choices
from simul.env_worker.games.pokemon.encoding.encoder import SeatEncoder
from simul.env_worker.games.pokemon.host.tally import RewardFacts, TallyKeeper
from simul.env_worker.games.pokemon.source.rewards import PARTS, RewardMeter, reward_weights
from tests.support.pokemon.recorded import RecordedSeat, recorded_seats

ENDS_A_MOVE = re.compile(r"\n(?=\|(?:move|switch|drag|cant|turn)\||\|upkeep|\|(?:\n|$))")


def text_of(seat: RecordedSeat) -> str:
    return "\n".join(lines for lines, _ in seat.records)


def outcome_of(seat: RecordedSeat) -> int:
    """1 won, 0 tied, -1 lost; players are called p1 and p2."""
    won = re.search(r"^\|win\|(.+)$", text_of(seat), re.MULTILINE)
    return 0 if won is None else 1 if won[1] == seat.role else -1


Facts = tuple[tuple[RewardFacts, ...], RewardFacts]  # at every decision, and where the battle ended


def facts_of(seat: RecordedSeat) -> Facts:
    """What rewards are of, whatever their weights: each battle is read once for all tests."""
    key = (seat.format, seat.battle, seat.seat)
    if key not in _facts:
        _facts[key] = _read(seat)
    return _facts[key]


_facts: dict[tuple[str, int, int], Facts] = {}


def _read(seat: RecordedSeat) -> Facts:
    battle = SeatBattle(seat.role, seat.gen)
    encoder, keeper = SeatEncoder(battle, seat.gen), TallyKeeper(seat.role, 0)
    found = []
    for lines, request in seat.records:
        battle.feed(lines)
        keeper.count_lines(lines, request)
        if request is None or request.get("teamPreview"):
            continue
        battle.sync(request)
        encoder.encode(request, legal_choices(request, battle.position))
        found.append(RewardFacts(encoder.standing, battle._turn, keeper.tally))
    encoder.survey()
    return tuple(found), RewardFacts(encoder.standing, battle._turn + 1, keeper.tally)


def paid(seat: RecordedSeat, config: RewardsConfig) -> tuple[RewardMeter, list[float], RewardFacts]:
    """The seat's meter after the battle, its rewards, and where the battle ended."""
    meter = RewardMeter(reward_weights(config, 1.0))
    facts, final = facts_of(seat)
    rewards = [*map(meter.advance, facts), meter.finish(outcome_of(seat), final)]
    return meter, rewards, final


def expected(part: str, seat: RecordedSeat, final: RewardFacts) -> float:
    """From the lines alone, where they tell; else from where the battle ended."""
    text, own_alive, foe_alive, own_hp, foe_hp = text_of(seat), *final.standing
    foe = "p1" if seat.role == "p2" else "p2"
    if part == "win_loss":
        return outcome_of(seat)
    if part == "knockout":
        return text.count(f"|faint|{foe}") - text.count(f"|faint|{seat.role}")
    if part == "pokemon_count":
        return own_alive - foe_alive
    if part == "hp_delta":
        return own_hp - foe_hp
    if part == "turn_penalty":
        return -max(map(int, re.findall(r"^\|turn\|(\d+)$", text, re.MULTILINE)))
    if part == "fail_immune":
        moves = [chunk for chunk in ENDS_A_MOVE.split(text) if chunk.startswith(f"|move|{seat.role}")]
        return -sum("|-fail|" in move or "|-immune|" in move for move in moves)
    switches = text.count(f"|switch|{seat.role}") - 1
    forced = [r for _, r in seat.records if r and "forceSwitch" in r]
    return len([r for r in forced if not any(mon.get("reviving") for mon in r["side"]["pokemon"])]) - switches


@pytest.mark.parametrize("part", PARTS)
def test_it_fires_and_sums_right(part):
    config = RewardsConfig(**{"win_loss": 0.0, part: 0.5}, potential_based=False)
    fired = 0
    for seat in recorded_seats():
        meter, rewards, final = paid(seat, config)
        assert sum(rewards) == pytest.approx(0.5 * expected(part, seat, final)), (seat.format, seat.battle, seat.seat)
        assert meter.parts[PARTS.index(part)] == pytest.approx(sum(rewards))
        assert sum(map(abs, meter.parts)) == pytest.approx(abs(sum(rewards))), "no other part pays"
        fired += sum(rewards) != 0
    assert fired >= 5


@pytest.mark.parametrize("part", PARTS[1:])
def test_potential_based_it_fires_on_the_way_and_is_taken_back(part):
    config = RewardsConfig(**{"win_loss": 0.0, part: 0.5})
    fired = 0
    for seat in recorded_seats("gen[49]randombattle"):
        _, rewards, _ = paid(seat, config)
        assert sum(rewards) == pytest.approx(0.0)
        fired += any(rewards)
    assert fired


def test_a_battle_that_is_won_ends_with_all_foes_down():
    for seat in recorded_seats():
        _, _, final = paid(seat, RewardsConfig())
        loser = final.standing[(outcome_of(seat) > 0)]
        assert outcome_of(seat) == 0 or loser == 0.0
