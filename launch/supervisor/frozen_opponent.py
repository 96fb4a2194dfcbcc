"""The frozen opponent of a run, `opponents.checkpoint`: copied into the run directory before the roles start.

The copy makes the run independent of where it came from: a server that restarts, and a run that resumes, serve the
same weights, also where the checkpoint has been removed, or a run directory has a newer one by then.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from simul.common.checkpoints.folders import checkpoint_trust
from simul.common.checkpoints.meta import META_FILE, WEIGHTS_FILE, CheckpointMeta, decode_meta
from simul.common.checkpoints.zoo import zoo_folder
from simul.common.config.game_description import FROZEN
from simul.common.config.schema import Config
from simul.common.config.trust import MarkedValue, Trust, check_trust, network_values
from simul.common.errors import ConfigError
from simul.common.protocol.specs import GameSpec
from simul.common.role.run_directory import RunDir
from simul.common.runtime.private_files import read_regular
from simul.launch.supervisor.checkpoint_files import copy_checkpoint, find_fault, newest_checkpoint
from simul.launch.supervisor.store_process import local_checkpoints

ORIGIN = "origin"  # a file beside the weights: the value of `opponents.checkpoint` that they were copied from


def copy_frozen_opponent(
    config: Config, run_dir: RunDir, spec: GameSpec, trust: Trust, say: Callable[[str], object],
    stopped: Callable[[], bool],
) -> frozenset[MarkedValue]:  # fmt: skip
    """Copy the frozen opponent into the run, unless it is there; returns what it names as its network.

    `trust`: what the command line trusts. What is returned is trusted.

    Raises:
        ConfigError: there is none, it is damaged, of another game or encoder, or names a network that is not trusted.
        OSError: it cannot be written.
        RoleDied, StartStopped: while it was fetched from a store.
    """
    named = config.opponents.checkpoint
    if not config.opponents.frozen:
        return frozenset()
    target = run_dir.checkpoints / FROZEN
    if _origin(target) == named and not find_fault(target):
        meta = _checked(target, named, spec, trust)
        say(f"the frozen opponent is version {meta.version} of {named}, as when the run began with it")
        return network_values(meta.network)
    with _as_of_the_setting():
        place = named if "://" in named else zoo_folder(named) or Path(named)
    with local_checkpoints([place], say, stopped) as (path,):
        with _as_of_the_setting():
            origin = newest_checkpoint(path, say)
        meta = _checked(origin, named, spec, trust)
        weights_only = msgspec.structs.replace(meta, files={WEIGHTS_FILE: meta.files[WEIGHTS_FILE]})
        copy_checkpoint(origin, target, weights_only, {ORIGIN: named.encode()})
    say(f"the frozen opponent is version {meta.version} of {named}")
    return network_values(meta.network)


@contextlib.contextmanager
def _as_of_the_setting() -> Iterator[None]:
    try:
        yield
    except ConfigError as error:
        raise ConfigError(f"opponents.checkpoint: {error}") from None


def _origin(folder: Path) -> str:
    """What a copy was made of; "" where there is no copy."""
    try:
        return read_regular(folder / ORIGIN).decode()
    except (OSError, UnicodeDecodeError):
        return ""


def _checked(folder: Path, named: str, spec: GameSpec, trust: Trust) -> CheckpointMeta:
    meta = decode_meta(folder)
    if meta.spec_fingerprint != spec.fingerprint():
        raise ConfigError(
            f"opponents.checkpoint: {named} is of another game or encoder: it has the spec fingerprint "
            f"{meta.encoder()}, this configuration {spec.identity()}. Name another one."
        )
    check_trust(network_values(meta.network), checkpoint_trust(folder, trust), f"{folder}/{META_FILE}")
    return meta
