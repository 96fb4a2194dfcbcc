"""Every network learns one fixed batch by heart: the random action and value of each row. `ofc`: see `test_ofc`."""

import pytest

from simul.common.config.schema import NetworkConfig
from simul.common.config.trust import EVERYTHING
from simul.common.nets.build import build_network
from tests.unit.common.nets.conftest import assert_overfits


@pytest.mark.parametrize(
    ("name", "layout", "options", "shared"),
    [
        ("mlp_lstm", "flat_spec", {"hidden": 32}, True),
        ("mlp_lstm", "declared_spec", {"hidden": 32, "embedding": "auto"}, True),
        ("mlp", "declared_spec", {"hidden": 32}, True),
        ("mlp", "declared_spec", {"hidden": 32}, False),
        ("mlp_gru", "flat_spec", {"hidden": 32}, True),
        ("mlp_gru", "declared_spec", {"hidden": 32}, False),
        ("attention", "declared_spec", {"width": 16, "hidden": 32}, True),
        ("attention", "declared_spec", {"width": 16, "hidden": 32, "memory": "lstm"}, True),
        ("attention", "declared_spec", {"width": 16, "hidden": 32, "memory": "gru"}, False),
        ("attention", "entity_spec", {"width": 16, "hidden": 32, "entities": ["own", "foe", "move"]}, True),
        ("conv_lstm", "image_spec", {"channels": [16], "blocks": 1, "hidden": 64}, True),
        ("board_resnet", "board_spec", {"channels": 16, "blocks": 1, "hidden": 32}, True),
        ("pokemon", "entity_spec", {"entity": 16, "hidden": 32}, True),
        ("pokemon", "entity_spec", {"entity": 16, "hidden": 32, "memory": "none", "attention": 1}, True),
        ("examples.custom_network:GruNetwork", "declared_spec", {"hidden": 32}, True),
        ("examples.attention_network:AttentionNetwork", "declared_spec", {"width": 16}, True),
    ],
)
def test_a_network_overfits_one_batch(name, layout, options, shared, request, observed):
    spec = request.getfixturevalue(layout)
    network = build_network(NetworkConfig(name, options, shared=shared), spec, seed=1, trust=EVERYTHING)
    assert_overfits(network, *observed(spec, 3, 6))
