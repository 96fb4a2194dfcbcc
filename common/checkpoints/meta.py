"""The files of a checkpoint and its meta.json, read without torch; every reader of meta.json uses this module."""

from __future__ import annotations

import errno
import hashlib
import io
import os
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, BinaryIO

import msgspec

from simul.common.config.schema import NetworkConfig
from simul.common.errors import CheckpointError
from simul.common.protocol.specs import GameSpec
from simul.common.runtime.decode_errors import DECODE_ERRORS
from simul.common.runtime.private_files import open_regular, read_regular

WEIGHTS_FILE = "weights.safetensors"
OPTIMIZER_FILE = "optimizer.safetensors"
META_FILE = "meta.json"
CONFIG_FILE = "config.yaml"  # beside these in an entry of a zoo: settings by which its policy plays
HASHED_FILES = (WEIGHTS_FILE, OPTIMIZER_FILE, CONFIG_FILE)
META_BYTES = 16 << 20
WEIGHTS_BYTES = 16 << 30  # of a file of weights, or of the optimizer
HEADER_BYTES = 16 << 20  # of a file of tensors; a larger file is hashed only if its header accounts for all of it

Count = Annotated[int, msgspec.Meta(ge=0, lt=10**15)]


class CheckpointMeta(msgspec.Struct, frozen=True):
    """meta.json of a checkpoint: everything but tensors. The spec and its fingerprint agree.

    Attributes:
        version: policy version of the weights.
        decisions: decisions learned from so far.
        files: SHA-256 of each file beside it, of HASHED_FILES.
        milestone: never deleted.
        horizon: decisions at which the learner's schedules end; 0: an older checkpoint, without it.
        state_size: of the network, see `RecurrentNetwork`; None: an older checkpoint, without it.
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
    state_size: Count | None = None

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


class _Tensor(msgspec.Struct):
    """A tensor in the header of a safetensors file."""

    shape: list[int] = []
    data_offsets: tuple[int, int] = (0, 0)


META = msgspec.json.Decoder(CheckpointMeta)  # made here: msgspec may not meet a new type in two threads at once
_HEADER = msgspec.json.Decoder(dict[str, _Tensor])


def checkpoint_folders(folder: Path) -> list[Path]:
    """Checkpoints in a run's `checkpoints/`, newest version first, valid or not."""
    if not folder.is_dir():
        return []
    return sorted(
        (p for p in folder.iterdir() if len(p.name) == 9 and p.name.isascii() and p.name.isdigit() and p.is_dir()),
        reverse=True,
    )


def file_hash(file: Path) -> str | None:
    """SHA-256 of a file, read in pieces; None for a large one whose header does not account for it: it is not read.

    Raises OSError, EFBIG for one that is larger than weights are.
    """
    with os.fdopen(open_regular(file), "rb") as opened:
        return None if _is_padded(opened, file) else hashlib.file_digest(opened, "sha256").hexdigest()


def tensor_shapes(file: Path) -> dict[str, list[int]]:
    """Shape of each tensor by its name, out of the header of a safetensors file alone. Raises OSError, ValueError."""
    with os.fdopen(open_regular(file), "rb") as opened:
        size = os.fstat(opened.fileno()).st_size
        return {name: each.shape for name, each in _read_header(opened, size).items()}


def header_fault(size: int, read: Callable[[int], bytes]) -> str:
    """Why a file of `size` bytes cannot be one of a checkpoint: too large, or not accounted for by its header; else "".

    `read`: gives the first so many bytes of it; it is not called for a file of at most HEADER_BYTES.
    """
    if size > WEIGHTS_BYTES:
        return f"{size:,} bytes; at most {WEIGHTS_BYTES:,} are read"
    try:
        if size > HEADER_BYTES:
            length = int.from_bytes(read(8), "little")
            _read_header(io.BytesIO(read(8 + min(length, HEADER_BYTES))), size)
    except ValueError as error:
        return str(error)
    return ""


def _is_padded(opened: BinaryIO, file: Path) -> bool:
    """Whether a large file is not one of tensors, or has other bytes than theirs. Leaves it at its begin.

    Raises OSError, EFBIG for one that is larger than weights are.
    """
    size = os.fstat(opened.fileno()).st_size
    if size > WEIGHTS_BYTES:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), str(file))
    try:
        if size > HEADER_BYTES:
            _read_header(opened, size)
    except ValueError:
        return True
    finally:
        opened.seek(0)
    return False


def _read_header(opened: BinaryIO, size: int) -> dict[str, _Tensor]:
    """The header of a safetensors file of `size` bytes.

    Raises OSError, ValueError where it does not account for every byte.
    """
    length = int.from_bytes(opened.read(8), "little")
    if length > HEADER_BYTES:
        raise ValueError(f"a header of {length:,} bytes")
    try:
        tensors = _HEADER.decode(opened.read(length))
    except DECODE_ERRORS as error:
        raise ValueError(f"its header: {error}") from None
    tensors.pop("__metadata__", None)
    end = 8 + length + max((each.data_offsets[1] for each in tensors.values()), default=0)
    if size != end:
        raise ValueError(f"{size:,} bytes; its header says {end:,}")
    return tensors


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


def is_milestone(folder: Path) -> bool:
    """False for a checkpoint that cannot be read, too."""
    try:
        return read_meta(folder).milestone
    except CheckpointError:
        return False


def check_spec(path: Path, meta: CheckpointMeta, spec: GameSpec, advice: str = "") -> None:
    """Raises CheckpointError for a checkpoint of another encoder, with both versions and `advice`."""
    if meta.spec_fingerprint != spec.fingerprint():
        words = f"{path} belongs to another encoder: it has the spec fingerprint {meta.encoder()}"
        raise CheckpointError(f"The checkpoint {words}, this game here has {spec.identity()}. {advice}".rstrip())


def read_verified(folder: Path, meta: CheckpointMeta, name: str) -> bytes:
    """Content of a checkpoint's file, verified by its hash in meta.json. Raises CheckpointError."""
    try:
        with os.fdopen(open_regular(folder / name), "rb") as opened:
            data = None if _is_padded(opened, folder / name) else opened.read(os.fstat(opened.fileno()).st_size)
    except OSError as error:
        fault = "is damaged" if isinstance(error, FileNotFoundError) else "cannot be read"
        raise CheckpointError(f"The checkpoint {folder} {fault}: {name}: {error.strerror}.") from None
    if data is None or hashlib.sha256(data).hexdigest() != meta.files.get(name):
        raise CheckpointError(f"The checkpoint {folder} is damaged: {name} does not have the hash that was written.")
    return data
