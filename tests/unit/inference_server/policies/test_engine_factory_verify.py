"""Weights are verified the same way whether they came by the socket or lie in a learner's memory."""

from __future__ import annotations

import os
import sys

import pytest
import torch
from msgspec.structs import replace
from safetensors.torch import save

from simul.common.config.schema import NetworkConfig
from simul.common.errors import UnreadableWeightsError, WeightsError
from simul.common.nets.build import build_network
from simul.common.nets.io import fingerprint, weights_to_bytes
from simul.common.protocol.messages import Weights
from simul.common.protocol.shared_memory import anonymous_file, file_number, shared_path
from simul.common.protocol.specs import GameSpec
from simul.inference_server.policies import engine_factory as module
from simul.inference_server.policies.engine_factory import verify

linux = pytest.mark.skipif(sys.platform != "linux", reason="memory is shared on Linux only")

SPEC = GameSpec(name="test", observation_size=6, num_actions=3)
NETWORK = build_network(NetworkConfig(options={"hidden": 8}), SPEC)
OTHER = weights_to_bytes(build_network(NetworkConfig(options={"hidden": 9}), SPEC))
GOOD = weights_to_bytes(NETWORK)


def announce(data: bytes) -> Weights:
    return Weights(policy="learner", policy_version=1, fingerprint=fingerprint(data))


@pytest.fixture
def lay():
    """Lays bytes into memory and announces them."""
    files: list[int] = []

    def lay(data: bytes) -> Weights:
        files.append(anonymous_file(data, len(data), writable=False))
        return replace(announce(data), path=shared_path(files[-1]), file_number=file_number(files[-1]))

    yield lay
    for file in files:
        os.close(file)


@linux
@pytest.mark.parametrize("piece", [1000, module.PIECE_BYTES])
def test_out_of_memory_come_the_weights_that_would_have_come_by_the_socket(lay, monkeypatch, piece) -> None:
    monkeypatch.setattr(module, "PIECE_BYTES", piece)  # of what came by the socket
    open_before = len(os.listdir("/proc/self/fd"))
    weights = lay(GOOD)
    by_memory, by_socket = verify(weights, None, NETWORK), verify(weights, GOOD, NETWORK)
    assert by_memory.keys() == by_socket.keys() == NETWORK.state_dict().keys()
    for name, value in by_memory.items():
        assert torch.equal(value, by_socket[name])
        assert value.dtype == by_socket[name].dtype
    assert len(os.listdir("/proc/self/fd")) == open_before + 1


@linux
def test_what_lies_elsewhere_by_now_is_unreadable_and_says_no_path(lay) -> None:
    older, newer = lay(GOOD), lay(GOOD)
    for weights in (
        replace(older, path="/proc/self/fd/99999"),
        replace(older, path=newer.path),  # as if its maker had closed the older one and been given its place again
        replace(older, file_number=0),
    ):
        with pytest.raises(UnreadableWeightsError) as caught:
            verify(weights, None, NETWORK)
        assert "/" not in str(caught.value)


@pytest.mark.parametrize("data", [GOOD[:-10], GOOD + b"\0", b"", GOOD[:-5] + b"\x7f" + GOOD[-4:]])
def test_what_came_otherwise_than_announced_is_torn(data) -> None:
    with pytest.raises(WeightsError, match="torn"):
        verify(announce(GOOD), data, NETWORK)


def _state() -> dict[str, torch.Tensor]:
    return {name: value.clone() for name, value in NETWORK.state_dict().items()}


@pytest.mark.parametrize("in_memory", [pytest.param(True, marks=linux), False])
@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "not a safetensors file"),
        (b"\x80\x04pickle", "not a safetensors file"),
        (GOOD + b"\0", "not a safetensors file"),
        ((2**62).to_bytes(8, "little") + GOOD[8:], "not a safetensors file"),
        (OTHER, "expected"),
        (save(_state() | {"intruder": torch.zeros(3)}), "only one side has"),
        (save(_state() | {"value_head.bias": torch.full((1,), torch.nan)}), "not finite"),
    ],
)
def test_what_came_as_announced_but_does_not_fit_is_refused_for_good(lay, in_memory, data, reason) -> None:
    with pytest.raises(WeightsError, match=reason) as caught:
        verify(lay(data) if in_memory else announce(data), None if in_memory else data, NETWORK)
    assert not isinstance(caught.value, UnreadableWeightsError)
