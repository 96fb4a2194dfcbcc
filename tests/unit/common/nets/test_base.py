"""Unrolling is stepping, row by row, and its gradients are those of the plain loop."""

import msgspec
import pytest
import torch
from torch import nn

from simul.common.config.schema import NetworkConfig
from simul.common.errors import ConfigError
from simul.common.nets.base import RecurrentNetwork
from simul.common.nets.build import build_network, check_network, network_outline
from simul.common.nets.io import check_state
from simul.common.nets.layers.gru import PackedGRU
from simul.common.nets.layers.lstm import PackedLSTM, make_packing, round_up_rows
from simul.common.protocol.specs import GameSpec

LENGTHS = [3, 7, 0, 7, 1]


@pytest.mark.parametrize(
    ("name", "layout", "options"),
    [
        ("mlp_lstm", "flat_spec", {"hidden": 16}),
        ("mlp_lstm", "flat_spec", {"hidden": 16, "layers": 0}),
        ("mlp_lstm", "flat_spec", {"hidden": 16, "layers": 2, "memory": False}),
        ("mlp_lstm", "declared_spec", {"hidden": 16, "embedding": 3}),
        ("mlp", "declared_spec", {"hidden": 16}),
        ("mlp", "image_spec", {"hidden": 16, "layers": 1, "channels": [4]}),
        ("mlp_gru", "flat_spec", {"hidden": 16, "layers": 0}),
        ("mlp_gru", "declared_spec", {"hidden": 16, "entities": "flat"}),
        ("attention", "flat_spec", {"hidden": 16, "width": 8}),
        ("attention", "declared_spec", {"hidden": 16, "width": 8, "layers": 2, "heads": 2, "memory": "lstm"}),
        ("attention", "declared_spec", {"hidden": 16, "width": 8, "entities": ["unit"], "memory": "gru"}),
        ("attention", "only_entities_spec", {"hidden": 16, "width": 8}),
        ("attention", "declared_spec", {"hidden": 16, "width": 8, "embedding": 3, "memory": "gru"}),
        ("attention", "entity_spec", {"hidden": 16, "width": 8, "entities": ["own", "foe", "move"]}),
        ("conv_lstm", "image_spec", {"channels": [4, 6], "blocks": 1, "hidden": 16}),
        ("conv_lstm", "image_spec", {"channels": [], "hidden": 16, "memory": False}),
        ("pokemon", "entity_spec_with_sets", {"entity": 8, "hidden": 16}),
        ("pokemon", "doubles_spec", {"entity": 8, "hidden": 16}),
        ("pokemon", "entity_spec", {"entity": 8, "hidden": 16, "memory": "none", "attention": 1}),
        ("pokemon", "doubles_spec", {"entity": 8, "hidden": 16, "memory": "gru", "attention": 1}),
        ("board_resnet", "board_spec", {"channels": 8, "blocks": 2, "hidden": 16}),
        ("ofc", "ofc_spec", {"hidden": 24, "row": 16, "joint": 16}),
    ],
)
def test_unroll_is_stepping_and_so_are_its_gradients(name, layout, options, request, observed):
    spec = request.getfixturevalue(layout)
    network = build_network(NetworkConfig(name, options), spec, seed=3)
    check_state(network.state_dict(), network_outline(NetworkConfig(name, options), spec))
    with torch.no_grad():
        for parameter in network.parameters():  # fresh heads are nearly silent
            parameter += 0.1 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(1))
    lengths = torch.tensor(LENGTHS)
    observation, mask = observed(spec, 7, len(LENGTHS))
    state = 0.3 * torch.randn(len(LENGTHS), network.state_size, generator=torch.Generator().manual_seed(2))
    results = []
    for unroll in (network.unroll, lambda *a: RecurrentNetwork.unroll(network, *a)):
        logits, value = unroll(observation, mask, state, lengths)
        network.zero_grad()
        (logits.sin().sum() + value.cos().sum()).backward()
        grads = {n: p.grad.clone() for n, p in network.named_parameters() if not n.startswith("opponent_head.")}
        results.append((logits, value, grads))
    (logits, value, grads), (slow_logits, slow_value, slow_grads) = results
    torch.testing.assert_close(logits, slow_logits, atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(value, slow_value, atol=1e-5, rtol=1e-4)
    assert not logits[3:, 0].any()
    assert not value[:, 2].any()
    for parameter, grad in grads.items():
        assert grad.abs().max() > 0, parameter
        torch.testing.assert_close(grad, slow_grads[parameter], atol=2e-5, rtol=1e-3)


@pytest.mark.parametrize(("name", "layout"), [("board_resnet", "board_spec"), ("ofc", "ofc_spec")])
def test_fresh_policies_are_nearly_uniform(name, layout, request, observed):
    spec = request.getfixturevalue(layout)
    network = build_network(NetworkConfig(name), spec, seed=1)
    observation, mask = observed(spec, 20)
    logits, value, _ = network(observation, mask, network.initial_state(20))
    probability = logits.masked_fill(~mask, -torch.inf).softmax(-1)
    assert (probability.amax(1) < 3 / mask.sum(1)).all()
    assert value.abs().max() < 1


@pytest.mark.parametrize(
    ("name", "layout", "options"),
    [
        ("pokemon", "entity_spec", {"entity": 8, "hidden": 16}),
        ("mlp", "declared_spec", {"hidden": 16}),
        ("mlp_gru", "declared_spec", {"hidden": 16}),
        ("attention", "declared_spec", {"hidden": 16, "memory": "gru"}),
    ],
)
def test_padding_does_not_reach_the_valid_rows(name, layout, options, request, observed):
    spec = request.getfixturevalue(layout)
    network = build_network(NetworkConfig(name, options), spec)
    observation, mask = observed(spec, 7, 5)
    state, lengths = network.initial_state(5), torch.tensor(LENGTHS)
    before = network.unroll(observation, mask, state, lengths)
    observation[3:, 0] = torch.nan
    observation[:, 2] = torch.nan
    after = network.unroll(observation, mask, state, lengths)
    torch.testing.assert_close(after, before, rtol=0, atol=0)


@pytest.mark.parametrize("name", ["mlp", "attention"])
def test_the_order_of_entities_means_nothing_and_absent_ones_are_not_seen(name, declared_spec, observed):
    network = build_network(NetworkConfig(name), declared_spec, seed=1)
    observation, mask = observed(declared_spec, 9)
    units = observation[:, 3:23].unflatten(1, (5, 4))  # kind, place, present
    units[:, 1, 3], units[:, 2, 3] = 1.0, 0.0
    shuffled = observation.clone()
    shuffled[:, 3:23] = units[:, [4, 2, 0, 1, 3]].flatten(1)
    ghost, gone = observation.clone(), observation.clone()
    ghost[:, 11:14], gone[:, 10] = 5.0, 0.0  # what unit 2 would be, and without unit 1

    def answer(x):
        logits, value, _ = network(x, mask, network.initial_state(9))
        return torch.cat((100 * logits, value[:, None]), dim=1)

    torch.testing.assert_close(answer(shuffled), answer(observation), atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(answer(ghost), answer(observation), atol=0, rtol=0)
    assert (answer(gone) - answer(observation)).abs().amax(1).min() > 1e-4
    nothing = observation.clone()
    nothing[:, 3:23].unflatten(1, (5, 4))[..., 3] = 0.0
    assert answer(nothing).isfinite().all()


def test_separate_networks_share_nothing_and_step_as_they_unroll(declared_spec, observed):
    config = NetworkConfig("attention", {"hidden": 16, "width": 8, "memory": "gru"}, shared=False)
    network = build_network(config, declared_spec, seed=3)
    assert network.state_size == 32
    observation, mask = observed(declared_spec, 7, len(LENGTHS))
    state = torch.randn(len(LENGTHS), 32, generator=torch.Generator().manual_seed(2))
    lengths = torch.tensor(LENGTHS)
    logits, value = network.unroll(observation, mask, state, lengths)
    slow = RecurrentNetwork.unroll(network, observation, mask, state, lengths)
    torch.testing.assert_close((logits, value), slow, atol=1e-5, rtol=1e-4)
    value.sum().backward()
    learned = {name.partition(".")[0] for name, p in network.named_parameters() if p.grad is not None and p.grad.any()}
    assert learned == {"value"}


def test_separate_networks_predict_the_ending_as_their_policy_does(observed):
    spec = GameSpec(
        "board", 27, 9, "uint8", observation_shape=(3, 3, 3), observation_axes="CHW", ending_planes=1, ending_numbers=2
    )
    network = build_network(NetworkConfig("board_resnet", {"channels": 4, "hidden": 8}, shared=False), spec)
    (observation, mask), actions = (each[0] for each in observed(spec, 1, 5)), torch.arange(9).repeat(5, 1)
    shown = observation, mask, network.initial_state(5), actions
    logits, value, *ending = network.forward_predicting(*shown)
    policy, _, *of_policy = network.policy.forward_predicting(*shown)
    assert network.predicts_ending
    torch.testing.assert_close((logits, value), network.forward_listed(*shown))
    torch.testing.assert_close((logits, *ending), (policy, *of_policy))


def test_few_sizes_of_packed_rows_are_met_and_few_rows_are_added():
    sizes = {n: len(round_up_rows(torch.arange(n))) for n in range(5000)}
    assert all(n <= padded <= n * 17 / 16 for n, padded in sizes.items())
    assert len({sizes[n] for n in range(1000, 1200)}) == 4


def test_packed_lstm_agrees_with_torch():
    torch.manual_seed(0)
    ours, theirs = PackedLSTM(5, 8), nn.LSTM(5, 8)
    order = torch.arange(32).unflatten(0, (4, 8))[[0, 1, 3, 2]].flatten()  # torch: input, forget, cell, output
    with torch.no_grad():
        theirs.weight_ih_l0.copy_(ours.weight[order, :5])
        theirs.weight_hh_l0.copy_(ours.weight[order, 5:])
        theirs.bias_ih_l0.copy_(ours.bias[order])
        theirs.bias_hh_l0.zero_()
    x = torch.randn(6, 3, 5, requires_grad=True)
    h, c = torch.randn(1, 3, 8), torch.randn(1, 3, 8)
    expected, _ = theirs(x, (h, c))
    expected.sin().sum().backward()
    x_grad, x.grad = x.grad, None
    packing = make_packing(torch.full((3,), 6), 6, x.device)
    got = packing.pad(ours.run(packing.pack(x), torch.cat((h[0], c[0]), 1), packing.batch_sizes))
    got.sin().sum().backward()
    torch.testing.assert_close(got, expected)
    torch.testing.assert_close(x.grad, x_grad)
    torch.testing.assert_close(
        ours.weight.grad[order], torch.cat((theirs.weight_ih_l0.grad, theirs.weight_hh_l0.grad), 1)
    )
    torch.testing.assert_close(ours.bias.grad[order], theirs.bias_ih_l0.grad)


def test_packed_gru_agrees_with_torch_where_sessions_differ_in_length():
    torch.manual_seed(0)
    ours, theirs = PackedGRU(5, 8), nn.GRU(5, 8)
    theirs.load_state_dict(ours.layer.state_dict())
    x, h, lengths = torch.randn(6, 3, 5), torch.randn(3, 8), torch.tensor([2, 6, 0])
    packing = make_packing(lengths, 6, x.device)
    packed = ours.run(packing.pack(x), h.index_select(0, packing.order), packing.batch_sizes)
    found = packing.pad(packed)
    for b, length in enumerate(lengths.tolist()):
        expected, _ = theirs(x[:length, b : b + 1], h[None, b : b + 1]) if length else (torch.zeros(0, 1, 8), None)
        torch.testing.assert_close(found[:length, b], expected[:, 0])
        assert not found[length:, b].any()


@pytest.mark.parametrize(
    ("name", "layout"),
    [
        ("pokemon", "entity_spec_with_sets"),
        ("pokemon", "doubles_spec"),
        ("mlp", "declared_spec"),
        ("mlp_gru", "declared_spec"),
        ("attention", "declared_spec"),
        ("conv_lstm", "image_spec"),
        ("board_resnet", "board_spec"),
        ("ofc", "ofc_spec"),
    ],
)
def test_bfloat16_serving_stays_near_float32(name, layout, request, observed):
    spec = request.getfixturevalue(layout)
    network = build_network(NetworkConfig(name), spec)
    low = network.lowered(torch.bfloat16)
    low.load_state_dict(network.state_dict())
    assert {parameter.dtype for parameter in network.parameters()} == {torch.float32}
    assert {parameter.dtype for parameter in low.parameters()} == {torch.float32, torch.bfloat16}
    observation, mask = observed(spec, 64)
    state = network.initial_state(64)
    low_state = state
    with torch.no_grad():
        for _ in range(10):
            logits, _, state = network(observation, mask, state)
            low_logits, low_value, low_state = low(observation, mask, low_state)
    assert low_logits.dtype == low_value.dtype == low_state.dtype == torch.float32
    ratio = (low_logits.log_softmax(1) - logits.log_softmax(1)).exp()
    assert (ratio - 1).abs().max() < 0.05


@pytest.mark.parametrize(
    ("name", "layout"),
    [
        ("pokemon", "entity_spec"),
        ("pokemon", "doubles_spec"),
        ("conv_lstm", "image_spec"),
        ("mlp", "declared_spec"),
        ("mlp_gru", "declared_spec"),
        ("attention", "declared_spec"),
        ("mlp_lstm", "declared_spec"),
        ("board_resnet", "board_spec"),
        ("ofc", "ofc_spec"),
    ],
)
def test_autocast_learns_what_float32_learns(name, layout, request, observed):
    spec = request.getfixturevalue(layout)
    network = build_network(NetworkConfig(name), spec)
    observation, mask = observed(spec, 8, 16)
    grads = []
    for enabled in (False, True):
        network.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=enabled):
            logits, value = network.unroll(observation, mask, network.initial_state(16), torch.full((16,), 8))
        assert logits.dtype == value.dtype == torch.float32
        (logits.log_softmax(2)[..., 0].sum() + value.sum()).backward()
        used = [parameter.grad.flatten() for parameter in network.parameters() if parameter.grad is not None]
        grads.append(torch.cat(used))
    assert torch.nn.functional.cosine_similarity(*grads, dim=0) > 0.99


@pytest.mark.parametrize("layout", ["entity_spec", "doubles_spec"])
def test_what_the_opponent_does_is_predicted_of_the_labelled_rows_and_changes_nothing_else(layout, request, observed):
    spec = request.getfixturevalue(layout)
    network = build_network(NetworkConfig("pokemon", {"entity": 8, "hidden": 16}), spec, seed=3)
    assert network.predicts_opponent
    observation, mask = observed(spec, 7, len(LENGTHS))
    state, lengths = network.initial_state(len(LENGTHS)), torch.tensor(LENGTHS)
    valid = torch.arange(7)[:, None] < lengths
    labelled = valid & (torch.rand(valid.shape, generator=torch.Generator().manual_seed(1)) < 0.5)
    inputs = observation, mask, state, lengths
    logits, value, opponent = network.unroll_predicting(*inputs, labelled)
    assert opponent.shape == (int(labelled.sum()), spec.opponent_labels, spec.opponent_classes)
    for found, plain in zip((logits, value), network.unroll(*inputs), strict=True):
        assert torch.equal(found, plain)
    everything = network.unroll_predicting(*inputs, valid)[2]
    torch.testing.assert_close(opponent, everything[labelled[valid]])
    assert network.unroll_predicting(*inputs, torch.zeros_like(valid))[2].shape[0] == 0
    move = spec.slice("foe.2.species").start
    changed = observation.clone()
    changed[..., move] = (changed[..., move] + 1) % spec.slice("foe.2.species").vocabulary
    moved = network.unroll_predicting(changed, *inputs[1:], valid)[2] - everything
    assert moved[..., 2].abs().min() > 0, "the pointer at foe.2"


def test_a_network_without_labels_has_no_such_head(entity_spec, flat_spec):
    unlabelled = msgspec.structs.replace(entity_spec, opponent_labels=0, opponent_classes=0)
    network, labelled = (build_network(NetworkConfig("pokemon"), spec, seed=4) for spec in (unlabelled, entity_spec))
    assert not network.predicts_opponent
    assert not build_network(NetworkConfig("mlp_lstm"), flat_spec).predicts_opponent
    own, names = labelled.state_dict(), network.state_dict()
    assert {name for name in own if name not in names} == {name for name in own if name.startswith("opponent_head.")}
    assert all(torch.equal(own[name], value) for name, value in names.items()), "the other weights begin alike"


class Guesser(RecurrentNetwork):
    """Predicts the opponent with as many logits as `classes`."""

    classes, predicts_opponent = 3, True

    def __init__(self, spec) -> None:
        super().__init__()
        self.actions = spec.num_actions
        self.bias = torch.nn.Parameter(torch.zeros(1))

    def forward(self, observation, mask, state):
        rows = observation.shape[0]
        return self.bias.expand(rows, self.actions), self.bias.expand(rows), state

    def unroll_predicting(self, observation, mask, state, lengths, labelled):
        known = self.bias.expand(int(labelled.sum()), 1, self.classes)
        return *self.unroll(observation, mask, state, lengths), known


def test_a_network_of_ones_own_predicts_as_the_spec_says_or_is_refused():
    fits, other = (GameSpec("toy", 4, 2, opponent_labels=1, opponent_classes=classes) for classes in (3, 4))
    check_network(Guesser(fits), fits, "own")
    with pytest.raises(
        ConfigError, match=r"predicts float32 \[3, 1, 3\] of the opponent; expected float32 \[3, 1, 4\]"
    ):
        check_network(Guesser(other), other, "own")


class Foreteller(Guesser):
    """Predicts the end of a game with as many numbers as `told`."""

    told, predicts_ending, predicts_opponent = 3, True, False

    def forward_predicting(self, observation, mask, state, actions):
        return *self.forward_listed(observation, mask, state, actions), self.bias.expand(len(mask), self.told)


def test_a_network_of_ones_own_foretells_as_the_spec_says_or_is_refused():
    fits, other = (GameSpec("toy", 4, 2, ending_numbers=numbers) for numbers in (3, 4))
    check_network(Foreteller(fits), fits, "own")
    words = r"predicts \(float32 \[3, 3\]\) of a game's end; expected \(float32 \[3, 4\]\)"
    with pytest.raises(ConfigError, match=words):
        check_network(Foreteller(other), other, "own")
