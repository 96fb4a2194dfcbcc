"""The former place of the command `simul`, which an older editable install calls; remove it with the next version."""

from __future__ import annotations

import sys


def main() -> int:
    """Say where the command is now."""
    sys.stderr.write(
        "simul: this installation calls simul.common.cli, and the command is in simul.launch.cli now. Run `make setup` "
        "in the checkout (or `pip install -e .` in your environment) once, then the same command again.\n"
    )
    return 2


if __name__ == "__main__":
    sys.exit(main())
