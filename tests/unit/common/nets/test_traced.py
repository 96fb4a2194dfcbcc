"""Traced forwards and packed weights give the answers of the plain network and follow new weights, or are not used."""

from __future__ import annotations

import warnings

import pytest
import torch
from torch import nn

from simul.common.config.schema import NetworkConfig
from simul.common.config.trust import EVERYTHING
from simul.common.nets import traced
from simul.common.nets.base import RecurrentNetwork
from simul.common.nets.build import build_network
from simul.common.nets.traced import trace_network, traced_forward, with_packed_weights


@pytest.mark.parametrize(
    ("name", "layout"),
    [
        ("mlp_lstm", "entity_spec"),
        ("conv_lstm", "image_spec"),
        ("mlp", "declared_spec"),
        ("mlp_gru", "declared_spec"),
        ("attention", "declared_spec"),
        ("attention", "flat_spec"),
        ("attention", "only_entities_spec"),
        ("pokemon", "entity_spec"),
        ("pokemon", "doubles_spec"),
        ("board_resnet", "board_spec"),
        ("ofc", "ofc_spec"),
        ("examples.custom_network:GruNetwork", "entity_spec"),
        ("examples.attention_network:AttentionNetwork", "declared_spec"),
    ],
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@torch.inference_mode()
def test_the_recorded_forward_is_the_same_and_follows_new_weights(name, layout, dtype, request, observed):
    spec = request.getfixturevalue(layout)
    network = _network(name, dtype, spec)
    forward = traced_forward(network, spec)
    assert forward is not network, "not recorded"
    for seed, batch in ((2, 5), (3, 33)):
        network.load_state_dict(_network(name, dtype, spec, seed).state_dict())
        observation, mask = observed(spec, batch, seed=seed)
        state = torch.randn(batch, network.state_size)
        torch.testing.assert_close(forward(observation, mask, state), network(observation, mask, state), rtol=0, atol=0)


@pytest.mark.parametrize("name", ["mlp_lstm", "mlp_gru", "attention", "pokemon", "examples.custom_network:GruNetwork"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_twin_answers_as_the_first_and_has_weights_of_its_own(name, dtype, entity_spec, observed):
    network = _network(name, dtype, entity_spec)
    first = trace_network(network, entity_spec)
    twin = first.clone()
    inputs = *observed(entity_spec, 5, seed=3), torch.randn(5, network.state_size)
    before = first.forward(*inputs)
    torch.testing.assert_close(twin.forward(*inputs), before, rtol=0, atol=0)
    twin.network.load_state_dict(_network(name, dtype, entity_spec, seed=2).state_dict())
    torch.testing.assert_close(first.forward(*inputs), before, rtol=0, atol=0)
    torch.testing.assert_close(twin.forward(*inputs), twin.network(*inputs), rtol=0, atol=0)
    assert not torch.equal(twin.forward(*inputs)[1], before[1])


class Branching(RecurrentNetwork):
    """Goes another way in a larger batch, or where the numbers are negative, which no recording shows."""

    def __init__(self, spec, by: str) -> None:
        super().__init__()
        self.head, self.by = nn.Linear(spec.observation_size, spec.num_actions), by

    def forward(self, observation, mask, state):
        logits = self.head(observation)
        plain = len(observation) > 5 if self.by == "batch" else observation.sum() > 0
        return logits if plain else -logits, logits[:, 0], state


@pytest.mark.parametrize("by", ["batch", "numbers"])
def test_a_network_that_cannot_be_recorded_is_served_as_it_is(by, flat_spec):
    network = Branching(flat_spec, by).eval()
    assert traced_forward(network, flat_spec) is network


BATCHES = (1, 3, 4, 17, 64)
SUPPORTED = [dtype for dtype in (torch.float32, torch.bfloat16) if dtype in traced._packings()]


def _network(name, dtype, spec, seed=1):
    network = build_network(NetworkConfig(name), spec, seed=seed, trust=EVERYTHING)
    return network.lowered(dtype).eval().requires_grad_(False)


def _wrong_for_17(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, packed: torch.Tensor) -> torch.Tensor:
    result = torch.nn.functional.linear(x, weight, bias)
    return result + 1.0 if x.size(0) == 17 else result


def _close(got, expected, dtype):
    tolerance = {torch.float32: 1e-4, torch.bfloat16: 2e-2}[dtype]
    torch.testing.assert_close(got, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.skipif(not SUPPORTED, reason="this build of torch packs no weights")
@pytest.mark.parametrize("name", ["mlp_lstm", "pokemon"])
@pytest.mark.parametrize("dtype", SUPPORTED)
def test_packed_weights_answer_as_plain_ones_follow_new_ones_and_twins_have_their_own(
    name, dtype, entity_spec, observed
):
    plain = trace_network(_network(name, dtype, entity_spec), entity_spec)
    found = with_packed_weights(plain, entity_spec, BATCHES)
    assert found.packed is not None
    twin = found.clone()
    other = _network(name, dtype, entity_spec, seed=2)
    for batch in (1, 5, 33):
        inputs = *observed(entity_spec, batch, seed=batch), torch.randn(batch, plain.network.state_size)
        before = plain.network(*inputs)
        _close(found.forward(*inputs), before, dtype)
        _close(twin.forward(*inputs), before, dtype)
    serving = twin.forward
    twin.load(other.state_dict())
    _close(serving(*inputs), other(*inputs), dtype)
    _close(found.forward(*inputs), before, dtype)
    assert not torch.allclose(other(*inputs)[1], before[1], atol=2e-2)


@pytest.mark.skipif(not SUPPORTED, reason="this build of torch packs no weights")
def test_what_gives_other_answers_at_one_batch_size_is_not_used(entity_spec, monkeypatch):
    dtype = SUPPORTED[0]
    way = traced._packings()[dtype]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        ways = {dtype: way._replace(linear=torch.jit.script(_wrong_for_17))}
    monkeypatch.setattr(traced, "_packings", lambda: ways)
    plain = trace_network(_network("mlp_lstm", dtype, entity_spec), entity_spec)
    assert with_packed_weights(plain, entity_spec, (1, 4, 64)).packed is not None
    assert with_packed_weights(plain, entity_spec, BATCHES) is plain


@pytest.mark.skipif(not SUPPORTED, reason="this build of torch packs no weights")
@pytest.mark.parametrize("error", [RuntimeError("could not create a primitive descriptor"), AttributeError("no op")])
def test_a_library_that_does_not_pack_them_leaves_the_plain_ones(entity_spec, monkeypatch, error):
    def refuse(weight):
        raise error

    packings = {torch.float32: traced.WeightPacking(refuse, torch.nn.functional.linear, 0)}
    monkeypatch.setattr(traced, "_packings", lambda: packings)
    plain = trace_network(_network("mlp_lstm", torch.float32, entity_spec), entity_spec)
    assert with_packed_weights(plain, entity_spec, BATCHES) is plain


@pytest.mark.skipif(torch.float32 not in SUPPORTED, reason="this build of torch packs no such weights")
def test_a_network_of_several_kinds_of_numbers_is_packed_too(entity_spec):
    network = _network("mlp_lstm", torch.float32, entity_spec)
    network.register_parameter("clock", torch.nn.Parameter(torch.zeros(1, dtype=torch.float64), requires_grad=False))
    assert with_packed_weights(trace_network(network, entity_spec), entity_spec, BATCHES).packed is not None


def test_small_weights_stay_as_they_are(flat_spec):
    small = build_network(NetworkConfig(options={"hidden": 8}), flat_spec).eval().requires_grad_(False)
    plain = trace_network(small, flat_spec)
    assert with_packed_weights(plain, flat_spec, BATCHES) is plain
