"""A real server in a process of its own, beside the stand-in learner in this one: what signals do to it can be seen."""

from __future__ import annotations

import subprocess
import sys

from common.checkout import CHECKOUT
from tests.support.fake_learner import FakeLearner
from tests.support.stand import Stand


class ServerProcess(Stand):
    """Use as a context manager; clients connect once it is ready, a few seconds later."""

    def __enter__(self) -> ServerProcess:
        self.learner = FakeLearner(self.run_dir, self.weights()).start()
        line = [sys.executable, "-m", "inference_server", "--run-dir", str(self.run_dir.root)]
        self.process = subprocess.Popen(line, cwd=CHECKOUT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return self

    def __exit__(self, *_: object) -> None:
        for client in self._clients:
            client.close()
        self.process.kill()
        self.process.wait()
        self.learner.stop()
        self._folder.cleanup()
