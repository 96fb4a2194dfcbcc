"""`make test-races`: runs test files again and again beside endless loops, and lists what ever failed.

A test that passes by luck fails once in many runs on busy cores. Each run of a file is a line of RECORD, so that a
command that was broken off goes on where it stopped. Runs of a file count until it changes; `--fresh` forgets all.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from pathlib import Path

import msgspec

from simul.common.runtime.installation import ROOT

RECORD = ROOT / "runs" / "test-races.jsonl"
FOLDERS = ("tests/integration", "tests/chaos")  # tests/unit has no processes, and no clocks to win against
LIMIT_SEC = 1800.0  # of one run of one file
NO_TESTS = 5  # exit code of pytest: all tests of the file are slow
OVERDUE = -1  # exit code of a run that was ended after LIMIT_SEC
SHOWN = 400  # characters of the output of a run that failed without naming a test
_FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)


class Run(msgspec.Struct):
    """One run of one file. `content`: hash of the file; `failed`: tests; `output`: its last words where it failed."""

    file: str
    content: str
    exit_code: int
    seconds: float
    failed: list[str]
    output: str


def main(arguments: Sequence[str] | None = None, record: Path = RECORD) -> int:
    """Exit code 0: nothing failed in the counted runs; 1: something did; 2: a file is missing."""
    options = _parser().parse_args(arguments)
    files = options.files or sorted(str(path.relative_to(ROOT)) for f in FOLDERS for path in (ROOT / f).rglob("test_*"))
    if missing := [file for file in files if not (ROOT / file).is_file()]:
        sys.stderr.write(f"test-races: no such file: {', '.join(missing)}. Expected test files, as seen from {ROOT}.\n")
        return 2
    if options.fresh:
        record.unlink(missing_ok=True)
    if not options.list:
        with endless_loops(options.loops):
            repeat(files, options.times, options.jobs, record)
    return 1 if report(counted(files, record)) else 0


def repeat(files: Sequence[str], times: int, jobs: int, record: Path) -> None:
    """Run each file until it has `times` counted runs; every file once before any file again."""
    done = Counter(run.file for run in counted(files, record))
    queue = [file for turn in range(times) for file in files if done[file] <= turn]
    record.parent.mkdir(exist_ok=True)
    with ThreadPoolExecutor(jobs) as pool:
        try:
            for number, ended in enumerate(as_completed([pool.submit(_run, file) for file in queue]), 1):
                run = ended.result()
                with record.open("ab") as lines:
                    lines.write(msgspec.json.encode(run) + b"\n")
                said = f"exit code {run.exit_code} {' '.join(run.failed)}" if run.exit_code else "passed"
                sys.stdout.write(f"[{number}/{len(queue)}] {run.file} {run.seconds:.0f} s: {said}\n")
                sys.stdout.flush()
        except BaseException:
            pool.shutdown(cancel_futures=True)  # after those that run
            raise


def report(runs: Sequence[Run]) -> list[str]:
    """Print how often each test failed; returns a line for each. A file that named no test stands for itself."""
    times, failures = Counter(run.file for run in runs), Counter[tuple[str, str]]()
    for run in runs:
        failures.update((run.file, test) for test in (run.failed or [run.file]) if run.exit_code)
    lines = [f"{count} of {times[file]} runs failed: {test}" for (file, test), count in failures.most_common()]
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    for run in runs:
        if run.exit_code and not run.failed:
            sys.stdout.write(f"{run.file}: exit code {run.exit_code}: {run.output[-SHOWN:]}\n")
    few = min(times.values(), default=0)
    sys.stdout.write(f"{len(runs)} runs of {len(times)} files, each at least {few} times; {len(lines)} tests failed\n")
    return lines


def counted(files: Sequence[str], record: Path) -> list[Run]:
    """The recorded runs of these files as they are now."""
    if not record.exists():
        return []
    contents = {file: _content(file) for file in files}
    runs = [msgspec.json.decode(line, type=Run) for line in record.read_bytes().splitlines()]
    return [run for run in runs if contents.get(run.file) == run.content]


@contextmanager
def endless_loops(count: int) -> Iterator[None]:
    """So many processes that take all the processor time they get, for the time of the block or of this process."""
    program = "import os\nparent = os.getppid()\nwhile os.getppid() == parent: pass"
    loops = [subprocess.Popen([sys.executable, "-c", program]) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def _run(file: str) -> Run:
    content, begin = _content(file), time.monotonic()
    with tempfile.TemporaryFile("w+") as output:
        line = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not slow", file]
        process = subprocess.Popen(line, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)
        try:
            code = process.wait(LIMIT_SEC)
        except subprocess.TimeoutExpired:
            code = OVERDUE
        finally:
            process.kill()
            process.wait()
        output.seek(0)
        said = output.read()
    code = 0 if code == NO_TESTS else code
    return Run(file, content, code, time.monotonic() - begin, _FAILED.findall(said), said[-20_000:] if code else "")


def _content(file: str) -> str:
    return hashlib.sha256((ROOT / file).read_bytes()).hexdigest()[:16]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="make test-races", description=__doc__)
    parser.add_argument("files", nargs="*", metavar="FILE", help=f"default: all below {' and '.join(FOLDERS)}")
    parser.add_argument("--times", type=int, default=10, metavar="N", help="runs of each file (default: %(default)s)")
    parser.add_argument("--loops", type=int, default=2, metavar="N", help="endless loops (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="files at once (default: %(default)s)")
    parser.add_argument("--list", action="store_true", help="run nothing: only what failed before")
    parser.add_argument("--fresh", action="store_true", help="forget the runs of before")
    return parser


if __name__ == "__main__":
    sys.exit(main())
