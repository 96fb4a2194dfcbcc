import sys

import pytest
import torch
from torch import nn

from simul.common.checkpoints.meta import WEIGHTS_FILE, read_meta
from simul.common.config.schema import NetworkConfig
from simul.common.config.trust import EVERYTHING
from simul.common.errors import ConfigError, WeightsError
from simul.common.nets.build import build_network, network_outline
from simul.common.nets.io import bytes_to_state, check_state, fingerprint, read_weights, weights_to_bytes
from simul.common.nets.layers.entities import EntityBlocks
from simul.common.protocol.specs import GameSpec, Slice
from simul.learner.checkpoints.checkpoint_store import RunFacts, write_folder


class Plain(nn.Module):
    """Only `forward` and `state_size`, as a user writes it."""

    state_size = 3

    def __init__(self, spec: GameSpec, actions: int = 0) -> None:
        super().__init__()
        self.layer = nn.Linear(spec.observation_size + 3, (actions or spec.num_actions) + 1)

    def forward(self, observation, mask, state):
        out = self.layer(torch.cat((observation.float(), state), 1))
        return out[:, 1:], out[:, 0], out[:, :3].tanh()


class NoNumbers(Plain):
    """Divides by nothing."""

    def forward(self, observation, mask, state):
        logits, value, state = super().forward(observation, mask, state)
        return logits * float("nan"), value, state


class NotForZeros(Plain):
    """Observations of no size have no direction; real ones do."""

    def forward(self, observation, mask, state):
        return super().forward(observation / observation.float().norm(dim=1, keepdim=True), mask, state)


class Tied(Plain):
    """One weight under two names."""

    def __init__(self, spec: GameSpec) -> None:
        super().__init__(spec)
        self.again = nn.Linear(self.layer.in_features, self.layer.out_features)
        self.again.weight = self.layer.weight


class Forgetful(Plain):
    """Has a fault of its own."""

    def forward(self, observation, mask, state):
        return {}["zz"]


class NoModule(dict):
    """Is no network."""


@pytest.fixture(autouse=True)
def user_module(monkeypatch):
    monkeypatch.setitem(sys.modules, "a_users_module", sys.modules[__name__])


def test_a_users_plain_module_steps_and_unrolls(flat_spec, observed):
    network = build_network(NetworkConfig("a_users_module:Plain"), flat_spec, trust=EVERYTHING)
    observation, mask = observed(flat_spec, 4, 3)
    state = network.initial_state(3)
    lengths = torch.tensor([4, 2, 0])
    logits, value = network.unroll(observation, mask, state, lengths)
    for t in range(4):
        step_logits, step_value, state = network(observation[t], mask[t], state)
        for b in range(3):
            seen = float(t < lengths[b])
            torch.testing.assert_close(logits[t, b], step_logits[b] * seen)
            torch.testing.assert_close(value[t, b], step_value[b] * seen)
    value.sum().backward()
    assert all(parameter.grad.abs().sum() > 0 for parameter in network.parameters())
    assert network.lowered(torch.bfloat16).inner.layer.weight.dtype == torch.float32


def test_layers_of_tanh_begin_orthogonal_and_those_of_relu_do_not(flat_spec):
    def bodies(activation):
        options = {"hidden": 16, "layers": 2, "memory": False, "activation": activation}
        return build_network(NetworkConfig("mlp_lstm", options), flat_spec, trust=EVERYTHING).body.requires_grad_(False)

    tanh, relu = bodies("tanh"), bodies("relu")
    observation = torch.full((1, flat_spec.observation_size), 1e6)
    assert float(tanh(observation).abs().max()) <= 1.0 < float(relu(observation).max())
    squares = tanh[2].weight @ tanh[2].weight.T
    torch.testing.assert_close(squares, 2 * torch.eye(16))
    assert not torch.allclose(relu[2].weight @ relu[2].weight.T, squares)


def test_a_network_that_cannot_take_zeros_is_a_network(flat_spec):
    assert build_network(NetworkConfig("a_users_module:NotForZeros"), flat_spec, trust=EVERYTHING)


