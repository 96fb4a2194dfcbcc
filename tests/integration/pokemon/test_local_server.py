"""The Showdown server out of the npm package: it answers browsers, and does not outlive whoever started it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import psutil
import pytest

from simul.common.errors import EnvError
from simul.common.runtime.installation import ROOT
from simul.env_worker.games.pokemon.install.node import find_node
from simul.env_worker.games.pokemon.showdown.local_server import LocalServer, copy_package, local_server

OWNER = """
import time
from simul.env_worker.games.pokemon.install.node import find_node
from simul.env_worker.games.pokemon.showdown.local_server import local_server
with local_server(find_node().path) as server:
    print(server.pid, flush=True)
    time.sleep(100)
"""


def test_a_browser_is_answered_and_missing_files_do_no_harm():
    with local_server(find_node().path) as server:
        page = f"http://127.0.0.1:{server.port}/"
        assert b"psim.us" in urllib.request.urlopen(page, timeout=100).read(), "it leads to Showdown's web client"
        for missing in ("avatars/none.png", "nothing"):
            with contextlib.suppress(urllib.error.HTTPError):
                urllib.request.urlopen(page + missing, timeout=100)
        assert server.alive()
        pid = server.pid
        listening = {c.laddr.ip for c in psutil.Process(pid).net_connections() if c.status == psutil.CONN_LISTEN}
        assert listening == {"127.0.0.1"}, "it listens on this machine only"
    assert not psutil.pid_exists(pid)


def test_it_ends_with_its_owner():
    with subprocess.Popen([sys.executable, "-c", OWNER], cwd=ROOT, stdout=subprocess.PIPE, text=True) as owner:
        pid = int(owner.stdout.readline())
        os.kill(owner.pid, signal.SIGKILL)
    deadline = time.monotonic() + 100
    while psutil.pid_exists(pid):
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_one_that_does_not_start_is_quoted(tmp_path: Path):
    package = copy_package(tmp_path)
    (package / "config" / "config.js").write_text("throw new Error('no such luck');")
    server = LocalServer(find_node().path, package, tmp_path / "log")
    with pytest.raises(EnvError, match="no such luck"):
        server.wait_ready()
