"""Replay pages in tests: what a page says, opened without a browser."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from simul.env_worker.games.pokemon.install.node import find_node

HERE = Path(__file__).parent


def log_of(page: str) -> str:
    """The log inside a page."""
    begin = '<script id="battle" type="application/json">'
    return "".join(f"{line}\n" for line in json.loads(page.split(begin)[1].split("</script>")[0]))


def run_script(name: str, given: str, *arguments: str) -> Any:
    """What a script of this folder prints, as JSON; `given` is its standard input."""
    done = subprocess.run(
        [str(find_node().path), str(HERE / name), *arguments], input=given, capture_output=True, text=True, timeout=250
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
