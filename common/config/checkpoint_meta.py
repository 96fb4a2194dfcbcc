"""The files of a checkpoint and its meta.json, read without torch; every reader of meta.json uses this module."""

from __future__ import annotations

import errno
import hashlib
import os
from pathlib import Path
from typing import Annotated

import msgspec

from simul.common.config.schema import NetworkConfig
from simul.common.errors import CheckpointError
from simul.common.protocol.specs import GameSpec
from simul.common.runtime.private_files import open_regular, read_regular

WEIGHTS_FILE = "weights.safetensors"
OPTIMIZER_FILE = "optimizer.safetensors"
META_FILE = "meta.json"
CONFIG_FILE = "config.yaml"  # beside these in an entry of a zoo: settings by which its policy plays
HASHED_FILES = (WEIGHTS_FILE, OPTIMIZER_FILE, CONFIG_FILE)
META_BYTES = 16 << 20
WEIGHTS_BYTES = 16 << 30  # of a file of weights, or of the optimizer


Count = Annotated[int, msgspec.Meta(ge=0, lt=10**15)]


class CheckpointMeta(msgspec.Struct, frozen=True):
    """meta.json of a checkpoint: everything but tensors. The spec and its fingerprint agree.

    Attributes:
        version: policy version of the weights.
        decisions: decisions learned from so far.
        files: SHA-256 of each file beside it, of HASHED_FILES.
        milestone: never deleted.
        horizon: decisions at which the learner's schedules end; 0: a checkpoint of before this was kept.
    """

    version: Annotated[int, msgspec.Meta(ge=0, lt=10**9)]
    decisions: Count
    spec_fingerprint: str
    spec: GameSpec
    network: NetworkConfig
    config_fingerprint: str
    seed: int
    time: str
    packages: dict[str, str]
    files: dict[str, str]
    milestone: bool = False
    updates: Count = 0
    horizon: Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)] = 0

    def __post_init__(self) -> None:
        """Raises ValueError, which decoding turns into a msgspec.ValidationError."""
        if strange := sorted(set(self.files) - set(HASHED_FILES)):  # a name is a path where it is fetched to
            raise ValueError(f"it lists the file {strange[0][:80]!r}; expected only {', '.join(HASHED_FILES)}")
        if (found := self.spec.fingerprint()) != self.spec_fingerprint:
            raise ValueError(
                f"its spec has the fingerprint {found}, and {self.spec_fingerprint} stands beside it: one of them was "
                "changed, or another version of Simul wrote them"
            )

    def encoder(self) -> str:
        """The spec's fingerprint and what it says of the observation, for a sentence about specs that differ."""
        return f"{self.spec_fingerprint} ({self.spec.described()})"


META = msgspec.json.Decoder(CheckpointMeta)  # made here: msgspec may not meet a new type in two threads at once


def checkpoint_folders(folder: Path) -> list[Path]:
    """Checkpoints in a run's `checkpoints/`, newest version first, valid or not."""
    if not folder.is_dir():
        return []
    return sorted(
        (p for p in folder.iterdir() if len(p.name) == 9 and p.name.isascii() and p.name.isdigit() and p.is_dir()),
        reverse=True,
    )


def file_hash(file: Path) -> str:
    """SHA-256 of a file, read in pieces. Raises OSError, EFBIG for one that is larger than weights are."""
    with os.fdopen(open_regular(file), "rb") as opened:
        if os.fstat(opened.fileno()).st_size > WEIGHTS_BYTES:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), str(file))
        return hashlib.file_digest(opened, "sha256").hexdigest()


def decode_meta(folder: Path) -> CheckpointMeta:
    """meta.json of a checkpoint. Raises OSError, msgspec.DecodeError, UnicodeDecodeError."""
    try:
        return META.decode(read_regular(folder / META_FILE, META_BYTES))
    except RecursionError:
        raise msgspec.DecodeError("it is nested too deeply") from None


def read_meta(folder: Path) -> CheckpointMeta:
    """meta.json of a checkpoint. Raises CheckpointError."""
    try:
        return decode_meta(folder)
    except OSError as error:
        raise CheckpointError(f"The checkpoint {folder} cannot be read: {error.strerror}.") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise CheckpointError(f"The checkpoint {folder} is damaged: {META_FILE}: {error}.") from None


def check_spec(path: Path, meta: CheckpointMeta, spec: GameSpec, advice: str = "") -> None:
    """Raises CheckpointError for a checkpoint of another encoder, with both versions and `advice`."""
    if meta.spec_fingerprint != spec.fingerprint():
        words = f"{path} belongs to another encoder: it has the spec fingerprint {meta.encoder()}"
        raise CheckpointError(f"The checkpoint {words}, this game here has {spec.identity()}. {advice}".rstrip())


def read_verified(folder: Path, meta: CheckpointMeta, name: str) -> bytes:
    """Content of a checkpoint's file, verified by its hash in meta.json. Raises CheckpointError."""
    try:
        data = read_regular(folder / name, WEIGHTS_BYTES)
    except OSError as error:
        fault = "is damaged" if isinstance(error, FileNotFoundError) else "cannot be read"
        raise CheckpointError(f"The checkpoint {folder} {fault}: {name}: {error.strerror}.") from None
    if hashlib.sha256(data).hexdigest() != meta.files.get(name):
        raise CheckpointError(f"The checkpoint {folder} is damaged: {name} does not have the hash that was written.")
    return data
