"""`make bench-pokemon`: what each layer costs. Repeats interleave the layers, so that a slow minute affects all."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.harness.cores import claim_cores
from benchmarks.harness.processes import MeasurementFailed
from benchmarks.harness.report import conditions, write_json
from benchmarks.pokemon_layers.driven import TITLES, Driven
from benchmarks.pokemon_layers.layer import Layer, Sample, Setting
from benchmarks.pokemon_layers.poke_env import PokeEnvAlone
from benchmarks.pokemon_layers.promises import promises
from benchmarks.pokemon_layers.report import as_json, learning_lines, markdown, table, transport_line
from benchmarks.pokemon_layers.serving import Serving
from benchmarks.pokemon_layers.simulator import SimulatorAlone
from benchmarks.pokemon_layers.training import ONE_PASS, Training
from simul.common.config.loader import load_config
from simul.common.errors import SimulError
from simul.common.runtime.installation import ROOT
from simul.env_worker.games.pokemon.install.node import find_node

NAMES = (
    "simulator", "simulator_accelerated", "ipc", "encoding_bare", "encoding", "websocket", "inference", "learning",
    "shipped", "poke_env",
)  # fmt: skip
PURE_SELF_PLAY = ("opponents=self:1",)
REPEATS = 5


def say(line: str) -> None:
    """A line of progress or result."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 0: every promise that was judged is kept; 1: not, or a layer failed; 2: bad arguments."""
    options = _parser().parse_args(arguments)
    try:
        wanted = _wanted(options.layers)
    except ValueError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    temporary = Path(tempfile.mkdtemp(prefix="simul-bench-"))
    try:
        return _run(options, wanted, temporary)
    except (MeasurementFailed, SimulError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _run(options: argparse.Namespace, wanted: list[str], temporary: Path) -> int:
    setting, facts = _prepare(options, temporary)
    repeats = options.repeats or (1 if options.quick else REPEATS)
    say(f"{len(wanted)} layers, {repeats} x {setting.seconds:g} s each, {setting.config.pokemon.format}, interleaved")
    layers = [layer for layer in _layers(setting) if layer.name in wanted]
    samples = _measure(layers, repeats)
    found = promises(samples)
    titles = {layer.name: layer.title for layer in layers}
    say("\n" + table(titles, samples))
    for line in filter(None, (learning_lines(samples), transport_line(samples), *map(str, found))):
        say(line)
    if options.markdown:
        say("\n" + markdown(titles, samples, found))
    if options.json:
        write_json(options.json, as_json(samples, found, facts))
    return 0 if all(promise.kept for promise in found) else 1


def _prepare(options: argparse.Namespace, temporary: Path) -> tuple[Setting, dict[str, Any]]:
    """The setting, and the conditions that belong beside every figure, which are printed."""
    node = find_node()
    cores_present = os.cpu_count() or 1
    cores = claim_cores()
    overrides = (*options.overrides, *PURE_SELF_PLAY)
    setting = Setting(
        node=node.path, cores=cores, config_path=options.config, overrides=overrides,
        config=load_config(options.config, overrides), quick=options.quick, temporary=temporary, say=say,
        seconds=options.seconds or (4.0 if options.quick else 15.0), warm_up_sec=2.0 if options.quick else 4.0,
    )  # fmt: skip
    facts = conditions(node=node.version, cores_used=len(cores), cores_present=cores_present)
    say("  ".join(f"{key}: {value}" for key, value in facts.items()))
    return setting, facts


def _measure(layers: Sequence[Layer], repeats: int) -> dict[str, list[Sample]]:
    began = time.monotonic()
    samples: dict[str, list[Sample]] = {layer.name: [] for layer in layers}
    for repeat in range(repeats):
        for layer in layers:
            sample = layer.measure(repeat)
            samples[layer.name].append(sample)
            say(
                f"[{time.monotonic() - began:4.0f} s] {repeat + 1}/{repeats} {layer.title}: "
                f"{sample.decisions_per_sec:,.0f} decisions/s, {sample.us_per_decision:,.0f} us of one core each"
            )
    return samples


def _layers(setting: Setting) -> list[Layer]:
    return [
        SimulatorAlone(setting, accelerate=False),
        SimulatorAlone(setting, accelerate=True),
        *(Driven(setting, name) for name in TITLES),
        Serving(setting),
        Training(setting, "learning", ONE_PASS),
        Training(setting),
        PokeEnvAlone(setting),
    ]


def _wanted(listed: str) -> list[str]:
    names = [name.strip() for name in listed.split(",") if name.strip()] or list(NAMES)
    unknown = [name for name in names if name not in NAMES]
    if unknown:
        raise ValueError(f"There is no layer {', '.join(unknown)}; expected some of {', '.join(NAMES)}.")
    return names


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="make bench-pokemon", description=__doc__)
    parser.add_argument("--json", type=Path, metavar="F", help="write {layer: {decisions_per_sec, ...}} to F")
    parser.add_argument("--markdown", action="store_true", help="the tables once more, as RESULTS.md has them")
    parser.add_argument("--layers", default="", metavar="A,B", help=f"some of {', '.join(NAMES)}")
    parser.add_argument("--quick", action="store_true", help="short windows, one repeat: whether it works, no figures")
    parser.add_argument("--seconds", type=float, metavar="S", help="length of a window (15)")
    parser.add_argument("--repeats", type=int, metavar="N", help=f"windows a layer ({REPEATS})")
    parser.add_argument("--config", type=Path, default=ROOT / "configs" / "pokemon.yaml", metavar="YAML")
    parser.add_argument("--set", dest="overrides", action="append", default=[], metavar="K=V", help="as `simul up`")
    return parser
