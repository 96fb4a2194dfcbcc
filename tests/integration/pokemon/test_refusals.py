"""What an encoded seat of doubles is asked after a refusal that nothing announced: the Python seat's decision."""

from __future__ import annotations

import base64
import json
import subprocess

import orjson

from simul.env_worker.games.pokemon.encoding.host_tables import encoder_tables
from simul.env_worker.games.pokemon.install.folder import HOST_FOLDER
from simul.env_worker.games.pokemon.install.node import find_node
from simul.env_worker.games.pokemon.tables.layout import PLAIN
from tests.support.pokemon.recorded import recorded_seats
from tests.support.pokemon.recorded_doubles import Listening, double_seat

SCRIPT = f"""
    import {{ readFileSync }} from 'node:fs';
    import {{ EncoderTables }} from {json.dumps((HOST_FOLDER / "encoder" / "host_tables.mjs").as_uri())};
    import {{ SeatView }} from {json.dumps((HOST_FOLDER / "follow" / "seat_view.mjs").as_uri())};
    const [tables, seat, records] = JSON.parse(readFileSync(0, 'utf8'));
    const view = new SeatView(new EncoderTables(tables), seat), asked = [];
    for (const [lines, request] of records) {{
        view.see(lines.split('\\n'), request);
        while (view.command(view.choices.mask.indexOf(1)) === '');
        asked.push(view.refuse() ? Buffer.from([...view.bytes, ...view.choices.mask]).toString('base64') : null);
    }}
    console.log(JSON.stringify(asked));
"""


def test_the_slot_that_decided_last_is_asked_again_without_its_choice():
    recorded = recorded_seats("gen9randomdoublesbattle")[0]
    records = [(lines, request) for lines, request in recorded.records if request is not None]
    done = subprocess.run(
        [find_node().path, "--input-type=module", "--eval", SCRIPT],
        input=orjson.dumps([encoder_tables(9, PLAIN, doubles=True), recorded.seat, records]),
        capture_output=True,
        check=True,
    )
    seat, asked = double_seat(recorded), []
    for lines, request in records:
        seat.battle.feed(lines)
        decision = seat.decide(0, request)
        while decision is not None:
            assert seat.answer(Listening(), 0, decision.mask.tolist().index(1))
            decision = seat.follow_up()
        again = seat.refuse()
        asked.append(again and base64.b64encode(again.observation.tobytes() + again.mask.tobytes()).decode())
    assert json.loads(done.stdout) == asked
    assert len(set(asked)) > 10
