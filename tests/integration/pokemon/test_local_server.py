"""The Showdown server out of the npm package: it answers browsers, and does not outlive whoever started it."""

from __future__ import annotations

import contextlib
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import psutil
import pytest
from poke_env import ServerConfiguration
from poke_env.player import RandomPlayer
from websockets.sync.client import connect

from simul.common.config.games.pokemon import PokemonConfig, ShowdownAddress
from simul.common.config.schema import OpponentsConfig
from simul.common.errors import EnvError
from simul.common.runtime.installation import ROOT
from simul.env_worker.games.pokemon.install.node import find_node
from simul.env_worker.games.pokemon.showdown.client import SILENT
from simul.env_worker.games.pokemon.showdown.local_server import LocalServer, copy_package
from tests.support.battles import Table, make_source
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


def check_no_room_is_kept(port: int) -> None:
    """Showdown alone keeps the room of a battle that is over for ten minutes: hundreds of megabytes an hour."""
    config = PokemonConfig(transport="websocket", servers=(ShowdownAddress("127.0.0.1", port),))
    source = make_source(config, OpponentsConfig(self_play=0.0, random=1.0), envs=1, episodes=1)
    source.start()
    try:
        table = Table(source)
        while not source._keeper.backend._runner._rooms:
            table.turn()
        tag = next(room.tag for room, _ in source._keeper.backend._runner._rooms.values())
        assert "|init|battle" in said_to_a_guest(port, tag)
        table.play()
    finally:
        source.close()
    deadline = time.monotonic() + PATIENCE_SEC
    while "|noinit|nonexistent" not in (answer := said_to_a_guest(port, tag)):
        assert time.monotonic() < deadline, answer
        time.sleep(0.3)


def said_to_a_guest(port: int, tag: str) -> str:
    """What the server says to one who joins a room, and leaves again."""
    with connect(f"ws://127.0.0.1:{port}/showdown/websocket") as socket:
        socket.send(f"|/join {tag}")
        while True:
            answer = str(socket.recv(timeout=PATIENCE_SEC))
            if answer.startswith(f">{tag}"):
                return answer


def test_the_command_prints_how_players_join_keeps_no_room_of_a_battle_that_is_over_and_ends_with_its_processes():
    line = [sys.executable, "-m", "simul.launch.cli", "showdown"]
    with subprocess.Popen([*line, "--port", "0"], cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            said = [process.stdout.readline() for _ in range(5)]
            address = re.search(r'ServerConfiguration\("(ws://127\.0\.0\.1:(\d+)/\S+)", ""\)', said[3])
            configuration = ServerConfiguration(address[1], "")
            first, second = (RandomPlayer(server_configuration=configuration, log_level=SILENT) for _ in range(2))
            on_loop(first._battle_against(second, n_battles=1)).result(PATIENCE_SEC)
            assert first.n_finished_battles == 1
            check_no_room_is_kept(int(address[2]))
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
