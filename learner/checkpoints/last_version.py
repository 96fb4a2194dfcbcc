"""The newest published version on disk. Main loop only."""

from __future__ import annotations

from pathlib import Path

from simul.common.protocol.messages import MOST_VERSION
from simul.common.runtime.private_files import read_regular, replace_file
from simul.learner.io.server_handshake import MOST_UNNOTED

FILE = "last_version"


class LastVersionFile:
    """The last published version on disk: versions only grow, even where learner and server die together.

    A small file in the checkpoints' folder, replaced as a whole before each publication. It is not synced: it protects
    against the death of processes; after a power failure no server has served more either.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE
        self._broken = False

    def read(self, saved: int) -> tuple[int, str]:
        """(The highest version that any life of the learner may have published, -1 for unknown; a sentence or "").

        `saved`: version of the newest whole checkpoint, -1 for none. A file that is damaged, or holds a version that
        the run cannot have reached, is ignored, and the sentence says so.
        """
        try:
            text = read_regular(self._path)
        except FileNotFoundError:
            return -1, ""
        except OSError as error:
            return -1, self._ignored(f"cannot be read: {error.strerror}", saved)
        try:
            version = int(text.decode())
        except ValueError:
            return -1, self._ignored("is damaged", saved)
        limit = min(max(saved, 0) + MOST_UNNOTED, MOST_VERSION)
        if not 0 <= version <= limit:
            words = f"holds version {version}, which this run cannot have published: expected 0 to {limit}"
            return -1, self._ignored(words, saved)
        return version, ""

    def write(self, version: int) -> str:
        """Write a version. Returns why that failed, at the first failure in a row; else an empty string."""
        try:
            replace_file(self._path, str(version).encode(), aside=f".{FILE}")
        except OSError as error:
            again, self._broken = self._broken, True
            reason = error.strerror or error
            return "" if again else f"The version {version} could not be noted on disk: {reason}. Training goes on."
        self._broken = False
        return ""

    def _ignored(self, why: str, saved: int) -> str:
        source = f"that of the newest whole checkpoint, {saved}" if saved >= 0 else "0"
        return f"The file {self._path} {why}. It is not used: the versions go on from {source}."
