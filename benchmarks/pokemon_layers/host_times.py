"""Microseconds of each layer of the host encoder: `python -m benchmarks.pokemon_layers.host_times`.

Of singles and of doubles: a decision of doubles is one slot's. It may cost at most twice a decision of singles.
"""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

import orjson

from simul.env_worker.games.pokemon.install.node import find_node
from simul.env_worker.games.pokemon.tables.host_tables import encoder_tables
from simul.env_worker.games.pokemon.tables.layout import PLAIN
from tests.support.pokemon.recorded import recorded_seats

ROUNDS = "40"


def main() -> None:
    script = Path(__file__).with_suffix(".mjs")
    for name, seats in (("singles", "gen9randombattle"), ("doubles", "gen9randomdoublesbattle")):
        recorded = [{"seat": s.seat, "records": s.records} for s in recorded_seats(seats)]
        print(name, flush=True)
        with tempfile.TemporaryDirectory() as folder:
            tables = Path(folder) / "tables.json"
            tables.write_bytes(orjson.dumps(encoder_tables(9, PLAIN, name == "doubles")))
            command = [str(find_node().path), str(script), str(tables), ROUNDS]
            subprocess.run(command, input=b"\n".join(map(orjson.dumps, recorded)), check=True)


if __name__ == "__main__":
    main()
