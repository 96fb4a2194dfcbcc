"""`python -m benchmarks NAME [OPTIONS]`, which `make bench-NAME` calls."""

from __future__ import annotations

import importlib
import os
import sys

from benchmarks.harness.processes import interruptible

# name: its module, and whether libraries may take one thread only, in this process and in those it starts
BENCHMARKS = {
    "serving": ("benchmarks.serving.main", True),
    "before": ("benchmarks.before.main", False),
    "cuda": ("benchmarks.cuda.main", True),
    "peers": ("benchmarks.peers.main", True),
    "sb3": ("benchmarks.sb3.main", False),
    "ofc": ("benchmarks.ofc.main", False),
    "search": ("benchmarks.search.main", True),
    "scale": ("benchmarks.scale.main", True),
    "networks": ("benchmarks.networks", True),
    "tables": ("benchmarks.tables.main", True),
    "strength": ("benchmarks.strength.main", False),
    "pokemon": ("benchmarks.pokemon_layers.main", False),
    "watched-game": ("benchmarks.watched_game", False),
    "acceleration": ("benchmarks.acceleration", False),
}
THREAD_LIMITS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


def main() -> int:
    """Exit code of the benchmark; 2 where there is none of that name; 130 after Ctrl-C."""
    name = sys.argv[1] if len(sys.argv) > 1 else ""
    if name not in BENCHMARKS:
        sys.stderr.write(f"There is no benchmark {name!r}; expected one of {', '.join(BENCHMARKS)}.\n")
        return 2
    module, one_thread = BENCHMARKS[name]
    if one_thread:  # before numpy and torch are imported
        os.environ.update(dict.fromkeys(THREAD_LIMITS, "1"))
    sys.argv[:2] = [f"make bench-{name}"]
    return interruptible(importlib.import_module(module).main)


if __name__ == "__main__":
    sys.exit(main())
