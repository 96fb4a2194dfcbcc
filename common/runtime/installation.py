"""Paths of this installation: a checkout, or the installed package `simul`."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
"""Holds common/, env_worker/, inference_server/, learner/ and configs/: the checkout, or site-packages/simul."""

IMPORT_ROOT = Path(__file__).absolute().parents[3]
"""Holds the package `simul`: the checkout, or site-packages."""

CONFIGS = ROOT / "configs"
"""Holds the shipped configurations."""

IN_CHECKOUT = (ROOT / "pyproject.toml").is_file()


def import_path(folder: str = "") -> str:
    """PYTHONPATH of processes started here: this checkout, then `folder`, then what it was."""
    paths = [str(IMPORT_ROOT) if IN_CHECKOUT else "", folder, os.environ.get("PYTHONPATH", "")]
    return os.pathsep.join(path for path in paths if path)
