"""`make bench-pokemon`: what each layer costs, from the simulator alone to all of `make up`, and poke-env beside it."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parents[1])  # started as a script: import from the checkout

from benchmarks.pokemon_layers.main import main  # noqa: E402

if __name__ == "__main__":
    sys.exit(main())
