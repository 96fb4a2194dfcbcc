"""Weights as immutable safetensors bytes, checkpoints on disk, and `load_policy`. No pickle."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import torch
from safetensors import SafetensorError
from safetensors.torch import load, load_file, save
from torch import Tensor, nn
from torch.nn.utils import get_total_norm

from simul.common.config.schema import NetworkConfig
from simul.common.nets.build import build_network
from simul.common.protocol.errors import CheckpointError, ConfigError, WeightsError
from simul.common.protocol.specs import GameSpec


def weights_to_bytes(module: nn.Module) -> bytes:
    """All parameters and buffers of `module` as one safetensors file."""
    state = {name: value.detach().cpu().contiguous() for name, value in module.state_dict().items()}
    data: bytes = save(state)
    return data


def bytes_to_state(data: bytes) -> dict[str, Tensor]:
    """Tensors by name. Raises WeightsError where `data` is not a safetensors file."""
    return _read(load, data)


def file_to_state(path: str) -> dict[str, Tensor]:
    """Tensors by name, views of a file that must not change. Raises WeightsError if it is not a safetensors file."""
    return _read(load_file, path)


def fingerprint(data: bytes) -> str:
    """SHA-256 over the bytes, in hex."""
    return hashlib.sha256(data).hexdigest()


def check_state(state: dict[str, Tensor], module: nn.Module) -> None:
    """Compare names, shapes, kinds and finiteness with `module`. Raises WeightsError naming the first difference."""
    expected = module.state_dict()
    if unknown := sorted(state.keys() ^ expected.keys()):
        raise WeightsError(f"tensors that only one side has: {', '.join(unknown[:5])}")
    for name, value in state.items():
        if value.shape != expected[name].shape:
            raise WeightsError(f"{name}: expected {list(expected[name].shape)}, got {list(value.shape)}")
        if value.is_floating_point() != expected[name].is_floating_point() or value.is_complex():
            raise WeightsError(f"{name}: expected {expected[name].dtype} or the like, got {value.dtype}")
    if name := first_nonfinite(state):
        raise WeightsError(f"{name}: not finite")


def first_nonfinite(tensors: Mapping[str, Tensor]) -> str:
    """Name of the first tensor with a number that is not finite; empty where there is none."""
    floating = {name: value for name, value in tensors.items() if value.is_floating_point()}
    if torch.isfinite(get_total_norm(floating.values())):
        return ""
    bad = (name for name, value in floating.items() if not torch.isfinite(value).all())
    return next(bad, "")  # none: only the sum of squares overflows


def _read(reader: Callable[..., dict[str, Tensor]], source: bytes | str) -> dict[str, Tensor]:
    try:
        return reader(source)
    except SafetensorError as error:
        raise WeightsError(f"these bytes are not a safetensors file: {error}") from None


WEIGHTS_FILE = "weights.safetensors"
META_FILE = "meta.json"


class CheckpointMeta(msgspec.Struct, frozen=True):
    """meta.json of a checkpoint: everything but tensors.

    Attributes:
        version: policy version of the weights.
        decisions: decisions learned from so far.
        files: SHA-256 of each file beside it.
        milestone: never deleted.
    """

    version: int
    decisions: int
    spec_fingerprint: str
    spec: GameSpec
    network: NetworkConfig
    config_fingerprint: str
    seed: int
    time: str
    packages: dict[str, str]
    files: dict[str, str]
    milestone: bool = False
    updates: int = 0


class Policy(nn.Module):
    """A network and its spec: `policy.network` is the plain module, `policy.meta` the checkpoint's metadata."""

    def __init__(self, meta: CheckpointMeta, network: nn.Module) -> None:
        super().__init__()
        self.meta = meta
        self.spec = meta.spec
        self.network: Any = network

    def initial_state(self, batch: int) -> Tensor:
        """Zeros float32 [B, S]: the state before a session's first decision."""
        state: Tensor = self.network.initial_state(batch)
        return state

    def forward(self, observation: Tensor, mask: Tensor, state: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Logits [B, A] with illegal actions at -inf, value [B], new state [B, S]; see `RecurrentNetwork.forward`."""
        logits, value, new_state = self.network(observation, mask, state)
        return logits.masked_fill(~mask, -torch.inf), value, new_state


def load_policy(path: Path | str) -> Policy:
    """The policy of a checkpoint as a plain module, in eval mode on the CPU.

    `path`: a checkpoint, or a run directory, whose newest valid checkpoint is loaded; damaged ones are skipped.

        policy = load_policy("runs/default")            # or "runs/default/checkpoints/000000420"
        state = policy.initial_state(1)
        while playing:                                  # observation [1, D], mask bool [1, A]
            logits, value, state = policy(observation, mask, state)
            action = int(logits.argmax())

    Raises:
        CheckpointError: the checkpoint is missing or damaged, or its network no longer fits.
    """
    folder, meta, data = _newest_valid(Path(path))
    try:
        network = build_network(meta.network, meta.spec)
        state = bytes_to_state(data)
        check_state(state, network)
    except (ConfigError, WeightsError) as error:
        raise CheckpointError(f"The checkpoint {folder} cannot be used: {error}") from None
    network.load_state_dict(state)
    policy = Policy(meta, network)
    policy.requires_grad_(False).eval()
    return policy


def _newest_valid(path: Path) -> tuple[Path, CheckpointMeta, bytes]:
    """The checkpoint `path`, or the newest valid one of the run `path`, with its weights. Raises CheckpointError."""
    folders = [path] if (path / META_FILE).exists() else checkpoint_folders(path / "checkpoints") or [path]
    first_error: CheckpointError | None = None
    for folder in folders:
        try:
            meta = read_meta(folder)
            return folder, meta, read_verified(folder, meta, WEIGHTS_FILE)
        except CheckpointError as error:
            first_error = first_error or error
    assert first_error is not None
    raise first_error


def checkpoint_folders(folder: Path) -> list[Path]:
    """Checkpoints in a run's `checkpoints/`, newest version first, valid or not."""
    if not folder.is_dir():
        return []
    return sorted((p for p in folder.iterdir() if len(p.name) == 9 and p.name.isdigit()), reverse=True)


def read_meta(folder: Path) -> CheckpointMeta:
    """meta.json of a checkpoint. Raises CheckpointError."""
    try:
        return msgspec.json.decode((folder / META_FILE).read_bytes(), type=CheckpointMeta)
    except OSError as error:
        raise CheckpointError(f"The checkpoint {folder} cannot be read: {error.strerror}.") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise CheckpointError(f"The checkpoint {folder} is damaged: {META_FILE}: {error}.") from None


def check_spec(path: Path, meta: CheckpointMeta, spec: GameSpec, advice: str = "") -> None:
    """Raises CheckpointError for a checkpoint of another encoder, with both fingerprints and `advice`."""
    if meta.spec_fingerprint != spec.fingerprint():
        words = f"{path} belongs to another encoder: it has the spec fingerprint {meta.spec_fingerprint}"
        raise CheckpointError(f"The checkpoint {words}, this game here has {spec.fingerprint()}. {advice}".rstrip())


def read_verified(folder: Path, meta: CheckpointMeta, name: str) -> bytes:
    """Content of a checkpoint's file, verified by its hash in meta.json. Raises CheckpointError."""
    try:
        data = (folder / name).read_bytes()
    except OSError as error:
        fault = "is damaged" if isinstance(error, FileNotFoundError) else "cannot be read"
        raise CheckpointError(f"The checkpoint {folder} {fault}: {name}: {error.strerror}.") from None
    if fingerprint(data) != meta.files.get(name):
        raise CheckpointError(f"The checkpoint {folder} is damaged: {name} does not have the hash that was written.")
    return data
