"""Under which conditions a run was measured."""

from __future__ import annotations

from typing import Any

from simul.common.runtime.machine_info import machine
from simul.env_worker.games.pokemon.simulator.node import NodeChoice


def conditions(node: NodeChoice, cores: list[int], cores_present: int) -> dict[str, Any]:
    """What belongs beside every figure."""
    return {
        "node": node.version,
        **machine(),
        "cores_used": len(cores),
        "cores_present": cores_present,
    }
