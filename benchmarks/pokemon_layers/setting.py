"""What every layer of one run shares."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from benchmarks.pokemon_layers.samples import Sample
from simul.common.config.schema import Config


@dataclass(frozen=True)
class Setting:
    """
    Attributes:
        cores: those that all layers run on; a layer without a server uses as many processes.
        overrides: `k=v` of the configuration, as `simul up --set` takes them; pure self-play is among them.
        seconds, warm_up_sec: of every window.
        temporary: a folder that is removed at the end.
        say: prints a progress line.
    """

    node: Path
    cores: list[int]
    config_path: Path
    overrides: tuple[str, ...]
    config: Config
    seconds: float
    warm_up_sec: float
    quick: bool
    temporary: Path
    say: Callable[[str], None]

    def folder(self, name: str) -> Path:
        """A fresh folder."""
        return Path(tempfile.mkdtemp(prefix=f"{name}-", dir=self.temporary))


class Layer(Protocol):
    """One row of the table. `measure` starts what it needs and stops it again, also when it is interrupted."""

    name: str
    title: str

    def measure(self, repeat: int) -> Sample:
        """One window."""
