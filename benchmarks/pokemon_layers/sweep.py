"""Battles in flight, processes, write coalescing, reused teams: all of `make up` and its hosts alone at each setting.

The defaults of `configs/pokemon.yaml` follow from this table.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import orjson

from benchmarks.pokemon_layers.arguments import add_arguments, guarded, prepare, repeats_of, say
from benchmarks.pokemon_layers.driven import Driven
from benchmarks.pokemon_layers.samples import Sample, summarise
from benchmarks.pokemon_layers.setting import Layer, Setting
from benchmarks.pokemon_layers.training import Training
from simul.common.config.loader import load_config

ENVS = (8, 16, 32, 64, 128)
WORKERS = (1, 2, 3)
REPLIES_PER_WRITE = (1, 8, 32)
TEAM_USES = (1, 16)
BOTH = ("hosts", "make_up")


class Point(NamedTuple):
    """One setting; None: as configured."""

    envs: int | None = None
    workers: int | None = None
    replies_per_write: int | None = None
    team_uses: int | None = None

    @property
    def overrides(self) -> tuple[str, ...]:
        """As `--set` takes them."""
        keys = ("workers.envs", "workers.count", "pokemon.replies_per_write", "pokemon.team_uses")
        return tuple(f"{key}={value}" for key, value in zip(keys, self) if value is not None)

    def __str__(self) -> str:
        return ", ".join(self.overrides) or "as configured"


Found = dict[tuple[Point, str], list[Sample]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 0: measured; 1: a layer failed; 130: Ctrl-C. Nothing is promised, so nothing is judged."""
    parser = argparse.ArgumentParser(prog="make bench-settings", description=__doc__)
    parser.add_argument("--json", type=Path, metavar="F", help="write [{setting, of, decisions_per_sec, ...}] to F")
    parser.add_argument("--only", choices=BOTH, help="leave out the other half")
    parser.add_argument("--envs", type=int, nargs="+", default=list(ENVS), metavar="N")
    parser.add_argument("--workers", type=int, nargs="+", default=list(WORKERS), metavar="N")
    add_arguments(parser, repeats=1)
    options = parser.parse_args(arguments)
    return guarded(lambda temporary: _run(options, temporary))


def points(envs: Sequence[int], workers: Sequence[int]) -> list[Point]:
    """Every number of battles with every number of processes; what else there is at the configured ones."""
    grid = [Point(envs=n, workers=count) for count in workers for n in envs]
    writes = [Point(replies_per_write=n) for n in REPLIES_PER_WRITE]
    return [Point(), *grid, *writes, *(Point(team_uses=n) for n in TEAM_USES)]


def markdown(found: Mapping[tuple[Point, str], Sequence[Sample]]) -> str:
    """One row a setting, for RESULTS.md: medians."""
    rows = [
        "| setting | make up, decisions/s | us of one core | mean batch | hosts alone, decisions/s | us of one core |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for point in dict.fromkeys(point for point, _ in found):
        hosts, whole = (summarise(found[point, half]) if found.get((point, half)) else {} for half in BOTH)
        cells = [
            _shown(whole.get("decisions_per_sec")), _shown(whole.get("us_per_decision")),
            _shown(whole.get("mean_batch")), _shown(hosts.get("decisions_per_sec")),
            _shown(hosts.get("us_per_decision")),
        ]  # fmt: skip
        rows.append(f"| {point} | {' | '.join(cells)} |")
    return "\n".join(rows)


def _run(options: argparse.Namespace, temporary: Path) -> int:
    setting, facts = prepare(options, temporary)
    every = points(options.envs, options.workers)
    halves = [options.only] if options.only else list(BOTH)
    found: Found = {(point, half): [] for point in every for half in halves}
    began = time.monotonic()
    for repeat in range(repeats_of(options)):
        for (point, half), samples in found.items():
            sample = _layer(setting, point, half).measure(repeat)
            samples.append(sample)
            say(
                f"[{time.monotonic() - began:4.0f} s] {point}, {half}: {sample.decisions_per_sec:,.0f} decisions/s, "
                f"{sample.us_per_decision:,.0f} us of one core, others {sample.others_share:.0%}"
            )
    say("\n" + markdown(found))
    if options.json:
        listed = [
            {"setting": str(point), "of": half, **summarise(samples), "conditions": facts}
            for (point, half), samples in found.items()
        ]
        options.json.write_bytes(orjson.dumps(listed, option=orjson.OPT_INDENT_2))
    return 0


def _layer(setting: Setting, point: Point, half: str) -> Layer:
    overrides = (*setting.overrides, *point.overrides)
    config = load_config(setting.config_path, overrides)
    here = replace(setting, overrides=overrides, config=config)
    return Training(here) if half == "make_up" else Driven(here, "host_encoding", processes=config.workers.count)


def _shown(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}"
