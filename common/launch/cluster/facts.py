"""What must be the same on all machines of a run: versions of Python and packages, and the code itself."""

from __future__ import annotations

import contextlib
import hashlib
import platform
import subprocess
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version

from simul.common.runtime.installation import IMPORT_ROOT, ROOT

COMPARED = ("python", "torch", "ray", "code")


def machine_facts() -> dict[str, str]:
    """COMPARED by name, and the commit of the checkout where there is one."""
    return {
        "python": platform.python_version(),
        "torch": _version("torch"),
        "ray": _version("ray"),
        "code": _digest_of_code(),
        "commit": _commit(),
    }


def differences(facts: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Sentences about which of COMPARED differs. `facts`: by name of the machine."""
    sentences = []
    for name in COMPARED:
        values = {machine: own.get(name, "unknown") for machine, own in facts.items()}
        if len(set(values.values())) > 1:
            listed = ", ".join(f"{value}{_commit_words(facts[node], name)} on {node}" for node, value in values.items())
            sentences.append(f"{name} differs: {listed}")
    return sentences


def _commit_words(facts: Mapping[str, str], name: str) -> str:
    return f" (commit {facts['commit']})" if name == "code" and facts.get("commit") else ""


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _digest_of_code() -> str:
    """First 12 hex digits of SHA-256 over Simul's Python files."""
    digest, root = hashlib.sha256(), IMPORT_ROOT / "simul"
    for folder in ("common", "env_worker", "inference_server", "learner"):
        for file in sorted((root / folder).rglob("*.py")):
            digest.update(str(file.relative_to(root)).encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:12]


def _commit() -> str:
    """The first 12 digits of the checkout's commit; "" where it is none."""
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        line = ["git", "-C", str(ROOT), "rev-parse", "--short=12", "HEAD"]
        return subprocess.run(line, capture_output=True, text=True, timeout=10.0, check=True).stdout.strip()
    return ""
