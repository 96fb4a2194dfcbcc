"""A game whose constructor never returns."""

from __future__ import annotations

import os
import time
from pathlib import Path

import gymnasium


class Hanging(gymnasium.Env):
    """Writes its process's pid into the file `pid_file`, then hangs."""

    def __init__(self, pid_file: str) -> None:
        Path(pid_file).write_text(str(os.getpid()))
        time.sleep(600)
