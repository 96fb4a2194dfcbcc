"""What `simul doctor` says about Node and the simulator: `python -m simul.env_worker.games.pokemon.install.checks`.

One line of JSON for each finding.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import msgspec

from simul.common.errors import ConfigError, SimulError
from simul.common.role.finding import Finding
from simul.env_worker.games.pokemon.install.cost import measure_cost
from simul.env_worker.games.pokemon.install.folder import SETUP, check_simulator
from simul.env_worker.games.pokemon.install.node import MIN_MAJOR, find_node


def findings() -> Iterator[Finding]:
    """Which Node runs the simulator; what a decision costs on it."""
    yield _node()
    yield _simulator()


def _node() -> Finding:
    try:
        choice = find_node()
    except ConfigError as error:
        named = os.environ.get("SIMUL_NODE")
        return Finding(
            "node", str(error), f"unset SIMUL_NODE, or point it at a Node >= {MIN_MAJOR}" if named else SETUP
        )
    return Finding("node", f"{choice.version} {choice.path} ({choice.why})")


def _simulator() -> Finding:
    try:
        check_simulator()
        return Finding("simulator", str(measure_cost()))
    except SimulError as error:
        return Finding("simulator", str(error), SETUP)


if __name__ == "__main__":
    for finding in findings():
        sys.stdout.write(msgspec.json.encode(finding).decode() + "\n")
