import pytest
import torch
from torch import nn

from simul.common.config.schema import NetworkConfig
from simul.common.nets.base import RecurrentNetwork
from simul.common.nets.build import build_network
from simul.common.nets.traced import record, trace


@pytest.mark.parametrize(
    ("name", "layout"),
    [
        ("mlp_lstm", "entity_spec"),
        ("pokemon", "entity_spec"),
        ("pokemon", "doubles_spec"),
        ("examples.custom_network:GruNetwork", "entity_spec"),
    ],
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_recorded_forward_is_the_same_and_follows_new_weights(name, layout, dtype, request, observed):
    spec = request.getfixturevalue(layout)
    with torch.inference_mode():
        _check_recorded(NetworkConfig(name), spec, dtype, observed)


def _check_recorded(config, spec, dtype, observed):
    network = build_network(config, spec, seed=1).lowered(dtype)
    forward = trace(network, spec)
    assert forward is not network
    for seed, batch in ((2, 5), (3, 33)):
        network.load_state_dict(build_network(config, spec, seed=seed).state_dict())
        observation, mask = observed(spec, batch, seed=seed)
        state = torch.randn(batch, network.state_size)
        torch.testing.assert_close(forward(observation, mask, state), network(observation, mask, state), rtol=0, atol=0)


@pytest.mark.parametrize("name", ["mlp_lstm", "pokemon", "examples.custom_network:GruNetwork"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_twin_answers_as_the_first_and_has_weights_of_its_own(name, dtype, entity_spec, observed):
    network = build_network(NetworkConfig(name), entity_spec, seed=1).lowered(dtype).requires_grad_(False)
    first = record(network, entity_spec)
    twin = first.twin()
    inputs = *observed(entity_spec, 5, seed=3), torch.randn(5, network.state_size)
    before = first.forward(*inputs)
    torch.testing.assert_close(twin.forward(*inputs), before, rtol=0, atol=0)
    twin.network.load_state_dict(build_network(NetworkConfig(name), entity_spec, seed=2).state_dict())
    torch.testing.assert_close(first.forward(*inputs), before, rtol=0, atol=0)
    torch.testing.assert_close(twin.forward(*inputs), twin.network(*inputs), rtol=0, atol=0)
    assert not torch.equal(twin.forward(*inputs)[1], before[1])


class Branching(RecurrentNetwork):
    """Its arithmetic depends on the batch: a recording would be wrong."""

    def __init__(self, actions: int) -> None:
        super().__init__()
        self.actions = actions

    def forward(self, observation, mask, state):
        offset = 1.0 if len(observation) > 5 else 0.0
        return torch.full(mask.shape, offset), torch.zeros(len(mask)), state


def test_a_network_that_cannot_be_recorded_is_served_as_it_is(flat_spec):
    network = Branching(flat_spec.num_actions)
    assert trace(network, flat_spec) is network


class _Branches(RecurrentNetwork):
    """Goes another way where the numbers are negative, which no recording shows."""

    def __init__(self, observation_size: int, num_actions: int) -> None:
        super().__init__()
        self.head = nn.Linear(observation_size, num_actions)

    def forward(self, observation, mask, state):
        logits = self.head(observation)
        return logits if observation.sum() > 0 else -logits, logits[:, 0], state


def test_a_network_that_branches_on_its_input_is_served_as_it_is(flat_spec):
    network = _Branches(flat_spec.observation_size, flat_spec.num_actions).eval()
    assert trace(network, flat_spec) is network
