"""`import simul`: what it offers, and what it does not load."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import simul
from examples.custom_env import Corridor
from simul.common.config.loader import load_config
from simul.common.errors import ConfigError
from simul.launch import api

HEAVY = ("torch", "numba", "gymnasium")


def test_every_name_is_there():
    assert dir(simul) == simul.__all__
    assert [name for name in simul.__all__ if getattr(simul, name).__name__ not in (name, "InferenceClient")] == [
        "errors"
    ]
    with pytest.raises(AttributeError, match="no attribute 'tran'"):
        _ = simul.tran


@pytest.mark.parametrize("use", ["simul", "simul.errors", "simul.GameSpec('toy', 3, 2)", "simul.train"])
def test_importing_it_loads_nothing_heavy(use):
    code = f"import sys, simul; {use}; sys.exit(str([name for name in {HEAVY!r} if name in sys.modules]))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.strip() == "[]"


@pytest.mark.parametrize("config", ["cartpole", {"game": "gymnasium"}])
def test_a_wrong_setting_is_refused_before_anything_starts(config, tmp_path):
    with pytest.raises(ConfigError, match=r"learner\.clp=1: there is no such key; did you mean learner\.clip"):
        simul.train(config, run_dir=tmp_path / "run", learner={"clp": 1})
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        ("mygame:make_env", "got the name of a game, 'mygame:make_env'. Import it, `from mygame import make_env`, and"),
        ("openspiel:hex", "the name of a game, 'openspiel:hex'. Call train('openspiel', openspiel={'name': 'hex'})"),
        (5, "Expected a YAML file, the name of a shipped configuration such as cartpole, its sections as a dict, or a "
            "game's class or function itself; got 5. Pass one of these, such as train('cartpole')."),
        (None, "; got nothing. Pass one of these"),
        (["cartpole"], "; got ['cartpole']. Pass one of these"),
        ("", "; got ''. Pass one of these"),
    ],
)  # fmt: skip
def test_what_train_cannot_take_is_a_sentence(config, sentence, monkeypatch):
    monkeypatch.setattr(api, "ChildCommand", lambda *_: pytest.fail("started"))
    with pytest.raises(ConfigError, match=re.escape(sentence)):
        simul.train(config)


def test_a_game_that_is_passed_itself_is_named_to_the_run(monkeypatch, tmp_path):
    started = []
    monkeypatch.setattr(api, "ChildCommand", lambda line, _progress: started.append(line))
    monkeypatch.chdir(tmp_path)
    run = simul.train(Corridor, game_options={"length": 5}, progress=False)
    assert run.run_dir == tmp_path / "runs" / "Corridor"
    command, file, *options = started[0]
    assert command == "up"
    assert load_config(Path(file)).game == "examples.custom_env:Corridor"
    assert "game_options.length=5" in options
    with pytest.raises(ConfigError, match="cannot import a lambda"):
        simul.train(lambda: Corridor(5))
    assert len(started) == 1
