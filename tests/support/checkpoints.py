"""Checkpoints of fresh weights, as the learner writes them."""

from __future__ import annotations

from pathlib import Path

from safetensors.torch import save

from common.config import NetworkConfig
from common.nets.build import build_network
from common.nets.load import WEIGHTS_FILE
from common.nets.weights import weights_to_bytes
from common.specs import GameSpec
from learner.checkpoints import OPTIMIZER_FILE, RunFacts, write_folder

SMALL = NetworkConfig(options={"hidden": 16})


def write_checkpoint(path: Path, spec: GameSpec, version: int) -> Path:
    """Weights differ by version; the optimizer is in its first state."""
    network = build_network(SMALL, spec, seed=version)
    files = {WEIGHTS_FILE: weights_to_bytes(network), OPTIMIZER_FILE: save({})}
    write_folder(path, RunFacts(spec, SMALL, "0" * 16, 1).meta(version, 0, 0, files, False), files)
    return path
