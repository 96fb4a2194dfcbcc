"""The Python of docs/networks.md runs as it is printed there: the networks learn, the spec is one."""

from __future__ import annotations

import re
import sys
import types

import numpy as np
import pytest
import torch

from simul.common.config.schema import NetworkConfig
from simul.common.config.trust import EVERYTHING
from simul.common.nets.build import build_network
from simul.common.protocol.specs import random_observations
from simul.common.runtime.installation import ROOT
from tests.support.declared import DECLARED
from tests.unit.common.nets.conftest import assert_overfits


def block_with(text: str) -> dict[str, object]:
    """What the block that has `text` defines."""
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "networks.md").read_text(), re.DOTALL)
    (block,) = [block for block in blocks if text in block]
    names: dict[str, object] = {}
    exec(block, names)  # noqa: S102  (our own documentation)
    return names


@pytest.mark.parametrize("name", ["GruNetwork", "AttentionNetwork"])
def test_a_network_of_ones_own_learns(name, monkeypatch):
    module = types.ModuleType("of_the_docs")
    vars(module).update(block_with(f"class {name}"))
    vars(module)[name].__module__ = "of_the_docs"
    monkeypatch.setitem(sys.modules, "of_the_docs", module)
    network = build_network(NetworkConfig(f"of_the_docs:{name}"), DECLARED, seed=1, trust=EVERYTHING)
    observation = torch.from_numpy(random_observations(DECLARED, 18, np.random.default_rng(0))).unflatten(0, (3, 6))
    assert_overfits(network, observation, torch.ones(3, 6, DECLARED.num_actions, dtype=torch.bool))


def test_the_spec_declares_what_attention_reads():
    spec = block_with("EntityGroup(")["spec"]
    network = build_network(NetworkConfig("attention"), spec)
    assert len(network.inputs.groups) == 1
    assert network.inputs.rest.width == 1
