"""`python -m benchmarks.pokemon_layers.fresh_checkpoint RUN_DIR`: a checkpoint of fresh weights."""

from __future__ import annotations

import sys
from pathlib import Path

from simul.common.checkpoints.meta import WEIGHTS_FILE
from simul.common.nets.build import build_network
from simul.common.nets.io import weights_to_bytes
from simul.common.role.run_directory import RunDir
from simul.learner.checkpoints.checkpoint_store import RunFacts, write_folder


def main() -> int:
    run_dir = RunDir(Path(sys.argv[1]))
    config, spec = run_dir.read_config(), run_dir.read_spec()
    network = build_network(config.network, spec, seed=config.seed)
    files = {WEIGHTS_FILE: weights_to_bytes(network)}
    facts = RunFacts(spec, config.network, config.fingerprint(), config.seed)
    write_folder(run_dir.checkpoints / f"{0:09d}", facts.meta(0, 0, 0, files, False), files)
    return 0


if __name__ == "__main__":
    sys.exit(main())
