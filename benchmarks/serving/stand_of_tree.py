"""The stand of whichever tree PYTHONPATH names, driven by lines of JSON; started as a script by `bench_before.py`.

Says `ready`; each line {"precision", "clients", "envs", "record", "seconds"} is answered with a line of what was found.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from benchmarks.serving.cores import two_cores
from benchmarks.serving.stand import Cell, Stand


def main() -> None:
    """See the module's docstring."""
    precision = sys.argv[1]
    with tempfile.TemporaryDirectory(prefix="simul-bench-") as folder:
        stand = Stand(Path(folder) / "a", precision, two_cores(), max_sessions=1024)
        try:
            sys.stdout.write("ready\n")
            sys.stdout.flush()
            for line in sys.stdin:
                order = json.loads(line)
                seconds = order.pop("seconds")
                found = stand.measure(Cell(precision, **order), seconds)
                sys.stdout.write(
                    json.dumps({"cpu_us": found.cpu_us, "rate": found.actions_per_sec, "p50_us": found.p50_us}) + "\n"
                )
                sys.stdout.flush()
        finally:
            stand.close()


if __name__ == "__main__":
    main()
