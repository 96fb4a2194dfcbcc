from __future__ import annotations

import sys

import pytest

from simul.common.errors import EnvError
from simul.env_worker.games.pokemon.install import cost
from simul.env_worker.games.pokemon.install.cost import measure_cost
from simul.env_worker.games.pokemon.install.node import MIN_MAJOR

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="uses shell scripts as stand-ins for Node")

ANSWER = '{"cpu_us_per_decision": 231.4, "node": "v26.1.0", "showdown": "0.1", "accelerated": %s, "note": "%s"}'


def stand_in(monkeypatch, folder, script: str):
    """A Node that says its version when asked for it, and otherwise runs `script`."""
    path = folder / "node"
    path.write_text(f'#!/bin/sh\nif [ "$1" = --version ]; then echo v{MIN_MAJOR}.0.0; exit; fi\n{script}\n')
    path.chmod(0o755)
    monkeypatch.setenv("SIMUL_NODE", str(path))


def test_a_plain_simulator_is_said_to_be_one(monkeypatch, tmp_path):
    stand_in(monkeypatch, tmp_path, f"echo '{ANSWER % ('false', 'another version')}'")
    assert str(measure_cost()) == (
        "pokemon-showdown 0.1 on Node 26.1.0: about 231 us of one core a decision (gen9randombattle), "
        "NOT accelerated: another version"
    )


def test_a_simulator_that_does_not_run_is_a_sentence(monkeypatch, tmp_path):
    stand_in(monkeypatch, tmp_path, "echo 'Error: Cannot find module x' >&2; exit 1")
    with pytest.raises(EnvError, match="does not run: Error: Cannot find module x"):
        measure_cost()


def test_the_installed_simulator_tells_what_it_costs(monkeypatch):
    monkeypatch.setattr(cost, "WARM_UP", 0)
    monkeypatch.setattr(cost, "BATTLES", 1)
    found = measure_cost()
    assert 10 < found.us < 100_000
    assert found.accelerated
    assert str(found).endswith(", accelerated")
