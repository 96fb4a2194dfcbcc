"""Compiled loops start without a cache, and with a torn one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = """
from simul.common.runtime.compiled import INT64, compiled


@compiled(INT64)
def doubled(x):
    return 2 * x


print(doubled(21))
"""


def _run(script: Path) -> str:
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=280, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.timeout(600)
def test_a_torn_cache_costs_time_only(tmp_path: Path) -> None:
    script = tmp_path / "loops.py"
    script.write_text(SOURCE)
    assert _run(script) == "42\n"
    kept = [*tmp_path.rglob("*.nbi"), *tmp_path.rglob("*.nbc")]
    assert len(kept) == 2
    for file in kept:
        file.write_bytes(file.read_bytes()[:50])
    assert _run(script) == "42\n"


def test_nowhere_to_keep_them_costs_time_only(monkeypatch: pytest.MonkeyPatch) -> None:
    from numba.core import caching

    from simul.common.runtime.compiled import INT64, compiled

    monkeypatch.setattr(caching.CacheImpl, "_locator_classes", [])
    assert compiled(INT64)(lambda x: 2 * x)(21) == 42
