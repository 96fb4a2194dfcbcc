"""What the host's tracker takes of lines: names as poke-env's tables have them; what is spoilt is counted."""

from __future__ import annotations

import json
import random
import subprocess

from poke_env.battle.effect import Effect
from poke_env.battle.field import Field
from poke_env.battle.side_condition import SideCondition
from poke_env.battle.weather import Weather

from simul.env_worker.games.pokemon.install.folder import HOST_FOLDER
from simul.env_worker.games.pokemon.install.node import find_node
from simul.env_worker.games.pokemon.tables.host_tables import tracker_tables
from simul.env_worker.games.pokemon.tables.tracker_tables import SKIPPED_LINES
from tests.support.pokemon.garbled import garbled
from tests.support.pokemon.recorded import recorded_seats


def test_spoilt_lines_are_counted_and_passed_over(views):
    """No request fails, whatever came before."""
    rng = random.Random(1)
    seats = [garbled(seat, rng) for seat in recorded_seats()]
    found = list(views.seen(seats))
    for seat, seen in zip(seats, found, strict=True):
        assert not seen.crashed
        assert len(seen.words) == sum(told.request is not None for told in seat.records)
    assert sum(sum(seen.errors.values()) for seen in found) == 2043


def spellings(members):
    """How the protocol might write each name."""
    for name in members:
        words = name.replace("_", " ").lower()
        yield from (
            words,
            f"move: {words.title()}",
            f"ability: {words}",
            f"item: {words}",
            words.replace(" ", "-"),
            name,
        )
        yield words.replace(" ", "")


def test_names_are_read_as_poke_env_reads_them():
    enums = {"effect": Effect, "weather": Weather, "field": Field, "side": SideCondition}
    texts = [text for kind in enums.values() for text in spellings(kind.__members__)] + ["fallenundefined"]
    script = f"""
        import {{ readFileSync }} from 'node:fs';
        import {{ dexOf }} from {json.dumps((HOST_FOLDER / "tracker" / "dex.mjs").as_uri())};
        const [tables, texts] = JSON.parse(readFileSync(0, 'utf8'));
        const dex = dexOf(tables);
        const read = kind => texts.map(text => dex[kind](text));
        console.log(JSON.stringify({{{", ".join(f"{kind}: read('{kind}')" for kind in enums)}}}));
    """
    answer = subprocess.run(
        [find_node().path, "--input-type=module", "--eval", script],
        input=json.dumps([tracker_tables(9), texts]).encode(),
        capture_output=True,
        check=True,
    )
    found = json.loads(answer.stdout)
    for kind, enum in enums.items():
        expected = [enum.from_showdown_message(text).name for text in texts]
        assert dict(zip(texts, found[kind])) == dict(zip(texts, expected))


def test_rooms_tell_the_tracker_every_line_that_it_takes():
    """They leave out what is skipped."""
    script = f"""
        import {{ EVENTS }} from {json.dumps((HOST_FOLDER / "tracker" / "events" / "events.mjs").as_uri())};
        console.log(JSON.stringify([...EVENTS.keys()]));
    """
    answer = subprocess.run(
        [find_node().path, "--input-type=module", "--eval", script], capture_output=True, check=True
    )
    assert not SKIPPED_LINES & set(json.loads(answer.stdout))
