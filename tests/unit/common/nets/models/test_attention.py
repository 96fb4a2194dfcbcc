"""What a memory behind attention reads."""

import pytest
import torch

from simul.common.config.schema import NetworkConfig
from simul.common.nets.build import build_network
from simul.common.protocol.specs import GameSpec


@pytest.mark.parametrize("memory", ["lstm", "gru"])
def test_inputs_that_were_pushed_together_can_be_told_apart_again(memory):
    """A ReLU in front of the memory would be off for all of them, and no gradient would pass it."""
    spec = GameSpec("memory", 6, 4)
    network = build_network(NetworkConfig("attention", {"width": 32, "hidden": 64, "memory": memory}), spec, seed=1)
    optimizer = torch.optim.Adam(network.parameters(), 3e-3)
    for goal in (torch.sum, lambda x: -torch.pdist(x).clamp(max=3).sum()):
        for _ in range(48):  # steps of an update of configs/memory.yaml
            optimizer.zero_grad()
            goal(network.encode(torch.eye(6))).backward()
            optimizer.step()
    assert torch.pdist(network.encode(torch.eye(6))).min() > 1
