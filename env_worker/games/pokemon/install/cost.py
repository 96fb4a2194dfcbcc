"""What a decision costs on this machine with the Node that runs here: a quick estimate, not a benchmark."""

from __future__ import annotations

import subprocess
from typing import NamedTuple

import orjson

from simul.common.errors import EnvError
from simul.env_worker.games.pokemon.install.folder import HOST_FOLDER
from simul.env_worker.games.pokemon.install.node import find_node

SCRIPT = HOST_FOLDER / "measure" / "sim_bench.mjs"
WARM_UP, BATTLES = 20, 16
LONGEST_SEC = 60.0


class Cost(NamedTuple):
    """Of a random decision in gen9randombattle, one live battle, team generation included."""

    us: float  # of one core
    node: str
    showdown: str
    accelerated: bool
    note: str  # why it is not

    def __str__(self) -> str:
        how = "accelerated" if self.accelerated else f"NOT accelerated: {self.note}"
        return (
            f"pokemon-showdown {self.showdown} on Node {self.node}: about {self.us:.0f} us of one core a decision "
            f"(gen9randombattle), {how}"
        )


def measure_cost() -> Cost:
    """Raises ConfigError without a Node, EnvError where the simulator does not run on it."""
    command = [str(find_node().path), str(SCRIPT), f"--warm-up={WARM_UP}", f"--battles={BATTLES}"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST_SEC, check=False)
    except subprocess.TimeoutExpired as error:
        raise EnvError(f"the simulator did not play {BATTLES} battles within {LONGEST_SEC:.0f} s") from error
    if done.returncode:
        lines = [line.strip() for line in done.stderr.splitlines() if "Error" in line] or ["it wrote no error"]
        raise EnvError(f"the simulator does not run: {lines[0]}")
    found = orjson.loads(done.stdout)
    return Cost(
        found["cpu_us_per_decision"], found["node"].removeprefix("v"), found["showdown"], found["accelerated"],
        found["note"],
    )  # fmt: skip
