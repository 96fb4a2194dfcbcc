"""The last version that was published, on disk: versions only grow, even where learner and server die together."""

from __future__ import annotations

from pathlib import Path

from simul.common.protocol.messages import MOST_VERSION
from simul.learner.server_handshake import MOST_UNNOTED

FILE = "last_version"


class PublishedVersion:
    """A small file in the checkpoints' folder, replaced as a whole before each publication.

    It is not synced: it is there for processes that die, and after a power failure no server has served more either.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE
        self._broken = False

    def read(self, saved: int) -> tuple[int, str]:
        """The highest version that any life of the learner may have published; -1: none is known.

        `saved`: the version of the newest whole checkpoint, -1 where there is none. With it comes a sentence where the
        file is damaged, or holds a number that the run cannot have reached: it then counts for nothing.
        """
        try:
            text = self._path.read_bytes()
        except FileNotFoundError:
            return -1, ""
        except OSError as error:
            return -1, self._not_believed(f"cannot be read: {error.strerror}", saved)
        try:
            version = int(text.decode())
        except ValueError:
            return -1, self._not_believed("is damaged", saved)
        limit = min(max(saved, 0) + MOST_UNNOTED, MOST_VERSION)
        if not 0 <= version <= limit:
            words = f"holds version {version}, which this run cannot have published: expected 0 to {limit}"
            return -1, self._not_believed(words, saved)
        return version, ""

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

    def _not_believed(self, why: str, saved: int) -> str:
        source = f"that of the newest whole checkpoint, {saved}" if saved >= 0 else "0"
        return f"The file {self._path} {why}. It is not used: the versions go on from {source}."
