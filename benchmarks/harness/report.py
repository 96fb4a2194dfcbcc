"""What stands beside the figures of every benchmark: the conditions; and the tables and files that hold them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

from simul.common.runtime.machine_info import machine


def conditions(**more: Any) -> dict[str, Any]:
    """Processor, system, Python and commit of this run, and what else the figures depend on."""
    return {**machine(), **more}


def in_one_line(facts: Mapping[str, Any]) -> str:
    """`name value, ...`"""
    return ", ".join(f"{name} {value}" for name, value in facts.items())


def markdown_table(heads: Sequence[str], rows: Sequence[Sequence[str]], text_columns: int = 1) -> str:
    """A Markdown table; columns behind the first `text_columns` are aligned to the right, an empty head to the left."""
    aligned = ["---" if number < text_columns or not head else "---:" for number, head in enumerate(heads)]
    lines = [f"| {' | '.join(heads)} |", f"|{'|'.join(aligned)}|"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def write_json(path: Path, report: Any) -> None:
    """Write a report. Keys that are no text become text."""
    path.write_bytes(orjson.dumps(report, option=orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS))
