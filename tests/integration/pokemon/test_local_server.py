"""The Showdown server out of the npm package: it answers browsers, and does not outlive whoever started it."""

from __future__ import annotations

import contextlib
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import psutil
import pytest
from poke_env import ServerConfiguration
from poke_env.player import RandomPlayer

from simul.common.errors import EnvError
from simul.common.runtime.installation import ROOT
from simul.env_worker.games.pokemon.install.node import find_node
from simul.env_worker.games.pokemon.showdown.client import SILENT
from simul.env_worker.games.pokemon.showdown.local_server import LocalServer, copy_package
from tests.support.showdown import on_loop
from tests.support.waiting import PATIENCE_SEC, wait_for

OWNER = """
import time
from simul.env_worker.games.pokemon.install.node import find_node
from simul.env_worker.games.pokemon.showdown.local_server import local_server
with local_server(find_node().path) as server:
    print(server.pid, server.port, flush=True)
    time.sleep(1000)
"""


def test_a_browser_is_answered_missing_files_do_no_harm_and_it_ends_with_its_owner():
    with subprocess.Popen([sys.executable, "-c", OWNER], cwd=ROOT, stdout=subprocess.PIPE, text=True) as owner:
        try:
            pid, port = map(int, owner.stdout.readline().split())
            page = f"http://127.0.0.1:{port}/"
            assert b"psim.us" in urllib.request.urlopen(page, timeout=100).read(), "it leads to Showdown's web client"
            for missing in ("avatars/none.png", "nothing"):
                with contextlib.suppress(urllib.error.HTTPError):
                    urllib.request.urlopen(page + missing, timeout=100)
            server = psutil.Process(pid)
            listening = {c.laddr.ip for c in server.net_connections() if c.status == psutil.CONN_LISTEN}
            assert listening == {"127.0.0.1"}, "it listens on this machine only"
            assert server.is_running()
        finally:
            owner.kill()
    wait_for(lambda: not psutil.pid_exists(pid))


def test_the_command_prints_how_players_join_and_ends_with_its_processes():
    line = [sys.executable, "-m", "simul.launch.cli", "showdown"]
    with subprocess.Popen([*line, "--port", "0"], cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            said = [process.stdout.readline() for _ in range(5)]
            address = re.search(r'ServerConfiguration\("(ws://127\.0\.0\.1:(\d+)/\S+)", ""\)', said[3])
            configuration = ServerConfiguration(address[1], "")
            first, second = (RandomPlayer(server_configuration=configuration, log_level=SILENT) for _ in range(2))
            on_loop(first._battle_against(second, n_battles=1)).result(PATIENCE_SEC)
            assert first.n_finished_battles == 1
            taken = subprocess.run(
                [*line, "--port", address[2]], cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_SEC
            )
            assert taken.returncode == 2
            assert f"The port {address[2]} cannot be used: another program listens there" in taken.stderr
            family = psutil.Process(process.pid).children(recursive=True)
        finally:
            process.send_signal(signal.SIGINT)
    assert process.returncode == 0
    _, left = psutil.wait_procs(family, timeout=PATIENCE_SEC)
    assert left == []


def test_one_that_does_not_start_is_quoted(tmp_path: Path):
    package = copy_package(tmp_path)
    (package / "config" / "config.js").write_text("throw new Error('no such luck');")
    server = LocalServer(find_node().path, package, tmp_path / "log")
    with pytest.raises(EnvError, match="no such luck"):
        server.wait_ready()