@pytest.mark.parametrize("name", ["Plain", "NotForZeros"])
def test_the_padding_of_an_unroll_changes_no_gradient_also_where_zeros_are_no_numbers(name, flat_spec, observed):
    network = build_network(NetworkConfig(f"a_users_module:{name}"), flat_spec, trust=EVERYTHING)
    observation, mask = observed(flat_spec, 4, 3)
    lengths = torch.tensor([0, 2, 4])
    gradients = []
    for padding in (0.0, 1.0):
        padded = torch.where((torch.arange(4)[:, None] < lengths)[..., None], observation, padding)
        network.zero_grad()
        logits, value = network.unroll(padded, mask, network.initial_state(3), lengths)
        (logits.sin().sum() + value.cos().sum()).backward()
        gradients.append([parameter.grad.clone() for parameter in network.parameters()])
        assert all(gradient.isfinite().all() for gradient in gradients[-1])
    torch.testing.assert_close(*gradients, rtol=0, atol=0)


@pytest.mark.parametrize(
    ("name", "options", "match"),
    [
        ("mpl_lstm", {}, r"Unknown network 'mpl_lstm': expected mlp, .*, ofc or module:Class; did you mean mlp_lstm\?"),
        ("mlp_lstm", {"hiden": 3}, r"network.options: .* mlp_lstm has no option 'hiden'; did you mean hidden\?"),
        ("mlp_lstm", {"zzz": 3}, "no option 'zzz'. Its options are hidden, layers, memory, activation, embedding."),
        ("a_users_module:Plain", {"action": 3}, "no option 'action'; did you mean actions"),
        ("mlp_lstm", {"hidden": "many"}, "hidden of the network mlp_lstm: Expected `int`, got `str`; got 'many'"),
        ("mlp_lstm", {"activation": "tan"}, "activation: expected one of relu, tanh, got 'tan'"),
        ("mlp_lstm", {"activation": ["relu"]}, r"activation of the network mlp_lstm: Expected `str`, got `array`"),
        ("mlp", {"entities": "pol"}, "entities: expected one of pool, flat, got 'pol'; did you mean pool\\?$"),
        (
            "mlp_lstm",
            {"embedding": "foo"},
            "embedding: expected 0 for ids as numbers, auto, or a width of at least 1, got 'foo'",
        ),
        ("mlp_lstm", {"embedding": ""}, "expected 0 for ids as numbers, auto, or a width of at least 1, got ''"),
        ("mlp_lstm", {"embedding": -1}, "expected 0 for ids as numbers, auto, or a width of at least 1, got -1"),
        ("attention", {"memory": "LSTM"}, "got 'LSTM'; did you mean lstm"),
        ("mlp", {"embedding": -1}, "embedding: expected auto, or a width of at least 1, got -1"),
        ("mlp", {"embedding": "autoo"}, "a width of at least 1, got 'autoo'; did you mean auto"),
        ("attention", {"memory": "gruu"}, "memory: expected one of none, lstm, gru, got 'gruu'; did you mean gru\\?$"),
        ("attention", {"heads": 3}, r"a transformer of 3 heads needs a width that 3 divides, got 64\.$"),
        ("attention", {"entities": ["foe"]}, r"entities: the layout of flat has no slices foe\.0\.\*"),
        ("attention", {"entities": ["own", "own"]}, "entities: own is given twice; expected each group once"),
        ("mlp_lstm", {"hidden": -5}, "hidden of the network mlp_lstm: Expected `int` >= 1; got -5"),
        ("mlp_lstm", {"memory": "none"}, "memory of the network mlp_lstm: Expected `bool`, got `str`; got 'none'"),
        ("conv_lstm", {"memory": "gru"}, "memory of the network conv_lstm: Expected `bool`"),
        ("mlp", {"embedding": True}, r"embedding of the network mlp: Expected `int \| str`, got `bool`"),
        ("attention", {"layers": -3}, "layers of the network attention: Expected `int` >= 0"),
        ("attention", {"entities": "own"}, "entities of the network attention: Expected `array`, got `str`"),
        ("pokemon", {"entity": 0}, "entity of the network pokemon: Expected `int` >= 1"),
        ("a_users_module:Missing", {}, "has no class 'Missing'"),
        ("no_such_module_here:X", {}, "cannot be imported"),
        ("a_users_module:NoModule", {}, "not a class of torch.nn.Module"),
        ("a_users_module:NoNumbers", {}, r"returns nan or inf for ordinary observations .*; expected finite logits"),
        ("a_users_module:Forgetful", {}, r"does not take an observation .*: .*test_build\.py:\d+: KeyError: 'zz'"),
        ("a_users_module:Plain", {"actions": 5}, r"float32 \[3, 5\].*expected.*float32 \[3, 2\]"),
        ("pokemon", {}, "6 \\+ 4 k actions"),
    ],
)
def test_a_network_that_does_not_fit_is_refused_with_a_sentence(flat_spec, name, options, match):
    with pytest.raises(ConfigError, match=match):
        build_network(NetworkConfig(name, options), flat_spec, trust=EVERYTHING)


