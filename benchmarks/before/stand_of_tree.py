"""The stand of the tree that PYTHONPATH names, driven by lines of JSON; `subjects.py` starts it as a script.

Prints `ready`; answers each line {"clients", "envs", "record", "seconds"} with a line of what was found. The tree may
be older than this script: everything is imported from it, under the module names that it has.
"""

from __future__ import annotations

import importlib
import json
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

PRECISION = sys.argv[1] if len(sys.argv) > 1 else "float32"


def modules_of_tree() -> tuple[Any, Any]:
    """(what has `two_cores`, what has `Stand` and `Cell`) of the tree.

    Trees without `benchmarks.harness` hold both in `benchmarks.serving`, those from before the import name `simul`
    (commit 1cfcd69) among them; their stand starts their own server.
    """
    cores = "benchmarks.harness.cores" if find_spec("benchmarks.harness") else "benchmarks.serving.cores"
    modules = importlib.import_module(cores), importlib.import_module("benchmarks.serving.stand")
    for module in modules:
        if not Path(module.__file__ or "").resolve().is_relative_to(Path.cwd().resolve()):
            raise RuntimeError(f"{module.__name__} is not the one of the tree in the working directory")
    return modules


def main() -> None:
    """See the module's docstring."""
    cores, serving = modules_of_tree()
    with tempfile.TemporaryDirectory(prefix="simul-bench-") as folder:
        stand = serving.Stand(Path(folder) / "a", PRECISION, cores.two_cores(), max_sessions=1024)
        try:
            sys.stdout.write("ready\n")
            sys.stdout.flush()
            for line in sys.stdin:
                order = json.loads(line)
                seconds = order.pop("seconds")
                found = stand.measure(serving.Cell(PRECISION, **order), seconds)
                figures = {"cpu_us": found.cpu_us, "rate": found.actions_per_sec, "p50_us": found.p50_us}
                sys.stdout.write(json.dumps(figures) + "\n")
                sys.stdout.flush()
        finally:
            stand.close()


if __name__ == "__main__":
    main()
