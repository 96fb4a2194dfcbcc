"""The run: every layer once, then every layer again, so that a slow minute of the machine hits all alike."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.pokemon_layers.arguments import add_arguments, guarded, prepare, repeats_of, say
from benchmarks.pokemon_layers.driven import TITLES, Driven
from benchmarks.pokemon_layers.poke_env import PokeEnvAlone
from benchmarks.pokemon_layers.promises import verdicts
from benchmarks.pokemon_layers.report import as_json, learning_lines, markdown, table, transport_line, write_json
from benchmarks.pokemon_layers.samples import Sample
from benchmarks.pokemon_layers.serving import Serving
from benchmarks.pokemon_layers.setting import Layer, Setting
from benchmarks.pokemon_layers.simulator import SimulatorAlone
from benchmarks.pokemon_layers.training import Training

NAMES = (
    "simulator", "simulator_accelerated", "ipc", "parsing", "encoding_bare", "encoding", "host_encoding_bare",
    "host_encoding", "websocket", "inference", "learning", "learning_python", "poke_env",
)  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 0: every promise that was judged is kept; 1: not, or a layer failed; 2: bad arguments; 130: Ctrl-C."""
    options = _parser().parse_args(arguments)
    try:
        wanted = _wanted(options.layers)
    except ValueError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return guarded(lambda temporary: _run(options, wanted, temporary))


def _run(options: argparse.Namespace, wanted: list[str], temporary: Path) -> int:
    setting, facts = prepare(options, temporary)
    repeats = repeats_of(options)
    say(f"{len(wanted)} layers, {repeats} x {setting.seconds:g} s each, {setting.config.pokemon.format}, interleaved")
    layers = [layer for layer in _layers(setting) if layer.name in wanted]
    samples = _measure(layers, repeats)
    found = verdicts(samples)
    titles = {layer.name: layer.title for layer in layers}
    say("\n" + table(titles, samples))
    for line in filter(None, (learning_lines(samples), transport_line(samples), *map(str, found))):
        say(line)
    if options.markdown:
        say("\n" + markdown(titles, samples, found))
    if options.json:
        write_json(options.json, as_json(samples, found, facts))
    return 0 if all(verdict.kept for verdict in found) else 1


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
        Training(setting),
        Training(setting, encoder="python"),
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
    add_arguments(parser, repeats=3)
    return parser
