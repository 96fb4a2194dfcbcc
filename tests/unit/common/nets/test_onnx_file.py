"""`simul export`: the file answers as the policy does, in a runtime that knows neither Simul nor torch."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys

import numpy as np
import pytest
import torch

from simul.common.config.schema import NetworkConfig
from simul.common.errors import ConfigError
from simul.common.nets import onnx_file
from simul.common.nets.io import load_policy
from simul.common.nets.onnx_file import INPUTS, main, write_onnx
from simul.common.protocol.specs import GameSpec, random_observations
from simul.common.runtime.installation import ROOT
from simul.env_worker.games.ofc.observation import ofc_spec
from simul.env_worker.games.ofc.rules import Rules
from tests.support.checkpoints import write_checkpoint
from tests.support.declared import DECLARED
from tests.support.late import late

SPEC = GameSpec("toy", 5, 3)
IMAGE = GameSpec("image", 2 * 25, 25, "uint8", observation_shape=(2, 5, 5), observation_axes="CHW")
onnxruntime = late("onnxruntime")
pytestmark = pytest.mark.skipif(not importlib.util.find_spec("onnxruntime"), reason="without the extra [export]")


def policy_of(tmp_path, spec, name="mlp_lstm", **options):
    options = options or {"hidden": 16}
    return load_policy(write_checkpoint(tmp_path / "checkpoint", spec, 3, NetworkConfig(name, options)))


@pytest.mark.slow  # .ci/long runs it
def test_the_file_answers_alone_row_by_row_and_says_what_it_is(tmp_path, capsys):
    policy = policy_of(tmp_path, SPEC)
    assert main([str(tmp_path / "checkpoint"), str(tmp_path / "policy.onnx")]) == 0
    assert "differ from the policy's by at most" in capsys.readouterr().out
    session = onnxruntime.InferenceSession(tmp_path / "policy.onnx")
    state = np.zeros((1, 32), np.float32)
    ours = policy.initial_state(1)
    for step in range(3):
        rows = [random_observations(SPEC, 1, np.random.default_rng(step)), np.array([[True, step > 1, True]]), state]
        logits, value, state = session.run(None, dict(zip(INPUTS, rows)))
        wanted = policy(*map(torch.from_numpy, rows[:2]), ours)
        ours = wanted[2]
        for found, expected in zip((logits, value, state), wanted):
            np.testing.assert_allclose(found, expected.numpy(), atol=1e-5)
        assert np.isneginf(logits[0, 1]) == (step < 2)
    facts = json.loads(session.get_modelmeta().custom_metadata_map["simul"])
    assert (facts["game"], facts["spec"], facts["policy_version"]) == ("toy", SPEC.fingerprint(), 3)


def test_what_stands_in_the_way_is_a_sentence_and_an_older_file_stays(tmp_path, monkeypatch, capsys):
    file = tmp_path / "policy.onnx"
    file.write_text("older")
    policy = policy_of(tmp_path, SPEC)
    with monkeypatch.context() as patched:
        patched.setattr(onnx_file, "_export", lambda policy, rows, file: file.touch())
        patched.setattr(onnx_file, "_difference", lambda *_: float("nan"))
        with pytest.raises(ConfigError, match="would answer otherwise than the policy, by nan"):
            write_onnx(policy, file)
    with monkeypatch.context() as patched:
        patched.setattr(importlib.util, "find_spec", lambda name: None)
        with pytest.raises(ConfigError, match=r"ONNX needs onnx, onnxscript, onnxruntime.* -m pip install 'onnx>="):
            write_onnx(policy, file)
    policy.network.forward = lambda *_: torch.fx.wrap("x")
    with pytest.raises(ConfigError, match="The network mlp_lstm cannot be exported: "):
        write_onnx(policy, file)
    assert file.read_text() == "older"
    assert main([str(tmp_path / "none"), str(file)]) == 2
    assert capsys.readouterr().err.startswith("simul: ")


@pytest.mark.slow  # .ci/long runs it
@pytest.mark.parametrize(
    ("name", "spec", "options"),
    [
        ("mlp", DECLARED, {"hidden": 16, "width": 8}), ("mlp_gru", DECLARED, {"hidden": 16, "width": 8}),
        ("attention", DECLARED, {"hidden": 16, "width": 8}),
        ("attention", DECLARED, {"hidden": 16, "width": 8, "memory": "lstm"}),
        ("conv_lstm", IMAGE, {"channels": [4], "blocks": 1, "hidden": 16}),
        ("board_resnet", IMAGE, {"channels": 8, "blocks": 2, "hidden": 16}),
        ("ofc", ofc_spec(Rules()), {"hidden": 24, "row": 16, "joint": 16}),
    ],
)  # fmt: skip
def test_every_network_can_be_exported(tmp_path, name, spec, options):
    assert write_onnx(policy_of(tmp_path, spec, name, **options), tmp_path / "policy.onnx") < 1e-5


@pytest.mark.slow  # .ci/long runs it
@pytest.mark.parametrize("name", ["pokemon", "pokemon_doubles", "blokus_duo", "ofc"])
def test_the_shipped_policies_can_be_exported(tmp_path, name):
    assert write_onnx(load_policy(f"zoo:{name}"), tmp_path / "policy.onnx") < 1e-5


@pytest.mark.slow  # .ci/long runs it
def test_the_example_of_the_page_plays_an_episode_without_simul_and_torch(tmp_path):
    write_onnx(load_policy("zoo:cartpole"), tmp_path / "policy.onnx")
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "custom_game.md").read_text(), re.DOTALL)
    (example,) = [block for block in blocks if "InferenceSession" in block]
    example = example.replace("env.reset()", "env.reset(seed=1)")
    example += "\nimport sys\nprint(truncated, 'torch' in sys.modules, 'simul' in sys.modules)\n"
    done = subprocess.run([sys.executable, "-c", example], cwd=tmp_path, capture_output=True, text=True, timeout=280)
    assert done.stdout.split() == ["True", "False", "False"], done.stderr
