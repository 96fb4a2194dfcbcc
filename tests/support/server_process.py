"""A real server in a process of its own, beside the stand-in learner in this one: what signals do to it can be seen."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import Any

from simul.common.client.client import InferenceClient
from simul.common.protocol.codec import Codec
from simul.common.protocol.messages import TO_SUPERVISOR, Report
from simul.common.runtime.installation import ROOT
from simul.common.transport import PullSocket
from tests.support.fake_learner import FakeLearner
from tests.support.stand import Stand


class ServerProcess(Stand):
    """Use as a context manager; clients connect once it is ready."""

    _ready = False

    def __enter__(self) -> ServerProcess:
        self.status = PullSocket(self.run_dir.endpoint("status"))
        self.learner = FakeLearner(self.run_dir, self.weights()).start()
        line = [sys.executable, "-m", "simul.inference_server", "--run-dir", str(self.run_dir.root)]
        self.process = subprocess.Popen(line, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return self

    def wait_until_ready(self) -> None:
        """Wait until it serves; it fails where the process ends before."""
        while not self._ready:
            assert self.process.poll() is None, "the server ended before it was ready"
            self._ready = self.says("ready")
            time.sleep(0.02)

    def client(self, name: str, **more: Any) -> InferenceClient:
        """A connected client, once it is ready: on a loaded machine its start may take minutes."""
        self.wait_until_ready()
        return super().client(name, **more)

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
