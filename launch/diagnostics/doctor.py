"""`simul doctor`: what is missing on this machine, and the command that fixes it."""

from __future__ import annotations

import platform
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distribution, version
from pathlib import Path

import msgspec

from simul.common.config.games import GAMES
from simul.common.errors import ConfigError
from simul.common.role.finding import Finding
from simul.common.role.run_directory import RunDir
from simul.common.role.temporary import temporary_folder
from simul.common.runtime.extras import pip_install
from simul.common.runtime.installation import IN_CHECKOUT, ROOT
from simul.common.runtime.terminal_text import print_text
from simul.common.transport import PullSocket
from simul.launch.processes.role_process import role_environment

LEAST_PYTHON = (3, 11)
SETUP = "make setup" if IN_CHECKOUT else pip_install("--force-reinstall") + " <the wheel of Simul>"


def doctor() -> int:
    """Print every finding. Exit code 1 if a check failed."""
    missing = 0
    for finding in findings():
        mark = "missing" if finding.fix else "ok"
        missing += bool(finding.fix)
        print_text(f"{mark:8} {finding.name}: {finding.found}")
        if finding.fix:
            print_text(f"         fix: {finding.fix}")
    print_text("Everything is there." if not missing else f"{missing} missing.")
    return 1 if missing else 0


def findings() -> Iterator[Finding]:
    """Every check; each needs those before it."""
    yield _python()
    yield _packages()
    yield _torch()
    for name, game in GAMES.items():
        if game.checks:
            yield from game_findings(name, game.checks)
    yield _write_permission()
    yield _sockets()


def _python() -> Finding:
    found = f"{platform.python_version()} ({sys.executable})"
    old = sys.version_info < LEAST_PYTHON
    return Finding("python", found, f"install Python 3.11 or newer, then `{SETUP}`" if old else "")


def _packages() -> Finding:
    wanted = [re.split(r"[ ;<>=!~\[]", line)[0] for line in _requirements()]
    missing = []
    for name in wanted:
        try:
            version(name)
        except PackageNotFoundError:
            missing.append(name)
    if missing or not wanted:
        return Finding("packages", f"without {', '.join(missing) or 'simul itself'}", SETUP)
    return Finding("packages", f"all {len(wanted)} are installed")


def _requirements() -> list[str]:
    try:
        return [line for line in distribution("simul").requires or () if "extra ==" not in line]
    except PackageNotFoundError:
        return []


def _torch() -> Finding:
    code = "import torch; print(torch.__version__, 'cuda' if torch.cuda.is_available() else 'cpu')"
    return _run("torch", [sys.executable, "-P", "-c", code])


def game_findings(name: str, module: str) -> list[Finding]:
    """What the checks of the game `name` find (`Game.checks`); one finding where `module` does not run."""
    returncode, output, errors = _output([sys.executable, "-P", "-m", module])
    if returncode:
        return [Finding(name, _last_line(errors), SETUP)]
    return [msgspec.json.decode(line, type=Finding) for line in output.splitlines()]


def _write_permission() -> Finding:
    try:
        with tempfile.NamedTemporaryFile(dir=Path.cwd()):
            return Finding("write permission", str(Path.cwd()))
    except OSError as error:
        return Finding("write permission", f"{Path.cwd()}: {error.strerror}", "simul up --run-dir <a folder of yours>")


def _sockets() -> Finding:
    try:
        with temporary_folder("simul-doctor-") as folder:
            run_dir = RunDir(folder)
            run_dir.create()
            PullSocket(run_dir.endpoint("status")).close()
    except ConfigError as error:
        return Finding("sockets", str(error), "export TMPDIR=<a folder of yours with a short path>")
    return Finding("sockets", "local endpoints can be bound")


def _run(name: str, command: list[str], fix: str = SETUP) -> Finding:
    returncode, output, errors = _output(command)
    return Finding(name, _last_line(output or errors), fix if returncode else "")


def _output(command: list[str]) -> tuple[int, str, str]:
    """(exit code, stdout, stderr) of a process; one that does not end counts as failed."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=120, check=False, env=role_environment(1), cwd=ROOT
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return 1, "", str(error)
    return done.returncode, done.stdout.strip(), done.stderr.strip()


def _last_line(text: str) -> str:
    return (text or "it printed nothing").splitlines()[-1]
