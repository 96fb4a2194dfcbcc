"""The policies that are shipped with Simul: `zoo:NAME` wherever a checkpoint is named.

Each is a folder of zoo/: the files of a checkpoint without its optimizer, card.md, which says how strong it is, and its
games as results.json. `simul zoo export` makes such a folder out of a run.
"""

from __future__ import annotations

from pathlib import Path

from simul.common.checkpoints.meta import META_FILE
from simul.common.config.opponents import ZOO_PREFIX
from simul.common.errors import ConfigError, did_you_mean
from simul.common.runtime.installation import ROOT

ZOO = ROOT / "zoo"
CARD = "card.md"
RESULTS = "results.json"  # {opponent: {"win_rate": ..., "wilson_95": [low, high], "episodes": n}}


def zoo_names() -> list[str]:
    """Names of the shipped policies."""
    return sorted(folder.parent.name for folder in ZOO.glob(f"*/{META_FILE}"))


def zoo_folder(text: str) -> Path | None:
    """The checkpoint that `zoo:NAME` names; None for any other text.

    Raises ConfigError with the nearest name where there is none.
    """
    if not text.startswith(ZOO_PREFIX):
        return None
    name, names = text.removeprefix(ZOO_PREFIX), zoo_names()
    if name not in names:
        hint = did_you_mean(name, names, f"{ZOO_PREFIX}{{}}") or "."
        listed = ", ".join(names) or "(none)"
        raise ConfigError(f"There is no policy {text!r}; expected {ZOO_PREFIX}NAME with one of {listed}{hint}")
    return ZOO / name
