import numpy as np
import pytest
import torch
import torch.nn.functional as F

from simul.common.config.schema import NetworkConfig
from simul.common.errors import ConfigError
from simul.common.nets.build import build_network
from simul.common.nets.layers.conv import SPREAD
from simul.common.nets.layers.entities import dot_products, embedding_sum, mean_and_max
from simul.common.nets.layers.inputs import VectorInputs
from simul.common.protocol.specs import EntityGroup, GameSpec, Slice, random_observations


def gradients(result, inputs):
    return torch.autograd.grad(sum(part.sin().sum() for part in result), inputs)


def test_embedding_sum_is_the_stock_one():
    torch.manual_seed(0)
    table, ids = torch.randn(9, 4, requires_grad=True), torch.randint(0, 9, (50, 3))
    ours, stock = embedding_sum(table, ids), F.embedding(ids, table).sum(1)
    torch.testing.assert_close(ours, stock)
    torch.testing.assert_close(gradients([ours], table), gradients([stock], table))


def test_mean_and_max_are_the_stock_ones():
    torch.manual_seed(0)
    x = torch.randn(5, 2, 6, 4)
    x[:, :, 2:5] = x[:, :, 1:2] + 1  # as foes that were not met
    x.requires_grad_()
    ours, stock = mean_and_max(x), (x.mean(2), x.amax(2))
    torch.testing.assert_close(ours, stock)
    torch.testing.assert_close(gradients(ours, x), gradients(stock, x))


def test_dot_products_are_the_stock_ones():
    torch.manual_seed(0)
    inputs = torch.randn(5, 3, 8, requires_grad=True), torch.randn(5, 4, 8, requires_grad=True)
    ours, stock = dot_products(*inputs), torch.einsum("nke,nue->nku", *inputs)
    torch.testing.assert_close(ours, stock)
    torch.testing.assert_close(gradients([ours], inputs), gradients([stock], inputs))


def _spec(order):
    """Two blocks `own` and two `foe` of an id and a number, that lie in this order."""
    parts = []
    for place, name in enumerate(order):
        parts.append(Slice(f"{name}.kind", 2 * place, 1, "id", high=8.0, vocabulary=9, table="kind"))
        parts.append(Slice(f"{name}.hp", 2 * place + 1, 1))
    groups = (EntityGroup("own", 2), EntityGroup("foe", 2))
    return GameSpec("game", 8, 3, layout=tuple(parts), entities=groups)


@pytest.mark.parametrize("name", ["mlp", "attention"])
@pytest.mark.parametrize("order", ["own.0 foe.0 own.1 foe.1", "foe.1 own.1 foe.0 own.0"])
def test_blocks_of_groups_may_lie_between_each_other_and_backwards(name, order):
    one, other = ["own.0", "own.1", "foe.0", "foe.1"], order.split()
    rows = torch.from_numpy(random_observations(_spec(one), 20, np.random.default_rng(1)))
    mask, state = torch.ones(20, 3, dtype=torch.bool), torch.zeros(20, 0)
    expected = build_network(NetworkConfig(name), _spec(one), seed=1)(rows, mask, state)
    moved = rows.unflatten(1, (4, 2))[:, [one.index(block) for block in other]].flatten(1)
    found = build_network(NetworkConfig(name), _spec(other), seed=1)(moved, mask, state)
    torch.testing.assert_close(found, expected)


def test_ids_without_a_vocabulary_are_not_embedded():
    spec = GameSpec("game", 2, 3, layout=(Slice("kind", 0, 1, "id", high=9.0), Slice("hp", 1, 1)))
    with pytest.raises(ConfigError, match="The ids kind have no vocabulary to embed"):
        build_network(NetworkConfig("mlp"), spec)


@pytest.mark.parametrize("name", ["mlp", "conv_lstm", "mlp_lstm"])
def test_bytes_without_a_shape_are_a_sentence_that_leads_out(name):
    with pytest.raises(ConfigError, match=r"observes (bytes|a vector).* [Dd]eclare .*, or observe float32"):
        build_network(NetworkConfig(name), GameSpec("game", 8, 3, "uint8"))


def test_numbers_behind_an_image_are_scaled_as_the_layout_says():
    """A byte from 0 to 200 is 0 to it where it is 100, for every network that reads it."""
    layout = (Slice("image", 0, 16, high=255), Slice("fact", 16, 1, high=200))
    shape = {"observation_shape": (1, 4, 4), "observation_axes": "CHW"}
    inputs = VectorInputs(GameSpec("game", 17, 3, "uint8", layout=layout, **shape))
    observation = torch.zeros(3, 17, dtype=torch.uint8)
    observation[:, 16] = torch.tensor([0, 100, 200])
    assert inputs(observation)[:, 0].tolist() == [-SPREAD, 0.0, SPREAD]
