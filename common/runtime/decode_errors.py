"""What decoding JSON or MessagePack that others could write may raise, beside what it is meant to."""

from __future__ import annotations

import msgspec

DECODE_ERRORS = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
