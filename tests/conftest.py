"""What all tests share."""

from __future__ import annotations

import contextlib
import gc
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Processes of `-n auto`: two a core, because most tests wait for processes and clocks."""
    return min(2 * (os.cpu_count() or 1), 16)


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
        _compile_in_turn(config.cache.mkdir("compiler") / "lock")
    same = "not slow" in config.option.markexpr
    settings.register_profile(
        "simul", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=same, print_blob=True
    )
    settings.load_profile("simul")


def _compile_in_turn(turn: Path) -> None:
    """One process compiles loops at a time, and the others read them from numba's cache: in a fresh clone half of it.

    All import the same modules and call the same loops at about the same time.
    """
    from filelock import FileLock
    from numba.core import event

    lock = FileLock(turn, poll_interval=0.01)

    class Turn(event.Listener):
        def on_start(self, event: event.Event) -> None:
            lock.acquire()

        def on_end(self, event: event.Event) -> None:
            lock.release()

    event.register("numba:compiler_lock", Turn())


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Iterator[None]:
    """Modules and tests stay until the end: Python's collector looks at none of them, which takes it half a second."""
    gc.disable()
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
