"""Checkpoints of fresh weights, as the learner writes them."""

from __future__ import annotations

from pathlib import Path

from safetensors.torch import save

from simul.common.checkpoints.meta import OPTIMIZER_FILE, WEIGHTS_FILE
from simul.common.config.schema import NetworkConfig
from simul.common.nets.build import build_network
from simul.common.nets.io import weights_to_bytes
from simul.common.protocol.specs import GameSpec
from simul.learner.checkpoints.checkpoint_store import RunFacts, write_folder

SMALL = NetworkConfig(options={"hidden": 16})


def write_checkpoint(
    path: Path, spec: GameSpec, version: int, network: NetworkConfig = SMALL, horizon: int = 0, decisions: int = 0
) -> Path:
    """Weights differ by version; the optimizer is in its first state."""
    built = build_network(network, spec, seed=version)
    files = {WEIGHTS_FILE: weights_to_bytes(built), OPTIMIZER_FILE: save({})}
    write_folder(path, RunFacts(spec, network, "0" * 16, 1).meta(version, decisions, 0, files, False, horizon), files)
    return path


def write_small_checkpoint(path: Path, version: int, *, spec: GameSpec, network: NetworkConfig = SMALL) -> Path:
    """A checkpoint whose weights file holds a few bytes."""
    files = {WEIGHTS_FILE: b"weights %d" % version}
    write_folder(path, RunFacts(spec, network, "0" * 16, 1).meta(version, 0, 0, files, False), files)
    return path
