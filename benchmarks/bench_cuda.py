"""`make bench-cuda`: the inference server on a GPU, with captured graphs and without, and the engine alone."""

from __future__ import annotations

import os
import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parents[1])  # started as a script: import from the checkout
for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[name] = "1"

from benchmarks.cuda.main import main  # noqa: E402
from benchmarks.pokemon_layers.children import interruptible  # noqa: E402

if __name__ == "__main__":
    sys.exit(interruptible(main))
