"""Checkpoints as the launcher reads them, without torch: the newest whole one, its configuration; `simul up --from`."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec

from simul.common.checkpoints.folders import checkpoint_trust, new_folder, run_root
from simul.common.checkpoints.meta import (
    CONFIG_FILE,
    META_FILE,
    OPTIMIZER_FILE,
    WEIGHTS_FILE,
    CheckpointMeta,
    checkpoint_folders,
    decode_meta,
    file_hash,
    read_verified,
)
from simul.common.config.automatic import AUTO
from simul.common.config.games import GAMES
from simul.common.config.loader import config_from_tree, load_config
from simul.common.config.matchups import distinct_labels
from simul.common.config.schema import Config
from simul.common.config.trust import NOTHING, MarkedValue, Trust, check_trust, network_values, values_to_trust
from simul.common.errors import CheckpointError, ConfigError
from simul.common.protocol.specs import GameSpec
from simul.common.role.run_directory import RunDir
from simul.common.runtime.decode_errors import DECODE_ERRORS
from simul.common.runtime.private_files import read_regular
from simul.common.runtime.terminal_text import printable
from simul.launch.supervisor.store_process import local_checkpoints

NOTHING_MORE: Mapping[str, bytes] = MappingProxyType({})
OWN_SERVER = (  # where the run's own server was reached; a command that opens its checkpoint starts another one
    "server.endpoint=''", "server.ipc_access=owner", "server.curve_keys=''", "server.prometheus_port=0",
    "prometheus_port=0", "cluster.servers.count=1",
)  # fmt: skip


def _to_stderr(note: str) -> None:
    sys.stderr.write(printable(f"simul: {note}") + "\n")


def checkpoint_labels(folders: Sequence[Path], searches: Sequence[Sequence[str]] = ()) -> list[str]:
    """Short, distinct names of checkpoints: `RUN@VERSION`, or the folder's name.

    `searches`: settings that each plays with, which are added: `RUN@VERSION#simulations=16`.
    """
    labels: list[str] = []
    for folder, settings in zip_longest(folders, searches, fillvalue=()):
        assert isinstance(folder, Path)
        root = run_root(folder)
        of_run = root / "checkpoints" in folder.absolute().parents
        label = f"{root.name}@{folder.name.lstrip('0') or '0'}" if of_run else folder.name
        label += f"#{','.join(settings)}" if settings else ""
        labels.append(label.replace("|", "-").replace("/", "-"))  # they are fields of Showdown's protocol lines
    return distinct_labels(labels)


def newest_checkpoint(path: Path, say: Callable[[str], object] = _to_stderr) -> Path:
    """`path` itself where it is a checkpoint, else the newest whole one of the run directory.

    `say` gets a sentence for each damaged one that it skips. Raises ConfigError.
    """
    try:
        return _newest_checkpoint(path.absolute(), say)
    except OSError as error:
        raise ConfigError(f"The checkpoint {path} cannot be read: {error.strerror}.") from None


def _newest_checkpoint(path: Path, say: Callable[[str], object]) -> Path:
    if (path / META_FILE).is_file():
        if fault := find_fault(path):
            raise ConfigError(f"The checkpoint {path} {fault}. Name another one.")
        return path
    for parent in (path / "checkpoints", path):
        folders = checkpoint_folders(parent)
        faults: list[str] = []
        for folder in folders:
            fault = find_fault(folder)
            if not fault:
                for note in faults:
                    say(f"{note} Falling back to the one before.")
                return folder
            faults.append(f"The checkpoint {folder.name} {fault}.")
        if faults:
            raise ConfigError(f"No checkpoint in {parent} can be used. {faults[0]} Name another run.")
    raise ConfigError(f"There is no checkpoint in {path}: expected a folder with meta.json, or a run directory.")


def find_fault(folder: Path) -> str:
    """Why a checkpoint cannot be used, as the rest of a sentence about it; "" where it is whole."""
    try:
        files = decode_meta(folder).files
        wanted = {name: files[name] for name in (WEIGHTS_FILE, *({CONFIG_FILE} & files.keys()))}
        damaged = [name for name in wanted if file_hash(folder / name) != wanted[name]]
    except FileNotFoundError as error:
        return f"is damaged: {Path(error.filename).name}: {error.strerror}"
    except OSError as error:
        return f"cannot be read: {Path(str(error.filename)).name}: {error.strerror}"
    except DECODE_ERRORS as error:
        return f"is damaged: meta.json: {str(error).rstrip('.')}"
    except KeyError:
        return f"is damaged: meta.json does not hold the hash of {WEIGHTS_FILE}"
    return f"is damaged: {damaged[0]} does not have the hash that was written" if damaged else ""


def config_of(checkpoint: Path, overrides: Sequence[str], trust: Trust = NOTHING) -> Config:
    """The configuration that the checkpoint was trained with, but with one inference server at the default endpoint.

    Endpoint, its access, its keys and ports of Prometheus are those of `overrides`: out of data they would open a port,
    or take a path of the user's. `trust`: what the command line trusts.

    Raises ConfigError, also where it names to run what is not trusted.
    """
    config, source = _config_of(checkpoint, overrides)
    check_trust(values_to_trust(config), checkpoint_trust(checkpoint, trust), source)
    return config


def networks_of(checkpoints: Iterable[Path], trust: Trust) -> frozenset[MarkedValue]:
    """What the checkpoints name as their networks, for `RunDir.write_config`; all of it is trusted.

    `trust`: what the command line trusts. Raises ConfigError where something is not trusted.
    """
    found: set[MarkedValue] = set()
    for folder in checkpoints:
        try:
            values = network_values(decode_meta(folder).network)
        except (OSError, *DECODE_ERRORS):
            continue  # damaged: its reader reports it
        check_trust(values, checkpoint_trust(folder, trust), f"{folder}/{META_FILE}")
        found |= values
    return frozenset(found)


def _config_of(checkpoint: Path, overrides: Sequence[str]) -> tuple[Config, str]:
    """The configuration, and the name of the file that it comes from."""
    overrides = [*OWN_SERVER, *overrides]
    for folder in (checkpoint, run_root(checkpoint)):  # the first: of an entry of a zoo
        beside = folder / CONFIG_FILE
        try:
            if read_regular(beside):  # empty: left by a full disk
                return load_config(beside, overrides), str(beside)
        except FileNotFoundError:
            pass
        except OSError as error:
            raise ConfigError(f"{beside} cannot be read: {error.strerror}. Remove it, or mend it.") from None
    try:
        meta = decode_meta(checkpoint)
    except (OSError, *DECODE_ERRORS):
        raise ConfigError(f"{checkpoint}/meta.json does not say which game and network it is for.") from None
    source = f"{checkpoint}/{META_FILE}"
    return config_of_meta(meta, source, overrides), source


def config_of_meta(meta: CheckpointMeta, source: str = META_FILE, overrides: Sequence[str] = ()) -> Config:
    """The configuration of the game and the network that meta.json names, else of defaults. Raises ConfigError."""
    tree = {**game_section_of(meta.spec.name), "network": msgspec.to_builtins(meta.network)}
    return config_from_tree(tree, source, overrides)


def new_horizon(config: Config, run_dir: RunDir) -> int:
    """`--new-horizon`: the decisions that the run has learned, and those of this start, see `Config.horizon`.

    Raises ConfigError: the run has no checkpoint, or the configuration sets the horizon.
    """
    if config.learner.total_decisions != AUTO:
        raise ConfigError(
            f"--new-horizon sets learner.total_decisions, and it is {config.learner.total_decisions} already: leave "
            "one of them out."
        )
    meta = decode_meta(newest_checkpoint(run_dir.root, lambda note: None))
    return meta.decisions + config.horizon(meta.spec.seats)


def spec_of(folder: Path) -> GameSpec:
    """The game spec in meta.json of a checkpoint. Raises ConfigError."""
    try:
        return decode_meta(folder).spec
    except (OSError, *DECODE_ERRORS):
        raise ConfigError(f"{folder}/meta.json does not say which game it is for. Name another checkpoint.") from None


def game_section_of(name: str) -> dict[str, Any]:
    """Settings for the game that a spec calls `name`: a built-in one's name and /VARIANT, or module:Class."""
    kind, _, which = name.partition("/")
    if kind not in GAMES:
        return {"game": name}
    variant = GAMES[kind].variant
    return {"game": kind, kind: {variant: which}} if variant else {"game": kind}


