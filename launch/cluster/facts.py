"""What must be the same on all machines of a run: versions of Python and packages, and the code itself."""

from __future__ import annotations

import hashlib
import os
import platform
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from simul.common.runtime.installation import IMPORT_ROOT
from simul.common.runtime.machine_info import checkout_commit

COMPARED = ("python", "torch", "ray", "code")
CODE_SUFFIXES = (".py", ".mjs", ".cjs", ".txt")  # Pokémon's host plays and encodes in JavaScript, by tables of names
NO_CODE = ("node_modules", "__pycache__")


def machine_facts() -> dict[str, str]:
    """COMPARED by name, and the commit of the checkout where there is one."""
    return {
        "python": platform.python_version(),
        "torch": _version("torch"),
        "ray": _version("ray"),
        "code": digest_of_code(IMPORT_ROOT / "simul"),
        "commit": checkout_commit(),
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


def digest_of_code(root: Path) -> str:
    """First 12 hex digits of SHA-256 over the files that Simul's roles run and read, packages of npm excepted."""
    digest = hashlib.sha256()
    for package in ("common", "env_worker", "inference_server", "launch", "learner"):
        for folder, folders, names in os.walk(root / package):
            folders[:] = sorted(set(folders) - set(NO_CODE))
            for file in sorted(Path(folder, name) for name in names if name.endswith(CODE_SUFFIXES)):
                digest.update(str(file.relative_to(root)).encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:12]
