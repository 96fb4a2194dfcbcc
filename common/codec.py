"""Message <-> frames: one MessagePack header frame, then raw little-endian row-major tensor frames.

The header declares every tensor (name, dtype, shape), so a frame's length is known before it is read.
Decoding never copies a tensor: the arrays are read-only views of the frames. No pickle, in any frame.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import UnionType
from typing import Any, Generic, TypeVar, cast

import msgspec
import numpy as np
from numpy.typing import NDArray

from common.errors import ERR_LIMIT, ERR_MALFORMED, ERR_SHAPE, ProtocolError
from common.messages import Message

Tensors = Mapping[str, NDArray[Any]]
Frame = bytes | memoryview

MAX_FRAMES = 16
MAX_HEADER_BYTES = 64 * 1024
MAX_MESSAGE_BYTES = 256 * 1024 * 1024
_DTYPES = {
    name: np.dtype(name).newbyteorder("<")
    for name in ("float16", "float32", "float64", "uint8", "int8", "int16", "int32", "int64")
}
_NAMES = {dtype: name for name, dtype in _DTYPES.items()}  # `dtype.name` is computed anew, and slowly, every time

M = TypeVar("M")
_encoder = msgspec.msgpack.Encoder()


def encode(message: Message, tensors: Tensors | None = None) -> list[Frame]:
    """Frames of `message`: the header, then one frame a tensor, in the order of `tensors`.

    Raises:
        ProtocolError: a tensor has a dtype that does not travel.
    """
    if not tensors:
        return [_encoder.encode(message)]
    declared = []
    frames: list[Frame] = [b""]
    for name, array in tensors.items():
        dtype = _NAMES.get(array.dtype) or array.dtype.name
        if dtype not in _DTYPES:
            raise ProtocolError(ERR_SHAPE, f"tensor {name!r} has dtype {dtype}; expected one of {', '.join(_DTYPES)}")
        flat = np.ascontiguousarray(array, dtype=_DTYPES[dtype])
        declared.append((name, dtype, array.shape))
        frames.append(flat.reshape(-1).view(np.uint8).data if flat.size else b"")
    frames[0] = _encoder.encode(msgspec.structs.replace(message, tensors=tuple(declared)))
    return frames


class Codec(Generic[M]):
    """Decodes the messages of one direction, given as a union of message types."""

    def __init__(self, messages: type[M] | UnionType, max_bytes: int = MAX_MESSAGE_BYTES) -> None:
        self._decoder: msgspec.msgpack.Decoder[Any] = msgspec.msgpack.Decoder(messages)
        self._max_bytes = max_bytes

    def decode(self, frames: Sequence[Frame]) -> tuple[M, dict[str, NDArray[Any]]]:
        """The message and its tensors by name, as read-only views of the frames.

        Raises:
            ProtocolError: ERR_LIMIT, ERR_MALFORMED or ERR_SHAPE, saying what was expected and what came.
        """
        _check_limits(frames, self._max_bytes)
        try:
            message = self._decoder.decode(frames[0])
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise ProtocolError(ERR_MALFORMED, f"the header frame does not decode: {str(error)[:200]}") from None
        declared = cast(Message, message).tensors
        if len(declared) != len(frames) - 1:
            raise ProtocolError(
                ERR_MALFORMED, f"the header declares {len(declared)} tensors, {len(frames) - 1} frames follow"
            )
        tensors: dict[str, NDArray[Any]] = {}
        for (name, dtype, shape), frame in zip(declared, frames[1:]):
            if name in tensors:
                raise ProtocolError(ERR_MALFORMED, f"the header declares tensor {name[:40]!r} twice")
            tensors[name] = _tensor(name[:40], dtype[:40], shape, frame)
        return message, tensors


def expect(tensors: Tensors, name: str, dtype: str | np.dtype[Any], shape: tuple[int | None, ...]) -> NDArray[Any]:
    """The tensor called `name`, checked. None in `shape` takes any length. Raises ProtocolError ERR_SHAPE."""
    array = tensors.get(name)
    if array is None:
        raise ProtocolError(ERR_SHAPE, f"tensor {name!r} is missing")
    fits = len(array.shape) == len(shape) and all(w is None or w == h for w, h in zip(shape, array.shape))
    if array.dtype != np.dtype(dtype) or not fits:
        wanted = "[" + ", ".join("*" if n is None else str(n) for n in shape) + "]"
        raise ProtocolError(
            ERR_SHAPE,
            f"tensor {name!r}: expected {np.dtype(dtype).name} {wanted}, got {array.dtype.name} {list(array.shape)}",
        )
    return array


def _check_limits(frames: Sequence[Frame], max_bytes: int) -> None:
    if not frames:
        raise ProtocolError(ERR_MALFORMED, "an empty message")
    if len(frames) > MAX_FRAMES:
        raise ProtocolError(ERR_LIMIT, f"{len(frames)} frames; at most {MAX_FRAMES} are read")
    if len(frames[0]) > MAX_HEADER_BYTES:
        raise ProtocolError(ERR_LIMIT, f"the header frame has {len(frames[0])} bytes; at most {MAX_HEADER_BYTES}")
    total = sum(len(frame) for frame in frames)
    if total > max_bytes:
        raise ProtocolError(ERR_LIMIT, f"{total} bytes in one message; at most {max_bytes}")


def _tensor(name: str, dtype: str, shape: tuple[int, ...], frame: Frame) -> NDArray[Any]:
    if dtype not in _DTYPES:
        raise ProtocolError(ERR_SHAPE, f"tensor {name!r} has dtype {dtype!r}; expected one of {', '.join(_DTYPES)}")
    if len(shape) > 4 or any(n < 0 for n in shape):
        raise ProtocolError(ERR_SHAPE, f"tensor {name!r} has shape {list(shape[:5])}; expected at most 4 sizes >= 0")
    wanted = math.prod(shape) * _DTYPES[dtype].itemsize
    if wanted != len(frame):
        raise ProtocolError(
            ERR_SHAPE, f"tensor {name!r}: {dtype} {list(shape)} is {wanted} bytes, the frame has {len(frame)}"
        )
    try:
        return np.frombuffer(frame, dtype=_DTYPES[dtype]).reshape(shape)
    except ValueError:  # a size of 0 beside one that no array can have
        raise ProtocolError(ERR_SHAPE, f"tensor {name!r} has the impossible shape {list(shape)}") from None
