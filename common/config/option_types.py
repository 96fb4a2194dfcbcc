"""Types of command-line options, for argparse: a value, or ArgumentTypeError with a sentence."""

from __future__ import annotations

import argparse
from pathlib import Path


def path(text: str) -> Path:
    """A path. Refuses empty text, usually an unset shell variable, which would mean the current folder."""
    if not text:
        raise argparse.ArgumentTypeError("expected a path, got ''")
    return Path(text)


def checkpoint(text: str) -> Path | str:
    """A path, or the URL of a store or of a checkpoint in it, as text."""
    return text if "://" in text else path(text)


def whole_number(text: str) -> int:
    """A whole number, 0 or more."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"expected a whole number >= 0, got {text!r}")
    return int(text)
