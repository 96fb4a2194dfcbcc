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

from simul.common.errors import ERR_LIMIT, ERR_MALFORMED, ERR_SHAPE, ERR_VERSION, ProtocolError
from simul.common.protocol.messages import PROTOCOL, Message
from simul.common.runtime.decode_errors import DECODE_ERRORS

Tensors = Mapping[str, NDArray[Any]]
Frame = bytes | memoryview

SMALL_BYTES = 4096  # below this, a copy is cheaper than a view
MAX_LAYOUTS = 1024
MAX_FRAMES = 16
MAX_DIMENSIONS = 4
MAX_HEADER_BYTES = 64 * 1024
MAX_MESSAGE_BYTES = 256 * 1024 * 1024
DTYPES = {
    name: np.dtype(name).newbyteorder("<")
    for name in ("float16", "float32", "float64", "uint8", "int8", "int16", "int32", "int64")
}
_NAMES = {dtype: name for name, dtype in DTYPES.items()}  # `dtype.name` is computed at every access, slowly

_Layout = list[tuple[str, np.dtype[Any], tuple[int, ...], int]]  # name, dtype, shape, bytes
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
        if dtype not in DTYPES:
            raise ProtocolError(ERR_SHAPE, f"tensor {name!r} has dtype {dtype}; expected one of {', '.join(DTYPES)}")
        declared.append((name, dtype, array.shape))
        frames.append(_bytes_of(array, DTYPES[dtype]))
    frames[0] = _encoder.encode(msgspec.structs.replace(message, tensors=tuple(declared)))
    return frames


def _bytes_of(array: NDArray[Any], dtype: np.dtype[Any]) -> Frame:
    if array.nbytes <= SMALL_BYTES:
        return array.astype(dtype, copy=False).tobytes()
    return np.ascontiguousarray(array, dtype=dtype).reshape(-1).view(np.uint8).data


class Codec(Generic[M]):
    """Decodes the messages of one direction, given as a union of message types."""

    def __init__(self, messages: type[M] | UnionType, max_bytes: int = MAX_MESSAGE_BYTES) -> None:
        self._decoder: msgspec.msgpack.Decoder[Any] = msgspec.msgpack.Decoder(messages)
        self._max_bytes = max_bytes
        self._layouts: dict[tuple[Any, ...], _Layout] = {}

    def decode(self, frames: Sequence[Frame]) -> tuple[M, dict[str, NDArray[Any]]]:
        """The message and its tensors by name, as read-only views of the frames.

        Raises:
            ProtocolError: ERR_LIMIT, ERR_MALFORMED, ERR_SHAPE or ERR_VERSION, saying what was expected and what came.
        """
        _check_limits(frames, self._max_bytes)
        try:
            message = self._decoder.decode(frames[0])
        except DECODE_ERRORS as error:
            raise _undecodable(str(error)) from None
        declared = cast(Message, message).tensors
        if len(declared) != len(frames) - 1:
            raise ProtocolError(
                ERR_MALFORMED, f"the header declares {len(declared)} tensors, {len(frames) - 1} frames follow"
            )
        return message, {
            name: _tensor(name, dtype, shape, size, frame)
            for (name, dtype, shape, size), frame in zip(self._layout(declared, len(frames[0])), frames[1:])
        }

    def _layout(self, declared: tuple[tuple[str, str, tuple[int, ...]], ...], header_bytes: int) -> _Layout:
        """Checked declarations, cached where the header is small: clients repeat the same ones."""
        if header_bytes > SMALL_BYTES:
            return _check_layout(declared)
        layout = self._layouts.get(declared)
        if layout is None:
            layout = _check_layout(declared)
            if len(self._layouts) >= MAX_LAYOUTS:
                self._layouts.clear()
            self._layouts[declared] = layout
        return layout


def expect(tensors: Tensors, name: str, dtype: str | np.dtype[Any], shape: tuple[int | None, ...]) -> NDArray[Any]:
    """The tensor called `name`, checked. None in `shape` takes any length. Raises ProtocolError ERR_SHAPE."""
    array = tensors.get(name)
    if array is None:
        raise ProtocolError(ERR_SHAPE, f"tensor {name!r} is missing")
    if array.dtype == dtype and array.shape == shape:
        return array
    fits = len(array.shape) == len(shape) and all(w is None or w == h for w, h in zip(shape, array.shape))
    if array.dtype != np.dtype(dtype) or not fits:
        wanted = "[" + ", ".join("*" if n is None else str(n) for n in shape) + "]"
        raise ProtocolError(
            ERR_SHAPE,
            f"tensor {name!r}: expected {np.dtype(dtype).name} {wanted}, got {array.dtype.name} {list(array.shape)}",
        )
    return array


def expect_only(tensors: Tensors, names: frozenset[str]) -> None:
    """Raises ProtocolError ERR_SHAPE for tensors that the message type does not have."""
    if not tensors.keys() <= names:
        stray, wanted = min(tensors.keys() - names), ", ".join(sorted(names)) or "none"
        raise ProtocolError(ERR_SHAPE, f"tensor {stray!r} is not of this message; expected: {wanted}")


def _undecodable(error: str) -> ProtocolError:
    """The error of a header that msgspec does not decode, with msgspec's reason."""
    text = f"the header frame does not decode: {error[:200]}"
    if error.startswith("Invalid value ") and error.endswith(" - at `$.type`"):  # a tag that is not of this direction
        return ProtocolError(ERR_VERSION, f"{text}; {PROTOCOL}, which is spoken here, has no such message this way")
    return ProtocolError(ERR_MALFORMED, text)


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


def _check_layout(declared: tuple[tuple[str, str, tuple[int, ...]], ...]) -> _Layout:
    layout: dict[str, tuple[str, np.dtype[Any], tuple[int, ...], int]] = {}
    for name, dtype, shape in declared:
        name, dtype = name[:40], dtype[:40]
        if name in layout:
            raise ProtocolError(ERR_MALFORMED, f"the header declares tensor {name!r} twice")
        if dtype not in DTYPES:
            raise ProtocolError(ERR_SHAPE, f"tensor {name!r} has dtype {dtype!r}; expected one of {', '.join(DTYPES)}")
        if len(shape) > MAX_DIMENSIONS or any(n < 0 for n in shape):
            raise ProtocolError(
                ERR_SHAPE, f"tensor {name!r} has shape {list(shape[:5])}; expected at most {MAX_DIMENSIONS} sizes >= 0"
            )
        layout[name] = (name, DTYPES[dtype], shape, math.prod(shape) * DTYPES[dtype].itemsize)
    return list(layout.values())


def _tensor(name: str, dtype: np.dtype[Any], shape: tuple[int, ...], size: int, frame: Frame) -> NDArray[Any]:
    if size != len(frame):
        raise ProtocolError(
            ERR_SHAPE, f"tensor {name!r}: {dtype.name} {list(shape)} is {size} bytes, the frame has {len(frame)}"
        )
    flat = np.frombuffer(frame, dtype=dtype)
    if len(shape) == 1:
        return flat
    try:
        return flat.reshape(shape)
    except ValueError:  # a dimension of 0 beside one too large for any array
        raise ProtocolError(ERR_SHAPE, f"tensor {name!r} has the impossible shape {list(shape)}") from None
