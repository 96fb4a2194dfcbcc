"""`python -m simul.inference_server.loadtest.subject`: what the load test has to know of the network it loads.

Only here is torch imported for it. Prints one line of JSON; makes untrained weights where there is no checkpoint.
"""

from __future__ import annotations

import argparse
import platform
import sys
import time
from pathlib import Path

import msgspec
import torch

from simul.common.checkpoints.meta import META_FILE, WEIGHTS_FILE, CheckpointMeta
from simul.common.config.schema import Config
from simul.common.errors import SimulError
from simul.common.nets.build import build_network
from simul.common.nets.io import fingerprint, weights_to_bytes
from simul.common.protocol.specs import GameSpec
from simul.common.role.run_directory import RunDir
from simul.common.runtime.terminal_text import LINES, printable


def main() -> int:
    """Exit code 2: a sentence on stderr says why the network cannot be built."""
    parser = argparse.ArgumentParser(prog="python -m simul.inference_server.loadtest.subject")
    parser.add_argument("run_dir", type=Path, help="with config.yaml and spec.json")
    parser.add_argument("--fresh", metavar="FOLDER", type=Path, help="write a checkpoint of untrained weights to it")
    options = parser.parse_args()
    run_dir = RunDir(options.run_dir)
    try:
        config, trust = run_dir.read_trusted_config()
        spec = run_dir.read_spec()
        network = build_network(config.network, spec, seed=config.seed, trust=trust)
    except SimulError as error:
        sys.stderr.write(printable(f"{error}\n", LINES))
        return 2
    if options.fresh is not None:
        _write_checkpoint(options.fresh, config, spec, weights_to_bytes(network), network.state_size)
    facts = {"parameters": sum(p.numel() for p in network.parameters()), "torch": str(torch.__version__)}
    sys.stdout.write(f"{msgspec.json.encode(facts).decode()}\n")
    return 0


def _write_checkpoint(folder: Path, config: Config, spec: GameSpec, data: bytes, state_size: int) -> None:
    """Weights in the form that the server loads."""
    folder.mkdir(parents=True)
    meta = CheckpointMeta(
        version=0, decisions=0, spec_fingerprint=spec.fingerprint(), spec=spec, network=config.network,
        config_fingerprint=config.fingerprint(), seed=config.seed,
        time=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        packages={"python": platform.python_version(), "torch": str(torch.__version__)},
        files={WEIGHTS_FILE: fingerprint(data)}, state_size=state_size,
    )  # fmt: skip
    (folder / WEIGHTS_FILE).write_bytes(data)
    (folder / META_FILE).write_bytes(msgspec.json.encode(meta))


if __name__ == "__main__":
    sys.exit(main())
