"""What all tests share."""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Processes of `-n auto`: two a core, because most tests wait for processes and clocks."""
    return min(2 * (os.cpu_count() or 1), 16)


# Files of one process: they share a Showdown server, whose start takes 3 s of processor time.
SHOWDOWN = "showdown"
TOGETHER = {
    f"tests/integration/pokemon/{name}.py": SHOWDOWN
    for name in ("test_following", "test_play", "test_play_command", "test_websocket")
}


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Processes take files one by one, as with `--dist=loadfile`; files of `TOGETHER` go to the same process."""
    from xdist.scheduler import LoadFileScheduling

    class Scheduling(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = super()._split_scope(nodeid)
            return TOGETHER.get(file, file)

    return Scheduling(config, log) if config.getoption("dist") == "loadfile" else None


def pytest_addoption(parser: pytest.Parser) -> None:
    """What tests write into the tree, they write when they are asked to."""
    parser.addoption("--page-picture", metavar="RUN_DIR", help="write docs/images/page*.png, the first of this run")


def pytest_configure(config: pytest.Config) -> None:
    """Hypothesis looks at no clock. `make test` has the same examples every time, `make test-long` looks for others.

    No run of the tests sends notices to the person who runs them, or reads the secret that signs that person's runs.
    Tests start hundreds of simulators: what Node has compiled for the first is there for the others.
    """
    os.environ["SIMUL_NOTIFY"] = ""
    state = tempfile.TemporaryDirectory(prefix="tests-state-", ignore_cleanup_errors=True)
    config.add_cleanup(state.cleanup)
    os.environ["XDG_STATE_HOME"] = state.name
    os.environ.setdefault("NODE_COMPILE_CACHE", os.path.join(state.name, "node"))
    if hasattr(config, "workerinput"):  # several processes run tests
        _compile_together(config.cache.mkdir("compiler"), *_place(config))
    same = "not slow" in config.option.markexpr
    settings.register_profile(
        "simul", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=same, print_blob=True
    )
    settings.load_profile("simul")


def _place(config: pytest.Config) -> tuple[int, int]:
    """Which of how many processes this one is."""
    return int(config.workerinput["workerid"].removeprefix("gw")), config.workerinput["workercount"]


# Modules that are compiled when they are imported: in a fresh clone, half a minute of two cores.
LOOPS = (
    "simul.inference_server.engine.sampling", "simul.env_worker.search.loops", "simul.inference_server.sessions.table",
    "simul.inference_server.serving.gather_rows", "simul.inference_server.unrolls.buffer",
    "simul.env_worker.games.blokus.kernels", "simul.inference_server.sessions.row_checks",
)  # fmt: skip


def _compile_together(turns: Path, worker: int, workers: int) -> None:
    """One process compiles a function, and the others read it from numba's cache.

    All import the same modules before the first test runs: each begins with others, so that every core compiles.
    """
    from filelock import FileLock
    from numba.core.compiler_lock import global_compiler_lock
    from numba.core.dispatcher import Dispatcher

    compile_now = Dispatcher.compile

    def compile_in_turn(self: Dispatcher, signature: object) -> object:
        name = f"{self.py_func.__module__}.{self.py_func.__qualname__}"
        with global_compiler_lock, FileLock(turns / name, poll_interval=0.01):  # always in this order
            return compile_now(self, signature)

    Dispatcher.compile = compile_in_turn
    first = worker * len(LOOPS) // workers
    for module in LOOPS[first:] + LOOPS[:first]:
        importlib.import_module(module)


def _import_together(session: pytest.Session, worker: int, workers: int) -> None:
    """One process rewrites the assertions of a test file, and the others read what it wrote.

    Each begins with other files. In a fresh clone, ten seconds of processor time for each process but the first.
    """
    names = []
    for folder in session.config.args:
        for file in sorted((session.config.rootpath / folder).rglob("test_*.py")):
            names.append(".".join(file.relative_to(session.config.rootpath).with_suffix("").parts))
    first = worker * len(names) // workers
    for name in names[first:] + names[:first]:
        with contextlib.suppress(Exception, pytest.skip.Exception):  # the collection imports it again, and says so
            importlib.import_module(name)


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Iterator[None]:
    """Modules and tests stay until the end: Python's collector looks at none of them, which takes it half a second."""
    gc.disable()
    if hasattr(session.config, "workerinput") and session.config.args == session.config.getini("testpaths"):
        _import_together(session, *_place(session.config))
    yield
    gc.freeze()
    gc.enable()


def pytest_collection_finish(session: pytest.Session) -> None:
    """Torch takes one thread in a process that runs tests, and the one that only starts others does without torch.

    Several run at once, and threads that wait for a preempted one burn its core.
    """
    import torch

    torch.set_num_threads(1)


@pytest.fixture(scope="session", autouse=True)
def no_sockets_are_left(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Run directories with long paths, as tests have, keep their sockets in the folder for temporary files."""
    yield
    ours = os.fsencode(tmp_path_factory.getbasetemp())
    for owner in Path(tempfile.gettempdir()).glob("simul-sockets-*/run-directory"):
        with contextlib.suppress(OSError):
            if owner.read_bytes().startswith(ours):
                shutil.rmtree(owner.parent, ignore_errors=True)
