"""Checkpoints of fresh weights, as the learner writes them."""

from __future__ import annotations

from pathlib import Path

from safetensors.torch import save

from simul.common.config.schema import NetworkConfig
from simul.common.nets.build import build_network
from simul.common.nets.io import WEIGHTS_FILE, weights_to_bytes
from simul.common.protocol.specs import GameSpec
from simul.learner.checkpoints import OPTIMIZER_FILE, RunFacts, write_folder

SMALL = NetworkConfig(options={"hidden": 16})


def write_checkpoint(path: Path, spec: GameSpec, version: int) -> Path:
    """Weights differ by version; the optimizer is in its first state."""
    network = build_network(SMALL, spec, seed=version)
    files = {WEIGHTS_FILE: weights_to_bytes(network), OPTIMIZER_FILE: save({})}
    write_folder(path, RunFacts(spec, SMALL, "0" * 16, 1).meta(version, 0, 0, files, False), files)
    return path
