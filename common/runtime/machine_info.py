"""Conditions of a measurement, published with every figure."""

from __future__ import annotations

import platform
import subprocess
from pathlib import Path

from simul.common.runtime.installation import IN_CHECKOUT, ROOT


def machine() -> dict[str, str]:
    """Processor, system, Python and the checkout's commit."""
    return {
        "cpu": _cpu_model(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "commit": _commit(),
    }


def _cpu_model() -> str:
    """The processor's name as the system reports it."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.lower().startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return _output("sysctl", "-n", "machdep.cpu.brand_string") or platform.processor() or platform.machine()


def checkout_commit() -> str:
    """The first 12 digits of the checkout's commit; "" where Simul is none, also inside another repository."""
    return _output("git", "rev-parse", "--short=12", "HEAD") if IN_CHECKOUT else ""


def _commit() -> str:
    """Short hash, with a `+` where the working tree differs."""
    found = checkout_commit()
    return found + ("+" if _output("git", "status", "--porcelain") else "") if found else "unknown"


def _output(*command: str) -> str:
    """Standard output of a command, stripped; empty where it fails."""
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
