"""What a role reads when it starts: made again before a restart where somebody removed or emptied it meanwhile."""

from __future__ import annotations

import contextlib

from simul.common.config.run_directory import RunDir

NAMES = ("config.yaml", "spec.json", "token")


class NeededFiles:
    """The small files of a run directory, as they were when its first role started."""

    def __init__(self, run_dir: RunDir) -> None:
        self._run_dir = run_dir
        self._contents: dict[str, bytes] = {}

    def remember(self) -> None:
        """Before roles start."""
        for name in NAMES:
            with contextlib.suppress(OSError):
                self._contents[name] = (self._run_dir.root / name).read_bytes()

    def restore(self) -> list[str]:
        """Write what is missing or empty; sentences about it, also where that is not possible."""
        missing = [name for name, content in self._contents.items() if content and not self._holds_anything(name)]
        try:
            for folder in (self._run_dir.root, self._run_dir.logs, self._run_dir.checkpoints):
                folder.mkdir(parents=True, exist_ok=True)
            self._run_dir.restore_start_files({name: self._contents[name] for name in missing})
        except OSError as error:
            return [f"{error.filename} is missing and cannot be made again: {error.strerror}"]
        return [f"{self._run_dir.root / name} had vanished and was written again" for name in missing]

    def _holds_anything(self, name: str) -> bool:
        path = self._run_dir.root / name
        return path.exists() and path.stat().st_size > 0
