"""`make bench-serving`: what the server costs beside the bare forward. Rounds interleave all windows."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from statistics import median

from benchmarks.harness.cores import two_cores
from benchmarks.harness.processes import Child
from benchmarks.harness.promises import Promise
from benchmarks.harness.report import conditions, in_one_line, markdown_table, write_json
from benchmarks.serving.policy import FREE, PRECISIONS, STATE_ROW_BYTES, UNROLL_ROW_BYTES
from benchmarks.serving.promises import Repeat, asides, lines, stages
from benchmarks.serving.stand import Cell, Found, Stand

ENVS = (2, 8, 32, 128, 512)  # of one client
SESSIONS = 4096
LEAST_SHOWN_US = 0.05
OTHER = {"fill": "greedy", "greedy": "fill"}


def main() -> int:
    """Exit code 0 when every promise is kept."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0, help="length of one window")
    parser.add_argument("--precision", choices=PRECISIONS, action="append", help="default: both")
    parser.add_argument("--batching", choices=("fill", "greedy"), default="fill")
    parser.add_argument(
        "--free-forward",
        action="store_true",
        help="4 clients x 128 envs, a network that costs nothing",
    )
    parser.add_argument("--json", type=Path, metavar="F", help="write what was found to F")
    options = parser.parse_args()
    if options.free_forward:
        return _free_forward(options.repeats, options.seconds)
    verdicts: list[Promise] = []
    report: dict[str, object] = {"conditions": conditions(repeats=options.repeats, seconds=options.seconds)}
    for precision in options.precision or PRECISIONS:
        repeats, memory = _measure(precision, options.repeats, options.seconds, options.batching)
        found = lines(precision, repeats, ENVS)
        _print(precision, options.batching, repeats, found, memory)
        verdicts += found
        report[precision] = {
            "repeats": [asdict(repeat) for repeat in repeats],
            "memory": memory,
            "lines": [line.as_dict() for line in found],
        }
    if options.json:
        write_json(options.json, report)
    return 0 if all(line.kept for line in verdicts) else 1


def _free_forward(count: int, seconds: float) -> int:
    """The server's processor time a row without its forward, with recording and without. Exit code 0."""
    windows = {"plain": Cell(envs=128), "recorded": Cell(envs=128, record=True)}
    found: dict[str, list[Found]] = {name: [] for name in windows}
    with tempfile.TemporaryDirectory(prefix="simul-bench-") as folder:
        stand = Stand(Path(folder), "float32", two_cores(), network=FREE, max_sessions=SESSIONS)
        try:
            for number in range(count):
                sys.stderr.write(f"round {number + 1} of {count}\n")
                for name, cell in windows.items():
                    found[name].append(stand.measure(cell, seconds))
        finally:
            stand.close()
    heads = ("window", "us a row", "rows a batch", "rows/s", "us by stage, waiting included")
    rows = []
    for name, each in found.items():
        stages_us = {stage: median(one.stage_us[stage] for one in each) for stage in each[0].stage_us}
        by_stage = ", ".join(f"{stage} {us:.2f}" for stage, us in stages_us.items() if us >= LEAST_SHOWN_US)
        figures = ("cpu_us", "mean_batch", "actions_per_sec")
        us, batch, rate = (median(getattr(one, figure) for one in each) for figure in figures)
        rows.append((name, f"{us:.2f}", f"{batch:.0f}", f"{rate:,.0f}", by_stage))
    print(markdown_table(heads, rows))
    print(f"\n{in_one_line(conditions(repeats=count, seconds=seconds))}")
    return 0


def _measure(precision: str, count: int, seconds: float, batching: str) -> tuple[list[Repeat], dict[str, float]]:
    cores = two_cores()
    with tempfile.TemporaryDirectory(prefix="simul-bench-") as folder:
        stand = Stand(Path(folder) / "a", precision, cores, batching=batching, max_sessions=SESSIONS)
        other = Stand(Path(folder) / "b", precision, cores, batching=OTHER[batching], max_sessions=64)
        bare = Child("benchmarks.serving.bare", [], Path(folder) / "bare.log", core=cores[0])
        try:
            bare.wait_ready()
            repeats = []
            for number in range(count):
                sys.stderr.write(f"{precision}: round {number + 1} of {count}\n")
                repeats.append(_round(stand, other, bare, precision, seconds))
            return repeats, _memory(stand, precision, seconds)
        finally:
            bare.close()
            other.close()
            stand.close()


