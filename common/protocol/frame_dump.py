"""A received message described frame by frame, before it is validated. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from simul.common.protocol.codec import DTYPES, Frame
from simul.common.runtime.decode_errors import DECODE_ERRORS

SHOWN_BYTES = 24
SHOWN_VALUES = 8
SHOWN_CHARACTERS = 1000


def describe_frames(frames: Sequence[Frame]) -> list[str]:
    """One line a frame: the decoded header, then each tensor as declared and as found."""
    if not frames:
        return ["no frame at all"]
    header = _header(frames[0])
    if header is None:
        return [f"frame 0: {len(frames[0])} bytes: {_hex(frames[0])}", f"  {_guess(bytes(frames[0]))}"]
    declared = header.get("tensors", []) if isinstance(header, dict) else []
    if not isinstance(declared, list):
        declared = []
    shown = (
        {k: v for k, v in header.items() if k != "tensors" or v is not declared} if isinstance(header, dict) else header
    )
    lines = [f"frame 0: header, {len(frames[0])} bytes: {str(shown)[:SHOWN_CHARACTERS]}"]
    for number in range(1, max(len(frames), len(declared) + 1)):
        frame = frames[number] if number < len(frames) else None
        entry = declared[number - 1] if number <= len(declared) else None
        lines.append(f"frame {number}: {_tensor(entry, frame)}")
    return lines


def _header(frame: Frame) -> Any:
    try:
        return msgspec.msgpack.decode(frame)
    except DECODE_ERRORS:
        return None


def _guess(frame: bytes) -> str:
    """What a first frame that is not MessagePack looks like."""
    if not frame:
        return "it is empty: send no delimiter; use a DEALER socket, not REQ, and send the header first"
    if frame[:1] in b"{[":
        return "it looks like JSON: the header is MessagePack"
    if frame.split(b" ")[0] in (b"GET", b"POST", b"HEAD", b"OPTIONS"):
        return "it is HTTP: connect with ZeroMQ"
    return "it is not MessagePack"


def _tensor(entry: Any, frame: Frame | None) -> str:
    """`entry`: (name, dtype, shape) as declared, None: undeclared; `frame`: None: missing."""
    if entry is None:
        return f"{len(frame or b'')} bytes that the header does not declare"
    try:
        name, dtype, shape = entry
        sent = DTYPES[dtype]
        wanted = math.prod(shape) * sent.itemsize
    except (KeyError, TypeError, ValueError):
        return f"declared as {entry!r}: expected [name, dtype, [sizes]], dtype one of {', '.join(DTYPES)}"
    words = f"{name}: {dtype} {list(shape)} declared = {wanted} bytes"
    if frame is None:
        return f"{words}; the frame is missing"
    if len(frame) != wanted:
        return f"{words}; {len(frame)} found: {_hex(frame)}"
    values = np.frombuffer(frame, sent)
    more = ", ..." if values.size > SHOWN_VALUES else ""
    return f"{words}, found: {', '.join(f'{v:g}' for v in values[:SHOWN_VALUES].tolist())}{more}"


def _hex(frame: Frame) -> str:
    return bytes(frame[:SHOWN_BYTES]).hex(" ") + (" ..." if len(frame) > SHOWN_BYTES else "")
