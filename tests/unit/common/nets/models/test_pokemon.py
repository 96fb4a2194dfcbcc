"""The network `pokemon`: what each of the 107 actions of doubles points at, and the width of its input."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import msgspec
import pytest
import torch

from simul.common.config.games.pokemon import PokemonConfig
from simul.common.config.loader import load_config
from simul.common.config.schema import NetworkConfig
from simul.common.errors import ConfigError
from simul.common.nets.build import build_network
from simul.common.nets.models.pokemon import TEAM, PokemonDoublesNetwork, PokemonNetwork
from simul.common.protocol.specs import GameSpec
from simul.common.runtime.installation import ROOT
from simul.env_worker.games.pokemon.formats.spec import pokemon_spec
from simul.env_worker.games.pokemon.tables.doubles_layout import NUM_ACTIONS
from tests.unit.common.nets.conftest import observe

SPEC = pokemon_spec(PokemonConfig(format="gen9randomdoublesbattle"))
STANDING = {"own": (2, 4), "foe": (0, 3)}  # who stands left and right
OWN_LEFT, OWN_RIGHT, FOE_LEFT, FOE_RIGHT = -1, -2, 1, 2


class Meaning(NamedTuple):
    """What an action stands for; `member`, `move`: -1 where it is none. gimmick: 0 none, 1 mega .. 4 tera."""

    member: int = -1
    move: int = -1
    target: int = 0
    gimmick: int = 0


MEANINGS = [Meaning(), *(Meaning(member=i) for i in range(6))]
MEANINGS += [Meaning(-1, k, target, gimmick) for gimmick in range(5) for k in range(4) for target in range(-2, 3)]


@pytest.fixture
def network() -> PokemonDoublesNetwork:
    built = build_network(NetworkConfig("pokemon"), SPEC, seed=2)
    assert isinstance(built, PokemonDoublesNetwork)
    return built


@pytest.fixture
def deaf(network: PokemonDoublesNetwork) -> PokemonDoublesNetwork:
    """Its trunk and its memory hear nothing: what is left is what actions point at."""
    with torch.no_grad():
        network.trunk.weight.zero_()
        network.trunk.bias.fill_(1.0)
    return network


@pytest.fixture
def observation() -> torch.Tensor:
    """float16 [1, D]: any numbers, but who stands where and who decides (the left slot)."""
    drawn, _ = observe(SPEC, 1, seed=4)
    put(drawn, "global.right", 0.0)
    for side, (left, right) in STANDING.items():
        for i in range(6):
            put(drawn, f"{side}.{i}.slot", torch.tensor([float(i == left), float(i == right)]))
    return drawn


def put(observation: torch.Tensor, name: str, value: torch.Tensor | float) -> None:
    part = SPEC.slice(name)
    observation[:, part.start : part.start + part.size] = value


def moved(network: PokemonDoublesNetwork, before: torch.Tensor, name: str) -> set[Meaning]:
    """What the actions stand for whose logits move when the numbers called `name` do."""
    after = before.clone()
    part = SPEC.slice(name)
    after[:, part.start : part.start + part.size] = 1.0 - after[:, part.start : part.start + part.size]
    changed = answered(network, before) != answered(network, after)
    return {MEANINGS[action] for action in torch.nonzero(changed).flatten().tolist()}


@torch.no_grad()
def answered(network: PokemonDoublesNetwork, observation: torch.Tensor) -> torch.Tensor:
    """Logits [A] of one observation."""
    logits, _, _ = network(observation, torch.ones(1, NUM_ACTIONS, dtype=torch.bool), network.initial_state(1))
    return logits[0]


def those(chosen: Callable[[Meaning], bool]) -> set[Meaning]:
    return {one for one in MEANINGS if chosen(one)}


def aimed(*targets: int) -> set[Meaning]:
    return those(lambda one: one.move >= 0 and one.target in targets)


def test_the_shipped_network_takes_doubles_as_it_is():
    config = load_config(ROOT / "configs" / "pokemon.yaml", ["pokemon.format=gen9randomdoublesbattle"])
    built = build_network(config.network, pokemon_spec(config.pokemon))
    assert 1.1e6 < sum(parameter.numel() for parameter in built.parameters()) < 1.3e6
    observation, mask = observe(SPEC, 5)
    with torch.no_grad():
        for output in (*built(observation, mask, built.initial_state(5)),):
            assert output.is_contiguous()


def test_every_id_has_an_embedding(network):
    ids = sum(part.size for part in SPEC.layout if part.kind == "id")
    read = [network.pokemon, network.moves]
    assert sum(blocks.count * blocks.ids.count for blocks in read) + network.other_ids.count == ids


def test_a_switch_is_about_who_comes_in(deaf, observation):
    for i in (0, 1, 3, 5):
        assert moved(deaf, observation, f"own.{i}.hp") == {Meaning(member=i)}
        assert moved(deaf, observation, f"own.{i}.right.takes") == {Meaning(member=i)}


def test_a_move_is_about_itself(deaf, observation):
    for k in range(4):
        assert moved(deaf, observation, f"move.{k}.power") == those(lambda one, k=k: one.move == k)
        assert moved(deaf, observation, f"partner_move.{k}.power") == set()


def test_a_target_is_about_who_stands_there(deaf, observation):
    assert moved(deaf, observation, "foe.0.hp") == aimed(FOE_LEFT)
    assert moved(deaf, observation, "foe.3.hp") == aimed(FOE_RIGHT)
    assert moved(deaf, observation, "own.2.hp") == aimed(OWN_LEFT) | {Meaning(member=2)}
    assert moved(deaf, observation, "own.4.hp") == aimed(OWN_RIGHT) | {Meaning(member=4)}
    assert moved(deaf, observation, "foe.1.hp") == set()


def test_who_decides_tells_oneself_from_the_partner(deaf, observation):
    assert moved(deaf, observation, "global.right") == aimed(OWN_LEFT, OWN_RIGHT)
    with torch.no_grad():
        deaf.relations[1] = deaf.relations[0]  # oneself is the partner: now nothing tells who decides
    assert moved(deaf, observation, "global.right") == set()


def test_what_a_move_does_to_a_foe_counts_at_that_foe(deaf, observation):
    """Beyond what the move's own encoding says, which all its targets share."""
    with torch.no_grad():
        deaf.move_encoder.output.weight.zero_()
    for field in ("damage", "knock_out_chance", "tera_damage", "effectiveness"):
        for side, target in (("left", FOE_LEFT), ("right", FOE_RIGHT)):
            expected = those(lambda one, target=target: one.move == 1 and one.target in (0, target))
            assert moved(deaf, observation, f"move.1.{side}.{field}") == expected


