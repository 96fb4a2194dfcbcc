"""The network `board_resnet`: which cell of which plane is which action, and what it refuses."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
import torch

from simul.common.config.schema import NetworkConfig
from simul.common.errors import ConfigError
from simul.common.nets.base import example_observation
from simul.common.nets.build import build_network
from simul.common.protocol.specs import GameSpec, Slice
from tests.unit.common.nets.conftest import trained

HEIGHT, WIDTH, PLANES, REST = 5, 4, 3, 2
CELLS = (-1, *np.random.default_rng(0).permutation(PLANES * HEIGHT * WIDTH)[:11].tolist(), -1)
NETWORK = "board_resnet", {"channels": 8, "blocks": 2, "hidden": 16}


def spec_of(dtype: str = "uint8", rest: int = REST, **more) -> GameSpec:
    mapping = {"action_planes": PLANES, "action_cells": CELLS} | more
    return GameSpec(
        "board", 2 * HEIGHT * WIDTH + rest, len(CELLS), dtype,
        observation_shape=(2, HEIGHT, WIDTH), observation_axes="CHW", **mapping,
    )  # fmt: skip


def inputs(spec: GameSpec, rows: int, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    draw = torch.Generator().manual_seed(seed)
    observation = example_observation(spec, torch.rand(rows, spec.observation_size, generator=draw))
    observation[:, 2 * HEIGHT * WIDTH :] = observation[:, 2 * HEIGHT * WIDTH :] > 0.5
    return observation, torch.ones(rows, spec.num_actions, dtype=torch.bool), torch.zeros(rows, 0)


def test_an_action_reads_its_cell_of_its_plane_and_one_without_a_cell_the_whole_board() -> None:
    head = trained(spec_of(), *NETWORK).policy_head
    x = torch.randn(6, 8, HEIGHT, WIDTH, generator=torch.Generator().manual_seed(1))
    logits = head(x)
    weight, bias = head.conv.weight.flatten(1), head.conv.bias
    pooled = head.apart(x.mean((2, 3)))
    for action, cell in enumerate(CELLS):
        if cell < 0:
            expected = pooled[:, CELLS[:action].count(-1)]
        else:
            plane, place = divmod(cell, HEIGHT * WIDTH)
            expected = x[:, :, place // WIDTH, place % WIDTH] @ weight[plane] + bias[plane]
        torch.testing.assert_close(logits[:, action], expected)


@pytest.mark.parametrize("dtype", ["uint8", "float32", "float16"])
@pytest.mark.parametrize("mapping", [{}, {"action_planes": 0, "action_cells": ()}])
@pytest.mark.parametrize("rest", [0, REST])
def test_rows_are_independent_and_values_lie_within_one(dtype, mapping, rest) -> None:
    spec = spec_of(dtype, rest, **mapping)
    network = trained(spec, *NETWORK)
    observation, mask, state = inputs(spec, 7)
    logits, value, after = network(observation, mask, state)
    assert logits.shape == (7, len(CELLS))
    assert after.shape == (7, 0)
    assert (value.abs() <= 1).all()
    assert value.std() > 0
    alone = [network(observation[i : i + 1], mask[:1], state[:1]) for i in range(7)]
    torch.testing.assert_close(torch.cat([row[0] for row in alone]), logits, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(torch.cat([row[1] for row in alone]), value, rtol=1e-5, atol=1e-5)


def test_numbers_behind_the_board_matter() -> None:
    spec = spec_of("float32")
    network = trained(spec, *NETWORK)
    observation, mask, state = inputs(spec, 2)
    observation[1] = observation[0]
    observation[1, -1] += 1
    logits, value, _ = network(observation, mask, state)
    assert (logits[0] != logits[1]).any()
    assert value[0] != value[1]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"action_cells": CELLS[:-1]}, r"12 action_cells .* one of each of its 13 actions"),
        ({"action_planes": 1}, r"below 1 action_planes x 5 x 4 = 20, or -1"),
        ({"action_cells": (-2, *CELLS[1:])}, r"action_cells from -2 to"),
        ({"observation_shape": (), "observation_axes": ""}, "observes a vector, and no image"),
    ],
)
def test_what_does_not_fit_is_refused_with_a_sentence(change, words) -> None:
    with pytest.raises(ConfigError, match=words):
        build_network(NetworkConfig(*NETWORK), msgspec.structs.replace(spec_of(), **change))


@pytest.mark.parametrize("mapping", [{}, {"action_planes": 0, "action_cells": ()}, {"action_cells": CELLS[1:-1] * 2}])
def test_listed_actions_have_the_logits_and_gradients_of_all(mapping) -> None:
    spec = spec_of(**mapping)
    spec = msgspec.structs.replace(spec, num_actions=len(spec.action_cells or CELLS))
    network = trained(spec, *NETWORK).requires_grad_(True)
    rows = inputs(spec, 6)
    actions = torch.from_numpy(np.random.default_rng(1).integers(spec.num_actions, size=(6, 9)))
    logits, value, _ = network(*rows)
    wanted = logits.gather(1, actions)
    listed, listed_value = network.forward_listed(*rows, actions)
    torch.testing.assert_close(listed, wanted, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(listed_value, value, rtol=1e-5, atol=1e-5)
    with torch.no_grad():  # as the server asks: by another loop
        torch.testing.assert_close(network.forward_listed(*rows, actions)[0], wanted, rtol=1e-5, atol=1e-5)
    weights = torch.randn(listed.shape, generator=torch.Generator().manual_seed(2))
    parameters = list(network.parameters())
    by_list = torch.autograd.grad((listed * weights).sum() + listed_value.sum(), parameters)
    by_all = torch.autograd.grad((wanted * weights).sum() + value.sum(), parameters)
    for found, expected in zip(by_list, by_all):
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("mapping", [{}, {"action_planes": 0, "action_cells": ()}])
def test_of_no_rows_it_computes_nothing_and_a_gradient_of_zero(mapping) -> None:
    """As a rank of the learner does whose part of a minibatch is empty."""
    spec = spec_of(**mapping)
    network = trained(spec, *NETWORK).requires_grad_(True)
    rows = [each[:0] for each in inputs(spec, 1)]
    listed, value = network.forward_listed(*rows, torch.zeros(0, 3, dtype=torch.int64))
    assert (listed.shape, value.shape) == ((0, 3), (0,))
    (listed.sum() + value.sum()).backward()
    assert all(parameter.grad is None or not parameter.grad.any() for parameter in network.parameters())


@pytest.mark.parametrize("mapping", [{}, {"action_planes": 0, "action_cells": ()}])
@pytest.mark.parametrize(("planes", "numbers"), [(3, 2), (3, 0), (0, 2)])
def test_what_the_end_will_show_is_predicted_beside_the_same_policy_and_value(mapping, planes, numbers) -> None:
    spec = spec_of(**mapping, ending_planes=planes, ending_numbers=numbers)
    network = trained(spec, *NETWORK).requires_grad_(True)
    rows, actions = inputs(spec, 6), torch.arange(9).repeat(6, 1)
    logits, value, *ending = network.forward_predicting(*rows, actions)
    listed, listed_value = network.forward_listed(*rows, actions)
    assert torch.equal(logits, listed)
    assert torch.equal(value, listed_value)
    assert [tuple(part.shape) for part in ending] == [(6, size) for size in spec.ending_sizes if size]
    plain = trained(spec_of(**mapping), *NETWORK)
    assert not plain.predicts_ending
    of_ending = {name for name, _ in network.named_parameters()} - {name for name, _ in plain.named_parameters()}
    assert of_ending == {
        f"ending_{part}.{name}"
        for part, count in (("planes", planes), ("numbers", numbers))
        for name in ("weight", "bias")
        if count
    }
    gradients = torch.autograd.grad(sum(part.sum() for part in ending), network.stem.weight)
    assert gradients[0].any(), "the tower learns from it"


@pytest.mark.parametrize(("low", "high", "middle", "unit"), [(0, 200, 100, 25), (0, 8, 4, 1), (5, 5, 0, 1)])
def test_bytes_behind_the_board_are_scaled_as_the_layout_says(low, high, middle, unit) -> None:
    """Two specs of a position: one has the number as it is, one as a byte whose range, if any, means -4 to 4."""
    board = Slice("board", 0, 2 * HEIGHT * WIDTH, high=255)
    plain = spec_of(layout=(board, Slice("facts", 2 * HEIGHT * WIDTH, REST)))
    scaled = spec_of(layout=(board, Slice("facts", 2 * HEIGHT * WIDTH, REST, low=low, high=high)))
    networks = [trained(spec, *NETWORK) for spec in (plain, scaled)]
    rows = inputs(plain, 5)
    larger = rows[0].clone()
    larger[:, 2 * HEIGHT * WIDTH :] = middle + unit * larger[:, 2 * HEIGHT * WIDTH :]
    wanted, found = networks[0](*rows), networks[1](larger, *rows[1:])
    torch.testing.assert_close(found[0], wanted[0])
    torch.testing.assert_close(found[1], wanted[1])
    assert networks[0].state_dict().keys() == networks[1].state_dict().keys()
