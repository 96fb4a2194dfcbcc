"""A real server in a process of its own, beside the stand-in learner in this one: what signals do to it can be seen."""

from __future__ import annotations

import subprocess
import sys

from simul.common.protocol.codec import Codec
from simul.common.protocol.messages import TO_SUPERVISOR, Report
from simul.common.runtime.installation import ROOT
from simul.common.transport import PullSocket
from tests.support.fake_learner import FakeLearner
from tests.support.stand import Stand


class ServerProcess(Stand):
    """Use as a context manager; clients connect once it is ready, a few seconds later."""

    def __enter__(self) -> ServerProcess:
        self.status = PullSocket(self.run_dir.endpoint("status"))
        self.learner = FakeLearner(self.run_dir, self.weights()).start()
        line = [sys.executable, "-m", "simul.inference_server", "--run-dir", str(self.run_dir.root)]
        self.process = subprocess.Popen(line, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return self

    def says(self, state: str) -> bool:
        """Whether it has reported this state since it was asked last."""
        codec: Codec[Report] = Codec(TO_SUPERVISOR)
        while (frames := self.status.receive()) is not None:
            if codec.decode(frames)[0].state == state:
                return True
        return False

    def __exit__(self, *_: object) -> None:
        for client in self._clients:
            client.close()
        self.process.kill()
        self.process.wait()
        self.learner.stop()
        self.status.close()
        self._folder.cleanup()