def test_a_layout_without_the_games_blocks_is_refused_with_advice():
    spec = GameSpec("boards", 4, 10, layout=(Slice("cells", 0, 4),))
    with pytest.raises(
        ConfigError, match=r"needs a block own\.0\.\* in the layout of boards.* Set network.name: mlp_lstm"
    ):
        build_network(NetworkConfig("pokemon"), spec, trust=EVERYTHING)


def test_fresh_weights_depend_on_the_seed_alone(entity_spec):
    def built(seed):
        return weights_to_bytes(build_network(NetworkConfig("pokemon"), entity_spec, seed, trust=EVERYTHING))

    torch.manual_seed(1)
    first = built(7)
    torch.manual_seed(2)
    before = torch.random.get_rng_state()
    assert built(7) == first
    assert torch.equal(torch.random.get_rng_state(), before), "the caller's generator is left alone"
    assert built(8) != first


def test_weights_travel_as_bytes(flat_spec):
    network = build_network(NetworkConfig("mlp_lstm", {"hidden": 8}), flat_spec, trust=EVERYTHING)
    data = weights_to_bytes(network)
    torch.testing.assert_close(bytes_to_state(data), dict(network.state_dict()), rtol=0, atol=0)
    assert len(fingerprint(data)) == 64
    with pytest.raises(WeightsError, match="safetensors"):
        bytes_to_state(data[:-1])
    state = bytes_to_state(data)
    other = build_network(NetworkConfig("mlp_gru", {"hidden": 8, "layers": 1}), flat_spec)
    with pytest.raises(
        WeightsError, match=r"gru\.layer\.bias_hh_l0 \[24\] \(expected, missing\).* lstm\.bias \[32\] \(not"
    ):
        check_state(state, other)
    for change, match in (
        ({"lstm.bias": torch.zeros(3)}, "lstm.bias: expected"),
        ({"value_head.bias": torch.tensor([torch.nan])}, "not finite"),
        ({"ex\x1b[2J\ntra": torch.zeros(1)}, r"ex\\u001b\[2J\\ntra \[1\] \(not expected\)$"),
        ({"value_head.bias": torch.zeros(1, dtype=torch.int64)}, "expected torch.float32 or the like, got torch.int64"),
        ({"value_head.bias": torch.zeros(1, dtype=torch.complex64)}, "or the like, got torch.complex64"),
    ):
        with pytest.raises(WeightsError, match=match):
            check_state(state | change, network)
    check_state(state | {"value_head.bias": torch.tensor([1e30])}, network)  # its square is not finite
    check_state(state | {"value_head.bias": torch.zeros(1).to(torch.float8_e4m3fn)}, network)  # torch has no norm of it


