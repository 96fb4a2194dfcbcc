"""Measures the speed of an interpreter. `setup.sh` runs it with every Python that it finds and takes the fastest.

An env worker is plain Python, and a build without profile-guided optimisation (pyenv's default) is a third slower.
Prints milliseconds; exits with 1 where Simul cannot run on it, with 3 where only the venv module is missing.
"""

import sys
import time


def main() -> int:
    """Print the time of a loop like those that parse a battle."""
    if sys.version_info < (3, 11):  # noqa: UP036 - this script is what checks it
        return 1
    try:
        import ensurepip  # noqa: F401
        import venv  # noqa: F401
    except ImportError:
        return 3
    best = min(_loop() for _ in range(5))
    sys.stdout.write(f"{best * 1000:.0f}\n")
    return 0


def _loop() -> float:
    begin = time.process_time()
    seen: dict[int, tuple[int, str]] = {}
    for i in range(100_000):
        seen[i % 1000] = (i, "move")
        if seen[i % 1000][1].startswith("m"):
            seen[i % 997] = (i + 1, "switch")
    return time.process_time() - begin


if __name__ == "__main__":
    sys.exit(main())
