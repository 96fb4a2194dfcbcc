"""`make bench-opponents`: what scripted opponents cost a worker, and whether the policy's decisions wait for them.

One worker's source with its simulator host, random actions in the server's place. A decision waits for the processor
time of the poll that brings it: whatever the worker does before it hands the decision out.
"""

from __future__ import annotations

import argparse
import gc
import select
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

sys.path[0] = str(Path(__file__).resolve().parents[1])  # started as a script: import from the checkout

from benchmarks.pokemon_layers.sourced import WAIT_SEC, SourcedBattles  # noqa: E402
from simul.common.config.loader import load_config  # noqa: E402
from simul.common.runtime.installation import ROOT  # noqa: E402
from simul.common.runtime.machine_info import machine  # noqa: E402
from simul.env_worker.__main__ import COLLECTOR_THRESHOLDS  # noqa: E402

MIXES = (
    "self:1",
    "self:0.9,random:0.04,max:0.03,heuristics:0.03",
    "random:0.2,max:0.2,heuristics:0.2,self:0.4",
    "heuristics:1",
    "damage:1",
)
QUANTILES = (0.5, 0.99, 1.0)


class Found(NamedTuple):
    """One window. `us`: of the worker's core, a policy decision; `waits`: us, by QUANTILES."""

    decisions_per_sec: float
    us: float
    waits: tuple[float, ...]


def main() -> int:
    """Exit code 0: nothing is promised."""
    parser = argparse.ArgumentParser(prog="bench_opponents")
    parser.add_argument("--seconds", type=float, default=15.0, help="of each window, after 5 to warm up")
    parser.add_argument("--mixes", nargs="+", default=list(MIXES), metavar="MIX", help="as `--set opponents=` has them")
    options = parser.parse_args()
    rows = []
    for mix in options.mixes:
        found = _measure(mix, min(5.0, options.seconds), options.seconds)
        rows.append((mix, found))
        sys.stderr.write(f"{mix}: {found.decisions_per_sec:,.0f} decisions/s\n")
    conditions = {**machine(), "seconds": options.seconds}
    sys.stdout.write("\n".join([*table(rows), "", ", ".join(f"{k} {v}" for k, v in conditions.items()), ""]))
    return 0


def table(rows: Sequence[tuple[str, Found]]) -> list[str]:
    """Markdown, one row a mix."""
    lines = [
        "| opponents | policy decisions/s | worker's us a policy decision | waits p50 us | p99 | longest |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for mix, found in rows:
        waits = " | ".join(f"{wait:,.0f}" for wait in found.waits)
        lines.append(f"| {mix} | {found.decisions_per_sec:,.0f} | {found.us:,.0f} | {waits} |")
    return lines


def _measure(mix: str, warm_up_sec: float, seconds: float) -> Found:
    config = load_config(ROOT / "configs" / "pokemon.yaml", [f"opponents={mix}"])
    battles = SourcedBattles(config.pokemon, envs=config.workers.envs, seed=1, opponents=config.opponents)
    try:
        _play(battles, warm_up_sec)
        gc.collect()
        gc.freeze()  # and thresholds: as the env worker does
        gc.set_threshold(*COLLECTOR_THRESHOLDS)
        before, cpu, begin = battles.decisions, time.process_time(), time.perf_counter()
        waits = _play(battles, seconds)
        decisions = battles.decisions - before
        cpu, elapsed = time.process_time() - cpu, time.perf_counter() - begin
    finally:
        battles.close()
    waits.sort()
    picked = tuple(1e6 * waits[min(len(waits) - 1, int(share * len(waits)))] for share in QUANTILES)
    return Found(decisions / elapsed, 1e6 * cpu / max(decisions, 1), picked)


def _play(battles: SourcedBattles, seconds: float) -> list[float]:
    """How long each decision waited."""
    waits: list[float] = []
    until = time.perf_counter() + seconds
    while time.perf_counter() < until or not waits:
        begin = time.process_time()
        decisions = battles.poll()
        waited = time.process_time() - begin
        if not decisions:
            select.select(battles.files(), [], [], WAIT_SEC)
            continue
        waits += [waited] * battles.answer(decisions)
    return waits


if __name__ == "__main__":
    sys.exit(main())
