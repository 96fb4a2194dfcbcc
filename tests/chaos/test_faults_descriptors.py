"""Fault 6: no file descriptor is left."""

from __future__ import annotations

import errno
import os
import resource
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import psutil

from simul.common.runtime.installation import ROOT
from simul.env_worker.games.pokemon.showdown.local_server import free_port
from tests.support.faults import count, unharmed
from tests.support.stand import Stand
from tests.support.waiting import PATIENCE_SEC, wait_for

_CROWD = """
import select, socket, sys
address = ("127.0.0.1", int(sys.argv[1]))
def dial():
    line = socket.socket()
    line.setblocking(False)
    line.connect_ex(address)
    return line
sys.stdin.readline()
lines = [dial() for _ in range(200)]
while True:
    for line in select.select(lines, [], [])[0]:
        try:
            closed = not line.recv(4096)
        except OSError:
            closed = True
        if closed:
            line.close()
            lines[lines.index(line)] = dial()
"""
_SERVER_ON_IPC = """
import resource, sys
from simul.common.transport import Poller, RouterSocket
router = RouterSocket("ipc://" + sys.argv[1])
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
print("up", flush=True)
Poller([router]).wait(100.0)
"""
_LIMITS = """
import resource
from simul.inference_server.ops.fd_limit import raise_limit
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 128))
raise_limit()
raise_limit()
print(resource.getrlimit(resource.RLIMIT_NOFILE))
"""


def test_fault_06_over_tcp_a_server_without_file_descriptors_serves_on_and_recovers() -> None:
    """As where there is no proxy. libzmq tries to accept in an endless loop: its events must not pile up."""
    port, me = free_port(), psutil.Process()
    with (
        Stand(endpoint=f"tcp://127.0.0.1:{port}") as stand,
        unharmed(stand, "connections.closed") as neighbour,
    ):
        link = stand.server._recorder._link
        wait_for(lambda: link._memory is None or link._ranks[0].opened)  # the learner needs a descriptor to open it
        before = me.num_fds()
        with _python(_CROWD, str(port)) as crowd, _at_most(before + 64):
            print("go", file=crowd.stdin, flush=True)
            wait_for(_none_is_left)
            neighbour.play(20)
            wait_for(_none_is_left)  # the crowd is still there; one that gave up has just been replaced
            assert count(stand, "connections.not_accepted") == 0
        wait_for(lambda: me.num_fds() <= before + 5)


def test_fault_06_over_ipc_a_process_without_file_descriptors_ends_so_that_another_is_started(tmp_path) -> None:
    """What libzmq does there; a supervisor that starts another server is in test_kills.py."""
    path = tmp_path / "data.ipc"
    with _python(_SERVER_ON_IPC, str(path)) as server, ExitStack() as lines:
        assert server.stdout.readline() == "up\n"
        for _ in range(100):
            line = lines.enter_context(socket.socket(socket.AF_UNIX))
            line.setblocking(False)
            line.connect_ex(str(path))
        assert server.wait(PATIENCE_SEC) == -signal.SIGABRT


def test_a_server_allows_itself_as_many_file_descriptors_as_the_system_does() -> None:
    with _python(_LIMITS) as process:
        assert process.stdout.read() == "(128, 128)\n"


@contextmanager
def _python(code: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    line, pipe = [sys.executable, "-c", code, *arguments], subprocess.PIPE
    process = subprocess.Popen(line, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True, cwd=ROOT)
    with process:
        try:
            yield process
        finally:
            process.kill()


@contextmanager
def _at_most(descriptors: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def _none_is_left() -> bool:
    try:
        os.close(os.open(os.devnull, os.O_RDONLY))
    except OSError as error:
        return error.errno == errno.EMFILE
    return False