class InitialCheckpoint:
    """`--from`: the checkpoint, or the newest whole one of a run directory, with which a run in `run_dir` begins."""

    def __init__(self, place: Path | str, run_dir: RunDir, trust: Trust = NOTHING) -> None:
        """`place`: a path, or a URL as text. `trust`: what the command line trusts."""
        self._trust = trust
        self._place = place.rstrip("/") if isinstance(place, str) else Path(os.path.realpath(place))
        self._run_dir = run_dir
        self._copied: Path | None = None

    def copy_into_run(
        self, spec: GameSpec, network: str, say: Callable[[str], object] = _to_stderr,
        stopped: Callable[[], bool] = lambda: False,
    ) -> str:  # fmt: skip
        """Copy the checkpoint into the run; returns a sentence about it. `network`: the configured network's name.

        Weights, Adam's moments and the version stay; decisions count from 0, so that schedules start again. Nothing is
        copied into a run that began with this `--from`: the command that started it also resumes it.

        Raises:
            ConfigError: there is none, it is damaged or of another encoder or network, or the run has others.
            OSError: it cannot be written.
            RoleDied, StartStopped: while it was fetched from a store, of which `say` gets sentences.
        """
        place = self._place
        if isinstance(place, Path) and place.exists() and place.is_relative_to(os.path.realpath(self._run_dir.root)):
            raise ConfigError(
                f"--from {place} is inside the run directory: leave --from out to resume from its newest "
                "checkpoint, or choose another run directory with --run-dir."
            )
        own = sorted(self._run_dir.checkpoints.glob("[0-9]" * 9))
        if own and self._run_dir.read_origin() == str(place):
            return f"the run began with {place}; it resumes from its checkpoint {own[-1].name}"
        if own:
            raise ConfigError(
                f"The run directory {self._run_dir.root} has checkpoints of its own, the newest is {own[-1].name}: "
                "leave --from out to resume from it, or choose another run directory with --run-dir."
            )
        with local_checkpoints([place], say, stopped, optimizer=True) as (path,):
            return self._copy(path, spec, network)

    def _copy(self, path: Path, spec: GameSpec, network: str) -> str:
        notes: list[str] = []
        folder = newest_checkpoint(path, notes.append)
        origin = f"{self._place} ({folder.name})" if isinstance(self._place, str) else str(folder)
        meta = decode_meta(folder)
        if meta.spec_fingerprint != spec.fingerprint():
            raise ConfigError(
                f"The checkpoint {origin} of --from is of another game or encoder: it has the spec fingerprint "
                f"{meta.encoder()}, this configuration {spec.identity()}. Nothing was changed."
            )
        if meta.network.name != network:
            raise ConfigError(
                f"The checkpoint {origin} of --from has the network {meta.network.name}, this configuration "
                f"{network}: set network.name to {meta.network.name}. Nothing was changed."
            )
        check_trust(network_values(meta.network), checkpoint_trust(folder, self._trust), f"{origin}/{META_FILE}")
        target = self._run_dir.checkpoints / f"{meta.version:09d}"
        begun = msgspec.structs.replace(meta, decisions=0, updates=0, milestone=True, horizon=0)
        copy_checkpoint(folder, target, begun)
        self._copied = target
        self._run_dir.write_origin(str(self._place))
        moments = "" if OPTIMIZER_FILE in meta.files else ", which has no moments of Adam: they start at 0"
        return " ".join([*notes, f"the run begins with {origin}{moments}"])

    def undo(self) -> None:
        """Remove what `copy_into_run` copied: the run did not start."""
        if self._copied is not None:
            shutil.rmtree(self._copied, ignore_errors=True)
            with contextlib.suppress(OSError):
                self._run_dir.write_origin("")


def copy_checkpoint(
    origin: Path, target: Path, meta: CheckpointMeta, further: Mapping[str, bytes] = NOTHING_MORE
) -> None:
    """Copy the weights, and the optimizer where `meta` has it, with `meta`: written aside, then renamed.

    `further`: files beside them, by name. Raises ConfigError, OSError.
    """
    names = [name for name in (WEIGHTS_FILE, OPTIMIZER_FILE) if name in meta.files]
    try:
        files = {name: read_verified(origin, meta, name) for name in names}
    except CheckpointError as error:
        raise ConfigError(str(error)) from None
    meta = msgspec.structs.replace(meta, files={name: meta.files[name] for name in files})
    with new_folder(target) as aside:
        for name, data in {**files, **further}.items():
            (aside / name).write_bytes(data)
        (aside / META_FILE).write_bytes(msgspec.json.format(msgspec.json.encode(meta)))
