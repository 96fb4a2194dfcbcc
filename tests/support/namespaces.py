"""Machines out of Linux namespaces: each has its own network, mounts, processes and memory files."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Self

from simul.common.runtime.installation import ROOT

NETWORK = "10.213.7"
STORE = "/mnt"  # where every machine has the folder that stands for the store


def _run(*line: str) -> None:
    subprocess.run(line, check=True, capture_output=True, text=True)


def why_not() -> str:
    """Why this kernel, user or checkout cannot have machines out of namespaces; "" where it can."""
    for tool in ("ip", "unshare"):
        if shutil.which(tool) is None:
            return f"there is no command `{tool}`"
    if ROOT.is_relative_to("/tmp"):
        return "the checkout lies below /tmp, of which each machine has one of its own"
    if os.geteuid() != 0:
        return "making network namespaces needs root"
    name = f"simul-try-{os.getpid()}"
    try:
        _run("ip", "netns", "add", name)
        _run("ip", "netns", "exec", name, "unshare", "--mount", "--pid", "--fork", "--mount-proc", "true")
        _run("ip", "link", "add", name[-15:], "type", "bridge")
    except subprocess.CalledProcessError as error:
        return f"the kernel forbids it: {error.stderr.strip() or error}"
    finally:
        for line in (["ip", "link", "del", name[-15:]], ["ip", "netns", "del", name]):
            subprocess.run(line, capture_output=True, check=False)
    return ""


class Machines:
    """`count` namespaces on one bridge; this process is at `host`. A context manager.

    Attributes:
        addresses: of the machines.
    """

    def __init__(self, count: int, store: Path) -> None:
        self.host = f"{NETWORK}.1"
        self.addresses = [f"{NETWORK}.{2 + n}" for n in range(count)]
        self._store = store
        self._tag = f"s{os.getpid() % 100_000}"

    def __enter__(self) -> Self:
        try:
            self._make()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for n in range(len(self.addresses)):
            for line in (["ip", "link", "del", self._link(n)], ["ip", "netns", "del", self._space(n)]):
                subprocess.run(line, capture_output=True, check=False)
        subprocess.run(["ip", "link", "del", f"{self._tag}br"], capture_output=True, check=False)

    def prefix(self, address: str) -> list[str]:
        """What to put before a command line that runs on a machine: its own /tmp, /dev/shm and /proc."""
        own = " && ".join(f"mount {what}" for what in (f"--bind {self._store} {STORE}", "-t tmpfs none /tmp",
                                                       "-t tmpfs none /dev/shm"))  # fmt: skip
        return [
            "ip", "netns", "exec", self._space(self.addresses.index(address)),
            "unshare", "--mount", "--pid", "--fork", "--kill-child=KILL", "--mount-proc",
            "sh", "-c", f'{own} && exec "$@"', "sh",
        ]  # fmt: skip

    def cut(self, address: str, seconds: float) -> None:
        """Take the machine's link down, and up again after `seconds`."""
        link = self._link(self.addresses.index(address))
        _run("ip", "link", "set", link, "down")
        with contextlib.ExitStack() as after:
            after.callback(_run, "ip", "link", "set", link, "up")
            time.sleep(seconds)

    def _make(self) -> None:
        bridge = f"{self._tag}br"
        _run("ip", "link", "add", bridge, "type", "bridge")
        _run("ip", "addr", "add", f"{self.host}/24", "dev", bridge)
        _run("ip", "link", "set", bridge, "up")
        for n, address in enumerate(self.addresses):
            space, link, inside = self._space(n), self._link(n), f"{self._tag}i{n}"
            _run("ip", "netns", "add", space)
            _run("ip", "link", "add", link, "type", "veth", "peer", "name", inside)
            _run("ip", "link", "set", link, "master", bridge, "up")
            _run("ip", "link", "set", inside, "netns", space)
            for line in (["addr", "add", f"{address}/24", "dev", inside], ["link", "set", inside, "up"],
                         ["link", "set", "lo", "up"]):  # fmt: skip
                _run("ip", "-n", space, *line)

    def _space(self, n: int) -> str:
        return f"{self._tag}m{n}"

    def _link(self, n: int) -> str:
        return f"{self._tag}o{n}"
