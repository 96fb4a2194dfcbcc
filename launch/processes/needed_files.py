"""The files of a run directory that a role reads when it starts, kept while the run runs."""

from __future__ import annotations

from simul.common.config.run_signature import SIGNATURE
from simul.common.role.run_directory import RunDir
from simul.common.runtime.private_files import read_regular

NEEDED_FILE_NAMES = ("config.yaml", SIGNATURE, "spec.json", "token")  # what a role reads when it starts


class NeededFiles:
    """Keeps the small files of a run directory, to restore those that are removed or changed before a restart."""

    def __init__(self, run_dir: RunDir) -> None:
        self._run_dir = run_dir
        self._contents: dict[str, bytes] = {}

    def remember(self) -> None:
        """Read them. Called before roles start."""
        for name in NEEDED_FILE_NAMES:
            if content := self._content(name):
                self._contents[name] = content

    def restore(self) -> list[str]:
        """Write those that are not as they were. Returns a sentence for each, or one about why that failed."""
        found = {name: self._content(name) for name in self._contents}
        lost = [name for name, content in self._contents.items() if found[name] != content]
        try:
            self._run_dir.make_folders()
            self._run_dir.restore_start_files({name: self._contents[name] for name in lost})
        except OSError as error:
            return [f"{error.filename} is missing and cannot be written again: {error.strerror}"]
        return [
            f"{self._run_dir.root / name} had {'been changed' if found[name] else 'vanished'} and was written again"
            for name in lost
        ]

    def _content(self, name: str) -> bytes:
        """Empty where it cannot be read."""
        try:
            return read_regular(self._run_dir.root / name)
        except OSError:
            return b""
