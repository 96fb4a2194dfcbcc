"""A process that ends with its parent, also where the parent was killed and the process waits for something itself."""

from __future__ import annotations

import os
import threading
import time

PARENT_EVERY_SEC = 0.5


def wait_for_end_of(parent: int) -> None:
    """Wait until the process `parent`, which started this one, is gone."""
    while os.getppid() == parent:
        time.sleep(PARENT_EVERY_SEC)


def end_with(parent: int) -> None:
    """From now on a thread exits this process, with code 1, once `parent` is gone; 0: it is not watched.

    For processes that leave nothing behind which must be closed.
    """

    def watch() -> None:
        wait_for_end_of(parent)
        os._exit(1)

    if parent:
        threading.Thread(target=watch, name="simul-parent", daemon=True).start()