def _round(stand: Stand, other: Stand, bare: Child, precision: str, seconds: float) -> Repeat:
    """One round of all windows. `other`: a server with the other batching."""
    cells = {
        "plain": Cell(precision),
        "recorded": Cell(precision, record=True),
        "swapped": Cell(precision, swaps_per_sec=5.0, trips=True),
        "3 past": Cell(precision, past=3),
        "2x8": Cell(precision, clients=2, envs=8),
        "1x1": Cell(precision, clients=1, envs=1),
        **{f"envs{envs}": Cell(precision, clients=1, envs=envs) for envs in ENVS},
    }
    found = {name: stand.measure(cell, seconds) for name, cell in cells.items()}
    found["2x8 other"] = other.measure(cells["2x8"], seconds)
    forward = {batch: bare_forward(stand, bare, precision, batch, seconds / 2) for batch in (1, 128)}
    batch = max(1, round(found["plain"].mean_batch))
    wall, cpu = bare_forward(stand, bare, precision, batch, seconds / 2)
    return Repeat(found, forward, {"plain": (wall / batch, cpu / batch)})


def bare_forward(stand: Stand, bare: Child, precision: str, batch: int, seconds: float) -> tuple[float, float]:
    """Microseconds of a bare forward on the server's core, while clients pack messages on the other one."""
    cell = Cell(precision)
    load = [stand.client(cell, i, dry=True) for i in range(cell.clients)]
    try:
        for client in load:
            client.wait_ready()
        begin = time.monotonic()
        for client in load:
            client.tell(begin=begin, end=begin + seconds)
        bare.tell(precision=precision, batch=batch, end=begin + seconds)
        result = bare.result()
    finally:
        for client in load:
            client.close()
    return result["forward_us"], result["cpu_us"]


def _memory(stand: Stand, precision: str, seconds: float) -> dict[str, float]:
    """KiB of resident memory that each of 4,096 sessions adds, without and with recording, and in a second window.

    Beside each: the size of its rows in the tables. The rest is buffers of messages and batches of this size.
    """
    before = stand.measure(Cell(precision, clients=1, envs=1), seconds).rss_bytes
    plain = stand.measure(Cell(precision, envs=SESSIONS // 4), 2 * seconds).rss_bytes
    recorded = [stand.measure(Cell(precision, envs=SESSIONS // 4, record=True), 2 * seconds) for _ in range(2)]
    per_session = 1 / 1024 / SESSIONS
    return {
        "kib_a_session": (plain - before) * per_session,
        "kib_of_state_rows": STATE_ROW_BYTES / 1024,
        "kib_more_where_recorded": (recorded[0].rss_bytes - plain) * per_session,
        "kib_of_unroll_row": UNROLL_ROW_BYTES / 1024,
        "kib_more_where_recorded_later": (recorded[1].rss_bytes - plain) * per_session,
        "actions_per_sec_recorded": recorded[1].actions_per_sec,
    }


def _print(
    precision: str, batching: str, repeats: list[Repeat], found: list[Promise], memory: dict[str, float]
) -> None:  # fmt: skip
    def middle(window: str, name: str) -> float:
        return median(getattr(r.found[window], name) for r in repeats)

    out = [f"\n{precision}: window, actions/s, processor us/action, p50 us, p99 us, rows/batch"]
    names = [name for name in Found.__dataclass_fields__ if name not in ("stage_us", "rss_bytes", "stall")]
    out += ["  ".join([f"{w:10s}", *(f"{middle(w, name):10.1f}" for name in names)]) for w in repeats[0].found]
    out += [f"4 x 32, us/action by stage: {stages(repeats, 'plain')}"]
    out += [f"recorded:                   {stages(repeats, 'recorded')}"]
    out += [f"{SESSIONS} sessions: " + ", ".join(f"{name} {value:.1f}" for name, value in memory.items())]
    out += asides(repeats, OTHER[batching])
    out += [str(line) for line in found]
    sys.stdout.write("\n".join(out) + "\n")
    sys.stdout.flush()
