"""The last version that was published, on disk: versions only grow, even where learner and server die together."""

from __future__ import annotations

from pathlib import Path

FILE = "last_version"


class PublishedVersion:
    """A small file in the checkpoints' folder, replaced as a whole before each publication.

    It is not synced: it is there for processes that die, and after a power failure no server has served more either.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE
        self._broken = False

    def read(self) -> int:
        """The highest version that any life of the learner may have published; -1: none is known."""
        try:
            return int(self._path.read_text())
        except (OSError, ValueError):
            return -1

    def write(self, version: int) -> str:
        """Note a version. Returns an empty string, or the sentence that says why it could not be; once."""
        aside = self._path.with_name(f".{FILE}")
        try:
            aside.write_text(str(version))
            aside.replace(self._path)
        except OSError as error:
            again, self._broken = self._broken, True
            reason = error.strerror or error
            return "" if again else f"The version {version} could not be noted on disk: {reason}. Training goes on."
        self._broken = False
        return ""
