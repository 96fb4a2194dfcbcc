"""The network `conv_lstm`: which number of a flat observation is which pixel, and what it refuses."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
import torch

from simul.common.config.schema import NetworkConfig
from simul.common.errors import ConfigError
from simul.common.nets.build import build_network
from simul.common.nets.layers.conv import ImageReader
from simul.common.protocol.specs import GameSpec


def spec_of(shape: tuple[int, ...], axes: str, rest: int = 0, dtype: str = "uint8") -> GameSpec:
    size = int(np.prod(shape)) + rest
    return GameSpec("image", size, 3, dtype, observation_shape=shape, observation_axes=axes)


@pytest.mark.parametrize(
    ("axes", "channels_first"),
    [("HWC", (2, 0, 1)), ("CHW", (0, 1, 2)), ("WCH", (1, 2, 0)), ("HW", (0, 1)), ("NHWC", (0, 3, 1, 2))],
)
@pytest.mark.parametrize("rest", [0, 2])
def test_the_reader_puts_every_pixel_where_its_axes_say(axes, channels_first, rest):
    shape = {"N": 2, "C": 3, "H": 4, "W": 5}
    image = np.random.default_rng(1).integers(0, 256, tuple(shape[axis] for axis in axes), np.uint8)
    reader = ImageReader(spec_of(image.shape, axes, rest))
    flat = torch.from_numpy(np.concatenate((image.reshape(-1), np.ones(rest, np.uint8))))
    read, others = reader.read(torch.stack((flat, 0 * flat)), torch.float32)
    expected = image.transpose(channels_first).reshape(-1, 4, 5) / 255
    torch.testing.assert_close(read[0], torch.from_numpy(expected.astype(np.float32)))
    assert read.shape == (2, reader.channels, 4, 5)
    assert not read[1].any()
    assert others.tolist() == [[1.0] * rest, [0.0] * rest]


def test_floats_of_a_board_are_not_scaled():
    read, _ = ImageReader(spec_of((2, 2), "HW", dtype="float32")).read(torch.tensor([[0, 1, 2, 3.0]]), torch.float32)
    assert read.flatten().tolist() == [0, 1, 2, 3]


def test_an_atari_image_fits_the_defaults():
    network = build_network(NetworkConfig("conv_lstm"), spec_of((84, 84, 4), "HWC"))
    assert network.body.in_features == 32 * 11 * 11
    assert network.state_size == 512


@pytest.mark.parametrize(
    ("network", "spec", "words"),
    [
        ("mlp_lstm", spec_of((3, 3), "HW"), r"image observes images, uint8 \[3, 3\].* Set network.name: conv_lstm"),
        ("conv_lstm", GameSpec("vector", 4, 2), "vector observes a vector, and no image. Set network.name: mlp_lstm"),
        ("conv_lstm", spec_of((3, 3), "HH"), r"observation_axes 'HH'.* expected a letter of N, C, H, W for each size"),
        ("conv_lstm", spec_of((3, 3), "HWC"), "expected a letter of N, C, H, W for each size"),
        (
            "conv_lstm",
            msgspec.structs.replace(spec_of((3, 3), "HW"), observation_size=8),
            "in an observation of 8 numbers",
        ),
    ],
)
def test_what_does_not_fit_is_refused_with_a_sentence(network, spec, words):
    with pytest.raises(ConfigError, match=words):
        build_network(NetworkConfig(network), spec)
