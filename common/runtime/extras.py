"""The command that installs what an extra of Simul brings.

It names packages, not `simul[EXTRA]`: Simul is on no package index, and the name belongs to another project there.
"""

from __future__ import annotations

import re
import shlex
import sys
import tomllib
from importlib.metadata import requires

from simul.common.runtime.installation import IN_CHECKOUT, ROOT


def install_extra(extra: str) -> str:
    """The command for the packages of an extra. Raises LookupError where Simul has no such extra."""
    return pip_install(*(_of_checkout(extra) if IN_CHECKOUT else _of_distribution(extra)))


def pip_install(*packages: str) -> str:
    """The command, quoted for a shell, that installs packages where this Python finds them."""
    return shlex.join([sys.executable or "python3", "-m", "pip", "install", *packages])


def _of_checkout(extra: str) -> list[str]:
    """From pyproject.toml: what pip has written about an editable install may be older."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    found: list[str] = project["optional-dependencies"][extra]
    return found


def _of_distribution(extra: str) -> list[str]:
    """From the wheel's metadata, where each requirement of an extra ends with a marker that names it."""
    marker = re.compile(rf"""\s*(?:;|\band)\s*extra == ["']{re.escape(extra)}["']$""")
    found = [marker.sub("", line) for line in requires("simul") or () if marker.search(line)]
    if not found:
        raise LookupError(extra)
    return found
