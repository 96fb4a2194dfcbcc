import msgspec
import numpy as np
import pytest
import torch
import torch.nn.functional as F

from simul.common.config.schema import NetworkConfig
from simul.common.errors import ConfigError
from simul.common.nets.build import build_network
from simul.common.nets.layers.conv import SPREAD
from simul.common.nets.layers.entities import dot_products, embedding_sum, mean_and_max
from simul.common.nets.layers.inputs import VectorInputs, declared_entities
from simul.common.protocol.specs import EntityGroup, GameSpec, Slice, random_observations
from tests.support.declared import DECLARED


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


@pytest.mark.parametrize("name", ["mlp", "attention"])
def test_ids_of_one_table_share_it_inside_and_outside_of_entities(name):
    inside = _spec(["own.0", "own.1", "foe.0", "foe.1"])
    outside = Slice("seen", 8, 1, "id", high=9.0, vocabulary=10, table="kind")
    spec = msgspec.structs.replace(inside, observation_size=9, layout=(*inside.layout, outside))
    network = build_network(NetworkConfig(name, {"embedding": 3}), spec, seed=1)
    (table,) = network.inputs.rest.embeddings
    assert table.shape == (10, 3)
    rows = torch.ones(4, 9)
    rows[0, 8] = rows[1, 0] = rows[2, 6] = 5.0  # outside, in `own`, in `foe`, nowhere
    mask, state = torch.ones(4, 3, dtype=torch.bool), torch.zeros(4, 0)
    before = network(rows, mask, state)[0]
    with torch.no_grad():
        table[5] += 1.0
    assert (network(rows, mask, state)[0] != before).any(1).tolist() == [True, True, True, False]


def test_ids_without_a_table_are_of_their_group_alone():
    spec = GameSpec("game", 2, 3, layout=tuple(Slice(name, place, 1, "id", vocabulary=4) for place, name in enumerate(
        ("own.0.kind", "seen")
    )), entities=(EntityGroup("own", 1),))  # fmt: skip
    network = build_network(NetworkConfig("mlp", {"embedding": 3}), spec)
    assert len(network.inputs.rest.embeddings) == 2


def test_a_misspelt_group_names_the_nearest():
    with pytest.raises(ConfigError, match=r"declared has no slices unitt\.0\.\*; did you mean unit\?"):
        declared_entities(DECLARED, ["unitt"])


@pytest.mark.parametrize("normalized", [False, True])
def test_blocks_that_the_layout_marks_absent_are_not_attended_to_where_none_are_declared(normalized):
    spec = msgspec.structs.replace(DECLARED, entities=())
    config = NetworkConfig("attention", {"entities": ["unit", "tower"]}, normalize_observations=normalized)
    network = build_network(config, spec, seed=1)
    rows = torch.from_numpy(random_observations(DECLARED, 6, np.random.default_rng(0)))
    units = rows[:, 3:23].unflatten(1, (5, 4))  # kind, place, present
    units[..., 3] = torch.tensor([1.0, 1.0, 0.0, 1.0, 1.0])
    if normalized:
        network.observation_mean.copy_(rows.mean(0))  # of what is always there: 1
    there, ghost = rows.clone(), rows.clone()
    ghost[:, 12:14], there[:, 8:10] = 5.0, 5.0  # places of units 2 and 1
    mask, state = torch.ones(6, 5, dtype=torch.bool), torch.zeros(6, 0)
    answer = network(rows, mask, state)[0]
    torch.testing.assert_close(network(ghost, mask, state)[0], answer, rtol=0, atol=0)
    assert (network(there, mask, state)[0] != answer).any()


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
