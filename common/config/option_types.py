"""Types of command-line options: each turns a text into a value, or into argparse's one-sentence refusal."""

from __future__ import annotations

import argparse
from pathlib import Path


def path(text: str) -> Path:
    """A file or folder. An empty text, mostly a shell variable that is not set, would be the current folder."""
    if not text:
        raise argparse.ArgumentTypeError("expected a path, got ''")
    return Path(text)
