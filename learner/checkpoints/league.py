"""Past selves: frozen copies that join as policies `past/<version>`, a few of them served at a time."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from simul.common.checkpoints.folders import spread
from simul.common.checkpoints.meta import WEIGHTS_FILE, CheckpointMeta, check_spec, read_meta, read_verified
from simul.common.errors import CheckpointError
from simul.common.protocol.specs import GameSpec
from simul.learner.checkpoints.checkpoint_store import write_folder


@dataclass(frozen=True)
class PastSelf:
    """A frozen copy. `weights` are safetensors bytes."""

    version: int
    weights: bytes

    @property
    def name(self) -> str:
        """Name of the policy."""
        return f"past/{self.version}"


class League:
    """Keeps every past self in `folder` and chooses the resident ones: the newest and a spread of older ones."""

    def __init__(self, folder: Path, *, every_decisions: int, resident: int) -> None:
        self._folder = folder
        self._every = every_decisions
        self._resident_count = resident
        self._versions: set[int] = set()
        self._next = every_decisions
        self.resident: tuple[PastSelf, ...] = ()
        self._notes: list[str] = []

    def drain_notes(self) -> list[str]:
        """Sentences since the last call about copies that cannot be used."""
        notes, self._notes = self._notes, []
        return notes

    def load_past_selves(self, spec: GameSpec, decisions: int) -> None:
        """Load the past selves that former lives of this run saved."""
        for path in sorted(self._folder.glob("[0-9]" * 9)):
            try:
                meta = read_meta(path)
                check_spec(path, meta, spec)
                read_verified(path, meta, WEIGHTS_FILE)
            except CheckpointError as error:
                self._notes.append(f"{error} It leaves the league.")
                continue
            if meta.decisions > decisions:
                self._notes.append(
                    f"past/{meta.version} is newer than the checkpoint that the run goes on from. It leaves the league."
                )
                continue
            self._versions.add(meta.version)
        self._next = (decisions // self._every + 1) * self._every
        self._choose()

    def due(self, decisions: int) -> bool:
        """True when the next copy is due."""
        return self._resident_count > 0 and decisions >= self._next

    def add_past_self(self, meta: CheckpointMeta, weights: bytes) -> None:
        """Add the current weights. Raises OSError where they cannot be written; the league is then unchanged."""
        self._next = (meta.decisions // self._every + 1) * self._every
        write_folder(self._folder / f"{meta.version:09d}", meta, {WEIGHTS_FILE: weights})
        self._versions.add(meta.version)
        # A version can come a second time with other weights, which replace the first ones.
        self.resident = tuple(past for past in self.resident if past.version != meta.version)
        self._choose()

    def _choose(self) -> None:
        """Choose the resident copies. Copies that cannot be read leave the league."""
        known = {past.version: past for past in self.resident}
        chosen = spread(self._versions, self._resident_count)
        while missing := [version for version in chosen if version not in known]:
            try:
                known[missing[0]] = self._read(missing[0])
            except CheckpointError as error:
                self._notes.append(f"{error} It leaves the league.")
                self._versions.discard(missing[0])
                chosen = spread(self._versions, self._resident_count)
        self.resident = tuple(known[version] for version in chosen)

    def _read(self, version: int) -> PastSelf:
        path = self._folder / f"{version:09d}"
        return PastSelf(version, read_verified(path, read_meta(path), WEIGHTS_FILE))
