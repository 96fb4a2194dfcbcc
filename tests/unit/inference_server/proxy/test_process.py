"""The proxy's process, seen from the server."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

from simul.inference_server.proxy.framing import Limits
from simul.inference_server.proxy.process import ProxyProcess


def test_a_system_without_processes_to_give_is_asked_again_later(tmp_path: Path, monkeypatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise BlockingIOError("no process to give")

    with monkeypatch.context() as exhausted:
        exhausted.setattr(subprocess, "Popen", refuse)
        proxy = ProxyProcess(f"ipc://{tmp_path}/data.ipc", f"ipc://{tmp_path}/own.ipc", Limits())
        assert (proxy.pid, proxy.poll(time.monotonic() + 1.0)) == (0, "")
    proxy.poll(time.monotonic() + 100.0)
    assert proxy.pid
    proxy.close()
