"""Which checkpoint `simul eval` plays, and with which configuration. Reads meta.json plainly: no torch in the CLI."""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from simul.common.config.loader import config_from_tree, load_config
from simul.common.config.schema import Config
from simul.common.protocol.errors import ConfigError

WEIGHTS_FILE = "weights.safetensors"
_VERSION = re.compile(r"[0-9]{9}")


def _to_stderr(note: str) -> None:
    sys.stderr.write(f"simul: {note}\n")


def newest_checkpoint(path: Path, say: Callable[[str], object] = _to_stderr) -> Path:
    """`path` itself where it is a checkpoint, else the newest whole one of the run directory.

    Says which ones it passed over, and why. Raises ConfigError.
    """
    try:
        return _newest_checkpoint(path.absolute(), say)
    except OSError as error:
        raise ConfigError(f"The checkpoint {path} cannot be read: {error.strerror}.") from None


def _newest_checkpoint(path: Path, say: Callable[[str], object]) -> Path:
    if (path / "meta.json").is_file():
        if fault := fault_of(path):
            raise ConfigError(f"The checkpoint {path} {fault}. Name another one.")
        return path
    for parent in (path / "checkpoints", path):
        folders = sorted((p for p in _listed(parent) if _VERSION.fullmatch(p.name) and p.is_dir()), reverse=True)
        faults: list[str] = []
        for folder in folders:
            fault = fault_of(folder)
            if not fault:
                for note in faults:
                    say(f"{note} Falling back to the one before.")
                return folder
            faults.append(f"The checkpoint {folder.name} {fault}.")
        if faults:
            raise ConfigError(f"No checkpoint in {parent} can be used. {faults[0]} Name another run.")
    raise ConfigError(f"There is no checkpoint in {path}: expected a folder with meta.json, or a run directory.")


def _listed(folder: Path) -> list[Path]:
    """What is in a folder, nothing where it is none. Raises OSError where it may not be read."""
    try:
        return list(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []


def fault_of(folder: Path) -> str:
    """Why a checkpoint cannot be used, as the rest of a sentence about it; empty where it is whole."""
    try:
        meta = msgspec.json.decode((folder / "meta.json").read_bytes())
        wanted = meta["files"][WEIGHTS_FILE]
        with (folder / WEIGHTS_FILE).open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError as error:
        return f"is damaged: {Path(error.filename).name}: {error.strerror}"
    except OSError as error:
        return f"cannot be read: {Path(str(error.filename)).name}: {error.strerror}"
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return f"is damaged: meta.json: {str(error).rstrip('.')}"
    except (KeyError, TypeError):
        return f"is damaged: meta.json does not hold the hash of {WEIGHTS_FILE}"
    return "" if found == wanted else f"is damaged: {WEIGHTS_FILE} does not have the hash that was written"


def config_of(checkpoint: Path, overrides: Sequence[str]) -> Config:
    """The configuration that the checkpoint was trained with. Raises ConfigError."""
    beside = checkpoint.parent.parent / "config.yaml"
    if beside.is_file() and beside.stat().st_size:  # an empty one is what a full disk left
        return load_config(beside, overrides)
    try:
        meta = msgspec.json.decode((checkpoint / "meta.json").read_bytes())
        game, network = meta["spec"]["name"], meta["network"]
    except (OSError, msgspec.DecodeError, KeyError, TypeError):
        raise ConfigError(f"{checkpoint}/meta.json does not say which game and network it is for.") from None
    return config_from_tree({**_game_section(game), "network": network}, f"{checkpoint}/meta.json", overrides)


def _game_section(name: str) -> dict[str, Any]:
    """The configuration's keys for the game called `name` in a spec: pokemon/FORMAT, gymnasium/ID, module:Class."""
    kind, _, which = name.partition("/")
    if kind == "pokemon":
        return {"game": kind, "pokemon": {"format": which}}
    return {"game": kind, "gymnasium": {"id": which}} if kind == "gymnasium" else {"game": name}
