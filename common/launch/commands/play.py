"""`simul play`: the agent on a Showdown server, against people and other programs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from simul.common.config.run_directory import RunDir
from simul.common.config.schema import Config
from simul.common.launch.commands.remote import choose_run
from simul.common.launch.evaluation.checkpoint import config_of, newest_checkpoint
from simul.common.launch.supervisor.inference_only import frozen_run
from simul.common.launch.supervisor.processes import run_in_foreground
from simul.common.launch.supervisor.run_lock import living_owner
from simul.common.protocol.errors import ConfigError

MODULE = "simul.env_worker.games.pokemon.showdown.play"


def play(
    checkpoint: Path | None, run_dir: Path | None, arguments: Sequence[str], *, overrides: Sequence[str] = ()
) -> int:
    """Play until done; returns the exit code.

    Args:
        checkpoint: is served for as long as play lasts; None: the server of `run_dir` is asked.
        run_dir: default: the run that is active.
        arguments: of the player itself, see `simul.env_worker.games.pokemon.showdown.play`.

    Raises:
        ConfigError, RoleDied: with a sentence.
    """
    if checkpoint is None:
        served: AbstractContextManager[RunDir] = nullcontext(_running(run_dir))
    else:
        folder = newest_checkpoint(checkpoint)
        served = frozen_run(folder, _pokemon(config_of(folder, overrides), folder))
    with served as where:
        return run_in_foreground(MODULE, ["--run-dir", str(where.root), f"--parent={os.getpid()}", *arguments])


def _running(root: Path | None) -> RunDir:
    run_dir = choose_run(root, active_only=True)
    if living_owner(run_dir) is None:
        raise ConfigError(f"No run is active in {run_dir.root}. Start it with `simul up`, or name a --checkpoint.")
    return run_dir


def _pokemon(config: Config, folder: Path) -> Config:
    if config.game != "pokemon":
        raise ConfigError(f"The checkpoint {folder} plays {config.game}; `simul play` is for Pokémon.")
    return config
