"""Settings as `--set` takes them: a tree of sections as lines `a.b=VALUE`. Pure."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import yaml

END = "...\n"  # of a document that is one plain value


def setting_lines(tree: Mapping[str, Any], above: str = "") -> list[str]:
    """`{"workers": {"count": 2}}` as `["workers.count=2"]`."""
    lines: list[str] = []
    for key, value in tree.items():
        if isinstance(value, Mapping):
            lines += setting_lines(value, f"{above}{key}.")
        else:
            text = yaml.safe_dump(plain_values(value), default_flow_style=True, width=sys.maxsize)
            lines.append(f"{above}{key}={text.removesuffix(END).strip()}")
    return lines


def plain_values(value: Any) -> Any:
    """A copy. Paths as text, tuples as lists, NumPy's numbers as Python's: what YAML holds."""
    if isinstance(value, Mapping):
        return {key: plain_values(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain_values(each) for each in value]
    if isinstance(value, np.generic):
        return value.item()
    return str(value) if isinstance(value, Path) else value
