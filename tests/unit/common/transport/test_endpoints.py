"""Who may bind an endpoint, who owns it, and what becomes of its files."""

import gc
import os
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from simul.common.errors import ConfigError
from simul.common.role.run_directory import RunDir
from simul.common.transport import DealerSocket, EndpointMonitor, PullSocket, PushSocket, RouterSocket, check_endpoint
from simul.common.transport.endpoints import listen_unix
from simul.env_worker.games.pokemon.showdown.local_server import free_port
from tests.support.sockets import receive
from tests.support.waiting import wait_for


def test_an_ipc_endpoint_of_another_process_is_not_stolen_and_its_death_frees_it(endpoint):
    code = f"from simul.common.transport import RouterSocket; s = RouterSocket({endpoint!r})\n"
    code += "print('bound', flush=True); input()"
    other = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert other.stdout.readline() == b"bound\n"
        for kind in (RouterSocket, PullSocket):
            with pytest.raises(ConfigError, match=r"in use by another process.*--run-dir"):
                kind(endpoint)
    finally:
        other.kill()
        other.communicate()
    with RouterSocket(endpoint) as router, DealerSocket(endpoint) as dealer:
        dealer.send([b"x"])
        assert receive(router)[1] == [b"x"]


def test_an_endpoint_whose_folder_vanished_is_bound_again_and_who_was_connected_stays(endpoint):
    folder = Path(endpoint.removeprefix("ipc://")).parent
    with RouterSocket(endpoint) as router, DealerSocket(endpoint) as old:
        monitor = EndpointMonitor(router)
        old.send([b"before"])
        receive(router)
        assert monitor.restore_missing(0.0) == []
        shutil.rmtree(folder)
        assert monitor.restore_missing(0.5) == []  # once a second
        (sentence,) = monitor.restore_missing(1.0)
        assert sentence.startswith(f"{folder}/a had vanished and was made again: ")
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        with DealerSocket(endpoint) as new:
            new.send([b"new"])
            assert receive(router)[1] == [b"new"]
        old.send([b"after"])
        assert receive(router)[1] == [b"after"]
        with pytest.raises(ConfigError, match="in use by another process"):
            RouterSocket(endpoint)
        assert monitor.restore_missing(2.0) == []


def test_a_vanished_endpoint_that_another_process_took_meanwhile_is_left_to_it(endpoint):
    folder = Path(endpoint.removeprefix("ipc://")).parent
    with RouterSocket(endpoint) as router, DealerSocket(endpoint) as old:
        monitor = EndpointMonitor(router)
        old.send([b"before"])
        receive(router)
        shutil.rmtree(folder)
        folder.mkdir()
        with RouterSocket(endpoint):
            os.unlink(endpoint.removeprefix("ipc://"))
            (sentence,) = monitor.restore_missing(0.0)
            assert "in use by another process" in sentence
            assert monitor.restore_missing(1.0) == []  # said
        old.send([b"still here"])
        assert receive(router)[1] == [b"still here"]
        assert "was made again" in monitor.restore_missing(2.0)[0]


def test_a_lock_that_vanished_is_taken_again_before_anybody_else_does(endpoint):
    path = endpoint.removeprefix("ipc://")
    with RouterSocket(endpoint) as router, DealerSocket(endpoint) as dealer:
        monitor, before = EndpointMonitor(router), os.stat(path).st_ino
        os.unlink(f"{path}.lock")
        assert monitor.restore_missing(0.0)[0].startswith(f"{path}.lock had vanished and was made again: ")
        assert os.stat(path).st_ino == before
        with pytest.raises(ConfigError, match="in use by another process"):
            RouterSocket(endpoint)
        dealer.send([b"x"])
        assert receive(router)[1] == [b"x"]


@pytest.fixture
def no_umask():
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.skipif(sys.platform == "win32", reason="sockets are no files there")
@pytest.mark.parametrize(("access", "mode"), [("owner", 0o600), ("group", 0o660), ("everyone", 0o666)])
def test_an_ipc_socket_is_its_owners_whatever_the_umask_is(endpoint, no_umask, access, mode):
    path = Path(endpoint.removeprefix("ipc://"))

    def mode_now():
        return stat.S_IMODE(path.stat().st_mode)

    with RouterSocket(endpoint, access=access) as router:
        assert mode_now() == mode
        path.unlink()
        assert EndpointMonitor(router).restore_missing(0.0)
        assert mode_now() == mode
    assert not path.exists()
    with PullSocket(endpoint):
        assert mode_now() == 0o600


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can be another user")
@pytest.mark.parametrize(("access", "said"), [("owner", b"PermissionError"), ("everyone", b"")])
def test_another_user_connects_where_ipc_access_says_so(access, said):
    """Beside a run directory that is the owner's alone."""
    program = "import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])"
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        RunDir(f"{folder}/run").create()
        with RouterSocket(f"ipc://{folder}/s.ipc", access=access):
            line = [os.path.realpath(sys.executable), "-c", program, f"{folder}/s.ipc"]
            tried = subprocess.run(line, user=65534, group=65534, extra_groups=[], stderr=subprocess.PIPE, cwd="/")
    assert (tried.returncode == 0, said in tried.stderr) == (not said, True), tried.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="sockets are no files there")
