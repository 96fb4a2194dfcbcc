"""Compiled loops start without a cache, with a torn one and with an old one; integers cost one compilation."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

SOURCE = """
from simul.common.runtime.compiled import INT64, compiled


@compiled(INT64)
def doubled(x):
    return 2 * x


print(doubled(21))
"""

LOOP = """
from simul.common.runtime.compiled import compiled


@compiled()
def {name}(x):
    return {result}
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


def test_a_loop_typed_on_its_first_call_sees_changes_of_the_files_beside_it(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text(LOOP.format(name="inner", result="x + 1"))
    (tmp_path / "loop.py").write_text("from beside import inner\n" + LOOP.format(name="outer", result="2 * inner(x)"))
    (tmp_path / "main.py").write_text("from loop import outer\nprint(outer(20))\n")
    assert _run(tmp_path / "main.py") == "42\n"
    assert list(tmp_path.rglob("loop.outer*.nbc"))
    (tmp_path / "beside.py").write_text(LOOP.format(name="inner", result="x + 2"))
    assert _run(tmp_path / "main.py") == "44\n"


def test_a_loop_of_stated_types_sees_constants_of_the_files_beside_it(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("SIZE = 32\n")
    (tmp_path / "loops.py").write_text("from beside import SIZE\n" + SOURCE.replace("2 * x", "SIZE + x"))
    assert _run(tmp_path / "loops.py") == "53\n"
    (tmp_path / "beside.py").write_text("SIZE = 40\n")
    assert _run(tmp_path / "loops.py") == "61\n"


def test_integers_and_constants_are_one_compilation(monkeypatch: pytest.MonkeyPatch) -> None:
    from numba import types
    from numba.core import caching

    from simul.common.runtime.compiled import compiled

    monkeypatch.setattr(caching.CacheImpl, "_locator_classes", [])  # what is read from a cache has compiled nothing

    @compiled()
    def added(x, y):
        return x + y

    @compiled()
    def several(numbers):
        return added(numbers[0], 1) + added(2, numbers[1]) + added(len(numbers), True)

    assert several(np.array([100, 100], np.int8)) == 206
    assert added.signatures == [(types.int64, types.int64), (types.int64, types.boolean)]


def test_nowhere_to_keep_them_costs_time_only(monkeypatch: pytest.MonkeyPatch) -> None:
    from numba.core import caching

    from simul.common.runtime.compiled import INT64, compiled

    monkeypatch.setattr(caching.CacheImpl, "_locator_classes", [])
    assert compiled(INT64)(lambda x: 2 * x)(21) == 42
