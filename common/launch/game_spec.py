"""The game spec comes from the env worker, because only a worker knows the games."""

from __future__ import annotations

import subprocess

import msgspec

from common.errors import ConfigError
from common.launch.fleet import Command, RoleDied
from common.launch.processes import role_environment
from common.rundir import RunDir
from common.specs import GameSpec

LIMIT_SEC = 120.0


def ask_for_spec(run_dir: RunDir, command: Command) -> GameSpec:
    """Run `python -m env_worker --print-spec` on the run directory's config.yaml. Raises ConfigError, RoleDied."""
    line = [*command("env_worker"), "--run-dir", str(run_dir.root), "--print-spec"]
    try:
        done = subprocess.run(
            line, capture_output=True, env=role_environment(1), timeout=LIMIT_SEC, check=False,
            stdin=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise RoleDied(f"The game did not say what it looks like within {LIMIT_SEC:.0f} s.", 1) from None
    words = done.stderr.decode(errors="replace").strip()
    if done.returncode == 2:
        raise ConfigError(words)
    if done.returncode != 0:
        raise RoleDied(f"The game could not be loaded:\n{words[-4000:]}", 1)
    try:
        return msgspec.json.decode(done.stdout.strip().splitlines()[-1], type=GameSpec)
    except (msgspec.DecodeError, IndexError):
        raise RoleDied(f"The game did not print its spec as JSON but {done.stdout[-200:]!r}.", 1) from None
