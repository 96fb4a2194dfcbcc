"""The tree of an older revision, in a temporary folder, so that its `simul` runs beside this one's."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from benchmarks.harness.processes import MeasurementFailed
from simul.common.runtime.installation import ROOT

SIMULATOR = "pokemon-showdown"  # the npm package that a tree with Pokémon needs
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


@contextmanager
def worktree(revision: str) -> Iterator[Path]:
    """The tree at `revision`, with this tree's npm packages. Raises MeasurementFailed."""
    with tempfile.TemporaryDirectory(prefix="simul-before-") as folder:
        tree = Path(folder) / "tree"
        added = _git("add", "--quiet", "--detach", str(tree), revision)
        if added.returncode:
            raise MeasurementFailed(f"There is no tree of {revision!r}: {added.stderr.strip()}")
        try:
            _link_packages(tree)
            yield tree
        finally:
            _git("remove", "--force", str(tree))


def command(tree: Path) -> list[str]:
    """The `simul` of a tree, whatever module it is in there. Its working directory is the tree."""
    script = tomllib.loads((tree / "pyproject.toml").read_text())["project"]["scripts"]["simul"]
    module, _, function = script.partition(":")
    return [sys.executable, "-P", "-c", f"import sys; from {module} import {function}; sys.exit({function}())"]


def environment(tree: Path, *, one_thread: bool = False) -> Mapping[str, str]:
    """What makes Python import the tree's own modules."""
    return {"PYTHONPATH": str(tree), **(dict.fromkeys(THREADS, "1") if one_thread else {})}


def _git(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["git", "worktree", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)


def _link_packages(tree: Path) -> None:
    """Both trees use the npm packages of this one, which must be those of the older tree's lock file."""
    here, there = _simulator_lock(ROOT), _simulator_lock(tree)
    if here is None or there is None:
        return
    if here.read_bytes() != there.read_bytes():
        raise MeasurementFailed(f"{here.relative_to(ROOT)} is another one in the older tree: it needs other packages.")
    (there.parent / "node_modules").symlink_to(here.parent / "node_modules")


def _simulator_lock(tree: Path) -> Path | None:
    listed = subprocess.run(
        ["git", "ls-files", "*package-lock.json"], cwd=tree, capture_output=True, text=True, check=True
    )
    for name in listed.stdout.splitlines():
        if SIMULATOR in (tree / name).with_name("package.json").read_text():
            return tree / name
    return None
