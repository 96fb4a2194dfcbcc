"""`python -m simul.common.nets.bfloat16 FILE TO`: weights in bfloat16, for the program, which imports no torch."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from safetensors.torch import save

from simul.common.errors import WeightsError
from simul.common.nets.io import bytes_to_state
from simul.common.runtime.terminal_text import LINES, printable

REFUSED = 2
# A mean of 1000 in bfloat16 is off by up to 2; torch's are those of its layers of normalisation.
STATISTICS = {"observation_mean", "observation_variance", "running_mean", "running_var"}


def in_bfloat16(data: bytes) -> bytes:
    """A safetensors file with its floating numbers in bfloat16, but running statistics. Raises WeightsError."""
    state = bytes_to_state(data)
    kept = {name for name, value in state.items() if not value.is_floating_point() or name.split(".")[-1] in STATISTICS}
    low: bytes = save({name: value if name in kept else value.bfloat16() for name, value in state.items()})
    return low


def main() -> int:
    """Exit code 0: done; REFUSED: a sentence on stderr says why not."""
    parser = argparse.ArgumentParser(prog="python -m simul.common.nets.bfloat16")
    parser.add_argument("file", type=Path)
    parser.add_argument("to", type=Path)
    options = parser.parse_args()
    try:
        options.to.write_bytes(in_bfloat16(options.file.read_bytes()))
    except (OSError, WeightsError) as error:
        sys.stderr.write(printable(f"{options.file}: {error}", LINES) + "\n")
        return REFUSED
    return 0


if __name__ == "__main__":
    sys.exit(main())
