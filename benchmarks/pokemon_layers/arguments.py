"""What the commands share: their arguments, the setting that follows, and a clean end whatever happens."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.pokemon_layers.children import LayerFailed, interruptible
from benchmarks.pokemon_layers.conditions import conditions
from benchmarks.pokemon_layers.cores import claim_cores
from benchmarks.pokemon_layers.setting import Setting
from simul.common.config.loader import load_config
from simul.common.protocol.errors import SimulError
from simul.common.runtime.installation import ROOT
from simul.env_worker.games.pokemon.simulator.node import find_node

PURE_SELF_PLAY = ("opponents=self:1",)


def say(line: str) -> None:
    """A line of progress or result."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def add_arguments(parser: argparse.ArgumentParser, repeats: int) -> None:
    """Those of every command. `repeats`: where none are asked for."""
    parser.add_argument("--quick", action="store_true", help="short windows, one repeat: whether it works, no figures")
    parser.add_argument("--seconds", type=float, metavar="S", help="length of a window (15)")
    parser.add_argument("--repeats", type=int, metavar="N", help=f"windows a layer ({repeats})")
    parser.add_argument("--config", type=Path, default=ROOT / "configs" / "pokemon.yaml", metavar="YAML")
    parser.add_argument("--set", dest="overrides", action="append", default=[], metavar="K=V", help="as `simul up`")
    parser.set_defaults(usual_repeats=repeats)


def repeats_of(options: argparse.Namespace) -> int:
    """How often everything is measured."""
    wanted: int | None = options.repeats
    return wanted or (1 if options.quick else int(options.usual_repeats))


def prepare(options: argparse.Namespace, temporary: Path) -> tuple[Setting, dict[str, Any]]:
    """The setting, and the conditions that belong beside every figure; they are told."""
    node = find_node()
    cores_present = os.cpu_count() or 1
    cores = claim_cores()
    overrides = (*options.overrides, *PURE_SELF_PLAY)
    setting = Setting(
        node=node.path, cores=cores, config_path=options.config, overrides=overrides,
        config=load_config(options.config, overrides), quick=options.quick, temporary=temporary, say=say,
        seconds=options.seconds or (4.0 if options.quick else 15.0), warm_up_sec=2.0 if options.quick else 4.0,
    )  # fmt: skip
    facts = conditions(node, cores, cores_present)
    say("  ".join(f"{key}: {value}" for key, value in facts.items()))
    return setting, facts


def guarded(run: Callable[[Path], int]) -> int:
    """Call `run` with a folder that is removed afterwards. Exit code 1 where a layer fails, 130 after Ctrl-C."""
    temporary = Path(tempfile.mkdtemp(prefix="simul-bench-"))
    try:
        return interruptible(lambda: run(temporary))
    except (LayerFailed, SimulError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