def test_nobody_connects_before_the_permissions_are_set(endpoint, no_umask, monkeypatch):
    """Between bind and chmod the file has the umask's permissions, but the system refuses every connection."""
    path, chmod, tried = endpoint.removeprefix("ipc://"), os.chmod, []

    def late(file, mode):
        with socket.socket(socket.AF_UNIX) as early, pytest.raises(ConnectionRefusedError):
            early.connect(path)
        tried.append(file)
        chmod(file, mode)

    monkeypatch.setattr(os, "chmod", late)
    with RouterSocket(endpoint):
        assert tried == [path]


@pytest.mark.skipif(sys.platform != "linux", reason="abstract names are Linux's")
def test_endpoints_without_files_are_not_missed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # the lock of an abstract name lies there
    name = f"ipc://@{tmp_path.name}-{os.getpid()}"
    with RouterSocket(name) as abstract, RouterSocket(f"tcp://127.0.0.1:{free_port()}") as tcp:
        monitor = EndpointMonitor(abstract, tcp)
        assert [monitor.restore_missing(float(second)) for second in range(3)] == [[], [], []]


def test_a_tcp_port_in_use_is_a_sentence():
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        endpoint = f"tcp://127.0.0.1:{holder.getsockname()[1]}"
        with pytest.raises(ConfigError, match=r"cannot be bound: Address already in use\. Another.*another endpoint"):
            RouterSocket(endpoint)


@pytest.mark.parametrize(
    "endpoint",
    ["tcp://0.0.0.0:5555", "tcp://*:5555", "tcp://192.168.1.4:5555", "tcp://[::]:5555", "tcp://example.org:5555",
     "tcp://127.0.0.1.example.org:5555", "inproc://x", "pgm://127.0.0.1:5555", "127.0.0.1:5555", "", "tcp://eth0:5555"],
)  # fmt: skip
def test_strangers_are_kept_out(endpoint):
    words = "is not local" if endpoint.startswith("tcp://") else "has an unknown kind"
    with pytest.raises(ConfigError, match=words):
        check_endpoint(endpoint)
    for kind in (RouterSocket, PullSocket):
        with pytest.raises(ConfigError, match=words):
            kind(endpoint)


@pytest.mark.parametrize("port", ["", "x", "99999", "-1", "65536"])
def test_ports_that_do_not_exist(port):
    with pytest.raises(ConfigError, match="no usable port"):
        RouterSocket(f"tcp://127.0.0.1:{port}")


def test_ipc_paths_that_cannot_be_bound(endpoint):
    with pytest.raises(ConfigError, match="cannot be made: No such file or directory"):
        RouterSocket(f"{endpoint}/missing/a")
    with pytest.raises(ConfigError, match="cannot be bound"):
        RouterSocket(f"{endpoint}{'x' * 110}")


@pytest.mark.skipif(sys.platform == "win32", reason="sockets are no files there")
def test_a_path_of_another_file_is_refused_and_a_socket_that_was_left_is_taken(endpoint):
    path = Path(endpoint.removeprefix("ipc://"))
    for make in (lambda: path.write_text("ssh-ed25519 AAAA"), lambda: path.symlink_to("elsewhere"), path.mkdir):
        make()
        with pytest.raises(ConfigError, match="is the path of a file that is no socket"):
            RouterSocket(endpoint)
        with pytest.raises(ConfigError, match="no socket"):
            listen_unix(endpoint)
        assert os.listdir(path.parent) == [path.name], "no lock beside it"
        path.rmdir() if path.is_dir() else path.unlink()
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))
    with RouterSocket(endpoint) as router, DealerSocket(endpoint) as dealer:
        dealer.send([b"x"])
        assert receive(router)[1] == [b"x"]


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can make another user's folder")
@pytest.mark.parametrize("how", ["another user's", "everybody may write"])
def test_a_vanished_endpoint_is_not_made_again_in_a_folder_that_others_took(endpoint, how):
    """Who may exchange the socket would read the training token of each worker that connects again."""
    folder = Path(endpoint.removeprefix("ipc://")).parent
    with RouterSocket(endpoint) as router:
        monitor = EndpointMonitor(router)
        shutil.rmtree(folder)
        folder.mkdir()
        if how == "another user's":
            os.chown(folder, 65534, 65534)
        folder.chmod(0o700 if how == "another user's" else 0o777)
        (sentence,) = monitor.restore_missing(0.0)
        assert f"The folder {folder} is another user's, or everybody may write to it" in sentence
        assert list(folder.iterdir()) == []


@pytest.mark.parametrize("kind", [DealerSocket, PushSocket])
def test_an_endpoint_that_makes_no_sense_is_a_sentence(kind):
    with pytest.raises(ConfigError, match="cannot be reached"):
        kind("somewhere")


def test_a_refused_bind_leaves_nothing_open(endpoint):
    with RouterSocket(endpoint):
        gc.collect()
        before = len(os.listdir("/dev/fd"))
        for _ in range(20):
            with pytest.raises(ConfigError):
                RouterSocket(endpoint)
        gc.collect()
        wait_for(lambda: len(os.listdir("/dev/fd")) <= before + 1)  # libzmq closes its mailboxes in its own thread
