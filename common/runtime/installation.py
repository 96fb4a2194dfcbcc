"""Paths of this installation: a checkout, or the installed package `simul`."""

from __future__ import annotations

import importlib
import os
import sys
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from simul.common.config.trust import Trust

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


def import_user_module(name: str, trust: Trust) -> ModuleType:
    """Import the module of a `module:Class`, from the working directory first. Raises whatever the module raises.

    Raises ConfigError where `trust` covers nothing of the module.
    """
    trust.check_module(name)
    append_working_directory()
    folder = os.getcwd()
    sys.path.insert(0, folder)
    try:
        return importlib.import_module(name)
    finally:
        with suppress(ValueError):  # the module may have changed the path
            sys.path.remove(folder)
