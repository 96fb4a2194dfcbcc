"""`make bench-settings`: how fast training is with other numbers of battles, workers, and replies a write."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parents[1])  # started as a script: import from the checkout

from benchmarks.pokemon_layers.sweep import main  # noqa: E402

if __name__ == "__main__":
    sys.exit(main())