def test_the_left_ones_choice_is_heard(network, observation):
    """Through trunk and memory, as everything that is about no single action."""
    for name in ("global.first.move", "global.first.target", "partner_move.2.power", "global.weather"):
        assert len(moved(network, observation, name)) > 100, name


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"num_actions": 106}, "needs 7 \\+ 20 k actions for doubles; pokemon/.* has 106"),
        ({"layout": [part for part in SPEC.layout if part.name != "global.right"]}, "needs own.*slot, global.right"),
        ({"layout": [part for part in SPEC.layout if ".right.tera" not in part.name]}, "equal move"),
    ],
)
def test_a_layout_that_does_not_fit_is_refused_with_a_sentence(change, words):
    changed = {"layout": tuple(change["layout"])} if "layout" in change else change
    spec: GameSpec = msgspec.structs.replace(SPEC, **changed)
    with pytest.raises(ConfigError, match=words):
        build_network(NetworkConfig("pokemon"), spec)


MAPLES_WIDTH = 2160  # 1,136 features and 1,024 numbers of frozen embeddings


def test_the_input_is_at_least_as_wide_as_maples():
    spec = pokemon_spec(PokemonConfig())
    network = PokemonNetwork(spec)
    blocks = (network.pokemon, network.pokemon_encoder), (network.moves, network.move_encoder)
    of_entities = sum(part.count * (part.numbers.count + encoder.table.shape[1]) for part, encoder in blocks)
    rest = network.other_numbers.count + network.other_ids.count * network.other_table.shape[1] + spec.num_actions
    assert network.pokemon.count == 2 * TEAM
    assert of_entities + rest >= MAPLES_WIDTH
