"""Paths of this installation: a checkout, or the installed package `simul`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
"""Holds the rooms (common/, launch/, env_worker/, ...) and configs/: the checkout, or site-packages/simul."""

IMPORT_ROOT = Path(__file__).absolute().parents[3]
"""Holds the package `simul`: the checkout, or site-packages."""

CONFIGS = ROOT / "configs"
"""Holds the shipped configurations."""

IN_CHECKOUT = (ROOT / "pyproject.toml").is_file()


def import_path() -> str:
    """PYTHONPATH of processes started here: this checkout, then what it was."""
    paths = [str(IMPORT_ROOT) if IN_CHECKOUT else "", os.environ.get("PYTHONPATH", "")]
    return os.pathsep.join(path for path in paths if path)


def append_working_directory() -> None:
    """Put the working directory at the end of the import path: no file there shadows an installed module."""
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
