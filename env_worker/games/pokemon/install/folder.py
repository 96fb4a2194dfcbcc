"""Where the files of the host lie: in a checkout beside this package.

An installed package is not written to. `simul setup-pokemon` copies the files into the virtual environment and installs
the simulator's npm packages there; the folder's name carries a hash of the files, so that a newer package never runs an
older copy.
"""

from __future__ import annotations

import hashlib
import shutil
import sys
from pathlib import Path

from simul.common.errors import ConfigError
from simul.common.runtime.installation import IN_CHECKOUT

SETUP = "make setup" if IN_CHECKOUT else "simul setup-pokemon"
"""The command that fetches the simulator and Node."""

SHIPPED = Path(__file__).parents[1] / "node"


def _hash(folder: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file() and "node_modules" not in path.parts:
            digest.update(path.relative_to(folder).as_posix().encode() + path.read_bytes())
    return digest.hexdigest()[:16]


HOST_FOLDER = SHIPPED if IN_CHECKOUT else Path(sys.prefix) / "share" / "simul" / f"pokemon-host-{_hash(SHIPPED)}"


def check_simulator() -> None:
    """Raises ConfigError where the simulator is not installed."""
    if not (HOST_FOLDER / "node_modules" / "pokemon-showdown" / "package.json").is_file():
        raise ConfigError(f"The simulator's npm packages are missing. Run `{SETUP}`.")


def copy_shipped() -> None:
    """Put the shipped files in place. Does nothing in a checkout. Raises OSError."""
    if HOST_FOLDER != SHIPPED:
        shutil.copytree(SHIPPED, HOST_FOLDER, ignore=shutil.ignore_patterns("node_modules"), dirs_exist_ok=True)
