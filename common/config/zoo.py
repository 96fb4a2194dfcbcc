"""The policies that are shipped with Simul: `zoo:NAME` wherever a checkpoint is named.

Each is a folder of zoo/: the files of a checkpoint without its optimizer, and card.md, which says how strong it is.
"""

from __future__ import annotations

from pathlib import Path

from simul.common.errors import ConfigError
from simul.common.runtime.installation import ROOT

ZOO = ROOT / "zoo"
PREFIX = "zoo:"
CARD = "card.md"


def zoo_names() -> list[str]:
    """Names of the shipped policies."""
    from simul.common.config.checkpoint_meta import META_FILE  # only here: msgspec is too heavy for a command line

    return sorted(folder.parent.name for folder in ZOO.glob(f"*/{META_FILE}"))


def zoo_folder(text: str) -> Path | None:
    """The checkpoint that `zoo:NAME` names; None for any other text. Raises ConfigError where there is none."""
    if not text.startswith(PREFIX):
        return None
    name = text.removeprefix(PREFIX)
    if name not in zoo_names():
        raise ConfigError(f"There is no policy {text!r}; expected {PREFIX}NAME with one of {', '.join(zoo_names())}.")
    return ZOO / name
