"""Under which conditions a run was measured."""

from __future__ import annotations

import platform
import subprocess
from pathlib import Path
from typing import Any

from benchmarks.pokemon_layers.children import CHECKOUT
from env_worker.games.pokemon.node import NodeChoice


def conditions(node: NodeChoice, cores: list[int], cores_present: int) -> dict[str, Any]:
    """What belongs beside every figure."""
    return {
        "node": node.version,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cpu": cpu_model(),
        "cores_used": len(cores),
        "cores_present": cores_present,
        "commit": commit(),
    }


def cpu_model() -> str:
    """As the system calls it."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.lower().startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return _words(["sysctl", "-n", "machdep.cpu.brand_string"]) or platform.processor() or platform.machine()


def commit() -> str:
    """Short hash, with a `+` where the working tree differs."""
    found = _words(["git", "rev-parse", "--short=12", "HEAD"])
    if not found:
        return "unknown"
    return found + ("+" if _words(["git", "status", "--porcelain"]) else "")


def _words(command: list[str]) -> str:
    try:
        done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
