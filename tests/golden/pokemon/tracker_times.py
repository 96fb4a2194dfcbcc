"""What the host's tracker takes per decision, beside layer_times.py: `python -m tests.golden.pokemon.tracker_times`."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

import orjson

from env_worker.games.pokemon.node import find_node
from tests.golden.pokemon.recorded import recorded_seats
from tests.golden.pokemon.tracker_reference import write_tables

ROUNDS = "60"


def main() -> None:
    script = Path(__file__).with_suffix(".mjs")
    seats = [{"role": s.role, "gen": s.gen, "records": s.records} for s in recorded_seats("gen9*")]
    with tempfile.TemporaryDirectory() as folder:
        command = [find_node().path, script, write_tables(Path(folder)), ROUNDS]
        subprocess.run(command, input=b"\n".join(map(orjson.dumps, seats)), check=True)


if __name__ == "__main__":
    main()