def test_a_networks_outline_has_its_shapes_and_no_memory(flat_spec):
    config = NetworkConfig("mlp_lstm", {"hidden": 8}, shared=False, normalize_observations=True)
    outline = network_outline(config, flat_spec)
    assert all(value.is_meta for value in outline.state_dict().values())
    check_state(bytes_to_state(weights_to_bytes(build_network(config, flat_spec))), outline)
    huge = network_outline(NetworkConfig("mlp_lstm", {"hidden": 10**6}), flat_spec)
    assert huge.state_dict()["lstm.bias"].shape == (4 * 10**6,)
    with pytest.raises(ConfigError, match=r"it has more than 10,000 tensors\.$"):
        network_outline(NetworkConfig("mlp_lstm", {"hidden": 8, "layers": 10**6}), flat_spec)


@pytest.mark.parametrize("told", [None, 3, 4])
def test_a_recurrent_state_is_compared_where_the_checkpoint_tells_it(flat_spec, tmp_path, told):
    config = NetworkConfig("a_users_module:Plain")
    network = build_network(config, flat_spec, trust=EVERYTHING)
    files = {WEIGHTS_FILE: weights_to_bytes(network)}
    write_folder(tmp_path / "it", RunFacts(flat_spec, config, "0" * 16, 1, told).meta(1, 0, 0, files, False), files)
    meta = read_meta(tmp_path / "it")
    assert meta.state_size == told
    if told == 4:
        with pytest.raises(WeightsError, match="a recurrent state of 3 numbers is expected, the checkpoint has 4"):
            read_weights(tmp_path / "it", meta, network)
    else:
        assert read_weights(tmp_path / "it", meta, network).keys() == network.state_dict().keys()


def test_tied_weights_travel_under_each_name(flat_spec):
    network = build_network(NetworkConfig("a_users_module:Tied"), flat_spec, trust=EVERYTHING)
    state = bytes_to_state(weights_to_bytes(network))
    torch.testing.assert_close(state, dict(network.state_dict()), rtol=0, atol=0)
    check_state(state, network)


def test_blocks_read_their_own_columns_and_ids_stay_exact_and_inside():
    layout, at = [], 0
    for i in range(3):
        layout += [
            Slice(f"own.{i}.number", at, 2),
            Slice(f"own.{i}.species", at + 2, 1, "id", vocabulary=2000, table="species"),
            Slice(f"own.{i}.moves", at + 3, 2, "id", vocabulary=900, table="moves"),
        ]
        at += 5
    spec = GameSpec("x", at, 2, "float16", layout=tuple(layout))
    blocks = EntityBlocks([f"own.{i}" for i in range(3)], spec)
    assert blocks.ids.table_rows == 2900
    observation = torch.arange(at, dtype=torch.float16)[None]
    observation[0, [2, 7, 12]] = torch.tensor([1999.0, torch.nan, -4.0], dtype=torch.float16)
    observation[0, 4] = 65504.0
    rows = blocks(observation)
    assert blocks.numbers.read(rows).tolist() == [[[0, 1], [5, 6], [10, 11]]]
    ids = blocks.ids(rows)
    assert ids[0, :, 0].tolist()[0] == 1999
    assert ids[0, 0].tolist()[1:] == [2003, 2899]
    assert (ids >= 0).all()
    assert (ids < 2900).all()
    with pytest.raises(ConfigError, match=r"block own\.3"):
        EntityBlocks([f"own.{i}" for i in range(4)], spec)
    uneven = GameSpec("x", at, 2, layout=tuple(part for part in layout if part.name != "own.1.number"))
    with pytest.raises(ConfigError, match=r"own\.1 differs"):
        EntityBlocks([f"own.{i}" for i in range(3)], uneven)


def test_a_flat_network_takes_ids_as_numbers_from_0_to_1(flat_spec):
    layout = (Slice("hp", 0, 1), Slice("species", 1, 2, kind="id", high=500.0, vocabulary=501, table="species"))
    spec = GameSpec(name="ids", observation_size=3, num_actions=2, layout=layout)
    network = build_network(NetworkConfig("mlp_lstm"), spec)
    assert network.scale.tolist() == pytest.approx([1.0, 1 / 500, 1 / 500])
    assert "scale" not in network.state_dict()
    assert build_network(NetworkConfig("mlp_lstm"), flat_spec).scale is None
