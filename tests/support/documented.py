"""The commands that the documentation prints: in code blocks, and in the cells of tables."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from simul.common.runtime.installation import ROOT

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
_BLOCK = re.compile(r"(<!-- runs -->\n\n)?^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_SPAN = re.compile(r"`((?:for |simul )[^`]+)`")
_SIMUL = re.compile(r"(?:^|; do |&& )(?:\.venv/bin/)?(simul [a-z].*?)(?=$|; done| && | &$)")


def commands(page: Path) -> list[str]:
    """Every `simul COMMAND ...` of a page, without comments; names of the reader's own are in capitals.

    A command whose printed output begins with an error is left out.
    """
    text = page.read_text()
    text = re.sub(r"^\$ .*\n(?=simul: )", "", text, flags=re.MULTILINE)
    lines = [line.removeprefix("$ ") for _, language, block in _BLOCK.findall(text) if not language
             for line in block.replace(" \\\n", "").splitlines()]  # fmt: skip
    lines += _SPAN.findall(_BLOCK.sub("", text))
    return [found for line in lines for found in _SIMUL.findall(re.sub(r"\s+[#>].*| \(.*", "", line))]


def options_of(command: str) -> list[str]:
    """The arguments of `simul`."""
    return shlex.split(command)[1:]


def runnable_blocks(page: Path) -> list[str]:
    """Blocks of shell or Python that are marked with the comment `<!-- runs -->`, as scripts of bash."""
    found = [(language, block) for marked, language, block in _BLOCK.findall(page.read_text()) if marked]
    return [f"python - <<'END'\n{block}END\n" if language == "python" else block for language, block in found]


def recipes(page: Path) -> list[str]:
    """Commands and loops of the tables of recipes: cells that begin with one, in the order of the page."""
    rows = re.findall(r"^\| [^|]+ \| (`(?:simul|for) .*) \|$", page.read_text(), re.MULTILINE)
    return [span for row in rows for span in _SPAN.findall(row)]
