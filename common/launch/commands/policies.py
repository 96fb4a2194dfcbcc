"""`simul policies list|load|unload`: which policies a running server serves."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.table import Table

from simul.common.client.control import ControlClient
from simul.common.config.run_directory import RunDir
from simul.common.launch.commands.remote import choose_run
from simul.common.protocol.errors import ConfigError
from simul.common.protocol.messages import ControlAnswer

LIST_TIMEOUT_SEC = 5.0


def list_policies(root: Path | None) -> int:
    """Print a table. Exit code 0."""
    with ControlClient(_run_dir(root), LIST_TIMEOUT_SEC) as control:
        _show(control.policies())
    return 0


def load_policy(root: Path | None, name: str, checkpoint: Path) -> int:
    """Serve a checkpoint, or the newest one of a run directory, under a name. Exit code 0."""
    with ControlClient(_run_dir(root)) as control:
        _show(control.load(name, _folder(checkpoint)))
    return 0


def unload_policy(root: Path | None, name: str, *, drain: bool) -> int:
    """Take a loaded policy away. Exit code 0."""
    with ControlClient(_run_dir(root)) as control:
        _show(control.unload(name, drain=drain))
    return 0


def _run_dir(root: Path | None) -> RunDir:
    run_dir = choose_run(root, active_only=True)
    if not run_dir.exists():
        raise ConfigError(f"There is no run in {run_dir.root}. Name a run directory with --run-dir.")
    return run_dir


def _folder(path: Path) -> Path:
    if (path / "meta.json").exists() or not (path / "checkpoints").is_dir():
        return path
    newest = max((p for p in (path / "checkpoints").glob("[0-9]" * 9) if (p / "meta.json").exists()), default=None)
    if newest is None:
        raise ConfigError(f"The run directory {path} has no checkpoint yet.")
    return newest


def _show(answer: ControlAnswer) -> None:
    console = Console()
    if answer.text:
        console.print(answer.text, highlight=False)
    table = Table("policy", "version", "sessions", "from", "new sessions")
    for policy in answer.policies:
        version, sessions = str(policy.policy_version), str(policy.sessions)
        table.add_row(policy.name, version, sessions, policy.source, "yes" if policy.open else "no, draining")
    console.print(table)
