"""`simul up --page`: the page is a child of the supervisor, and no part of the run."""

from __future__ import annotations

import socket
import urllib.request

import psutil
import pytest

from tests.support.command import address_in
from tests.support.waiting import wait_for


def pages(pid: int) -> list[psutil.Process]:
    return [child for child in psutil.Process(pid).children() if "page" in child.cmdline()]


def test_the_page_ends_with_the_run_and_a_killed_run_leaves_none(up):
    run = up("--page-port", "0")
    with urllib.request.urlopen(address_in(run), timeout=60) as answer:
        assert b"<title>Simul</title>" in answer.read()
    (page,) = pages(run.process.pid)
    run.process.kill()
    page.wait(60)
    assert "simul page" not in run.printed(), "the command is named where there is no page"
    run = up("--page-port", "0")
    address = address_in(run)
    run.wait_until_training()
    with urllib.request.urlopen(f"{address}events", timeout=60) as events:
        (page,) = pages(run.process.pid)
        code, output = run.finish()
        assert code == 0, output
        assert b'"phase":"stopped"' in events.read(), "what the run wrote last"
    assert not page.is_running()


@pytest.mark.slow  # .ci/long runs it
def test_a_run_goes_on_without_its_page(up):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        run = up("--page-port", str(taken.getsockname()[1]))
        wait_for(lambda: "cannot be opened: Address already in use" in run.printed())
        run.wait_until_training()
        assert "the page has ended (exit code 2): Port" in run.printed()
        code, output = run.finish()
    assert code == 0, output
