"""The recorded situations are what the simulator says, and the host encodes them as they are encoded here."""

import orjson

from tests.support.pokemon.situations import play_all, situation
from tests.support.worlds import sights


def test_the_simulator_says_what_was_recorded(own_host):
    for recipe, world in play_all(own_host):
        records = orjson.loads(orjson.dumps([seat.records for seat in world.told]))
        assert records == [seat.records for seat in situation(recipe.name)], recipe.name
        seen = set(sights(world.told[0], recipe.requests))
        assert len(world.rows) == recipe.requests
        assert {(row.observation.tobytes(), row.mask.tobytes()) for row in world.rows} <= seen, recipe.name
