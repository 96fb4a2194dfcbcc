"""Packed weights: the same answers as plain ones, also after other weights were loaded; else they are not used."""

from __future__ import annotations

import warnings

import pytest
import torch

from simul.common.config.schema import NetworkConfig
from simul.common.nets import packed
from simul.common.nets.build import build_network
from simul.common.nets.traced import record, with_packed_weights

BATCHES = (1, 3, 4, 17, 64)
SUPPORTED = [dtype for dtype in (torch.float32, torch.bfloat16) if dtype in packed._ways()]


def _network(name, dtype, spec, seed=1):
    return build_network(NetworkConfig(name), spec, seed=seed).lowered(dtype).eval().requires_grad_(False)


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
    plain = record(_network(name, dtype, entity_spec), entity_spec)
    found = with_packed_weights(plain, entity_spec, BATCHES)
    assert found.packed is not None
    twin = found.twin()
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
    way = packed._ways()[dtype]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        ways = {dtype: way._replace(linear=torch.jit.script(_wrong_for_17))}
    monkeypatch.setattr(packed, "_ways", lambda: ways)
    plain = record(_network("mlp_lstm", dtype, entity_spec), entity_spec)
    assert with_packed_weights(plain, entity_spec, (1, 4, 64)).packed is not None
    assert with_packed_weights(plain, entity_spec, BATCHES) is plain


@pytest.mark.skipif(not SUPPORTED, reason="this build of torch packs no weights")
@pytest.mark.parametrize("error", [RuntimeError("could not create a primitive descriptor"), AttributeError("no op")])
def test_a_library_that_does_not_pack_them_leaves_the_plain_ones(entity_spec, monkeypatch, error):
    def refuse(weight):
        raise error

    monkeypatch.setattr(packed, "_ways", lambda: {torch.float32: packed.Way(refuse, torch.nn.functional.linear, 0)})
    plain = record(_network("mlp_lstm", torch.float32, entity_spec), entity_spec)
    assert with_packed_weights(plain, entity_spec, BATCHES) is plain


@pytest.mark.skipif(torch.float32 not in SUPPORTED, reason="this build of torch packs no such weights")
def test_a_network_of_several_kinds_of_numbers_is_packed_too(entity_spec):
    network = _network("mlp_lstm", torch.float32, entity_spec)
    network.register_parameter("clock", torch.nn.Parameter(torch.zeros(1, dtype=torch.float64), requires_grad=False))
    assert with_packed_weights(record(network, entity_spec), entity_spec, BATCHES).packed is not None


def test_small_weights_stay_as_they_are(flat_spec):
    small = build_network(NetworkConfig(options={"hidden": 8}), flat_spec, seed=1).eval().requires_grad_(False)
    plain = record(small, flat_spec)
    assert with_packed_weights(plain, flat_spec, BATCHES) is plain
