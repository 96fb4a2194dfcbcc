"""What the damage numbers keep from decision to decision is what they would be if nothing were kept."""

import pytest

from simul.env_worker.games.pokemon.encoding import damage_block as writer
from simul.env_worker.games.pokemon.tables.layout import Extras
from tests.support.pokemon.recorded import RecordedSeat, encoded, recorded_seats


def observations(seat: RecordedSeat, attackers: int) -> list[bytes]:
    return [one.row.tobytes() for one in encoded(seat, Extras(attackers))]


@pytest.mark.parametrize("attackers", [3, 6])
@pytest.mark.parametrize("battle_format", ["gen4randombattle", "gen9randombattle"])
def test_memory_changes_nothing(battle_format, attackers, monkeypatch):
    seats = recorded_seats(battle_format)[:2]
    kept = [observations(seat, attackers) for seat in seats]
    assert sum(map(len, kept)) > 10
    monkeypatch.setattr(writer, "_MOST_REMEMBERED", -1)  # everything anew at every decision
    assert [observations(seat, attackers) for seat in seats] == kept
