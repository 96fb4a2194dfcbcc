"""Microseconds of each layer of the host encoder: `python -m benchmarks.pokemon_layers.host_times`."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

import orjson

from simul.env_worker.games.pokemon.encoding.host_tables import encoder_tables
from simul.env_worker.games.pokemon.install.node import find_node
from tests.support.pokemon.recorded import recorded_seats

ROUNDS = "40"


def main() -> None:
    script = Path(__file__).with_suffix(".mjs")
    seats = [{"role": s.role, "gen": s.gen, "records": s.records} for s in recorded_seats("gen9*")]
    with tempfile.TemporaryDirectory() as folder:
        tables = Path(folder) / "tables.json"
        tables.write_bytes(orjson.dumps(encoder_tables(9)))
        command = [str(find_node().path), str(script), str(tables), ROUNDS]
        subprocess.run(command, input=b"\n".join(map(orjson.dumps, seats)), check=True)


if __name__ == "__main__":
    main()
