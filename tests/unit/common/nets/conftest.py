"""Specs the networks are tested on."""

import numpy as np
import pytest
import torch

from simul.common.config.games.pokemon import PokemonConfig
from simul.common.config.schema import NetworkConfig
from simul.common.nets.base import RecurrentNetwork
from simul.common.nets.build import build_network
from simul.common.protocol.specs import GameSpec
from simul.env_worker.games.ofc.observation import ofc_spec
from simul.env_worker.games.ofc.rules import Rules
from simul.env_worker.games.pokemon.formats.spec import pokemon_spec
from tests.support.declared import DECLARED, ONLY_ENTITIES


def observe(spec: GameSpec, *shape: int, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """A random observation [*shape, D] in the wire dtype and a mask [*shape, A] with at least one legal action."""
    rng = np.random.default_rng(seed)
    largest = 256 if spec.observation_dtype == "uint8" else 1
    observation = (largest * rng.random((*shape, spec.observation_size))).astype(spec.dtype())
    for part in spec.layout:
        if part.kind == "id":
            ids = rng.integers(0, part.vocabulary, (*shape, part.size))
            observation[..., part.start : part.start + part.size] = ids
    for group in spec.entities:
        for i in range(group.count if group.present else 0):
            column = spec.slice(f"{group.name}.{i}.{group.present}").start
            observation[..., column] = rng.random(shape) < 0.6
    mask = rng.random((*shape, spec.num_actions)) < 0.5
    mask[..., 0] = True
    return torch.from_numpy(observation), torch.from_numpy(mask)


@pytest.fixture
def flat_spec() -> GameSpec:
    return GameSpec("flat", 4, 2)


@pytest.fixture
def declared_spec() -> GameSpec:
    return DECLARED


@pytest.fixture
def only_entities_spec() -> GameSpec:
    return ONLY_ENTITIES


@pytest.fixture
def image_spec() -> GameSpec:
    """7 x 6 pixels of 3 channels, and 2 numbers behind them."""
    return GameSpec("image", 128, 5, "uint8", observation_shape=(7, 6, 3), observation_axes="HWC")


@pytest.fixture
def board_spec() -> GameSpec:
    """5 x 4 cells of 2 planes, and 2 numbers behind them; the first and the last action have no cell."""
    cells = (-1, *np.random.default_rng(0).permutation(60)[:11].tolist(), -1)
    image = {"observation_shape": (2, 5, 4), "observation_axes": "CHW"}
    return GameSpec("board", 42, len(cells), **image, action_planes=3, action_cells=cells)


@pytest.fixture(name="ofc_spec")
def _ofc_spec() -> GameSpec:
    return ofc_spec(Rules())


@pytest.fixture
def entity_spec() -> GameSpec:
    return pokemon_spec(PokemonConfig(set_knowledge=False))


@pytest.fixture
def entity_spec_with_sets() -> GameSpec:
    return pokemon_spec(PokemonConfig())


@pytest.fixture
def doubles_spec() -> GameSpec:
    return pokemon_spec(PokemonConfig(format="gen9randomdoublesbattle"))


@pytest.fixture
def observed():
    return observe


def trained(spec: GameSpec, name: str, options: dict[str, object]) -> torch.nn.Module:
    """A network of which no weight is zero."""
    network = build_network(NetworkConfig(name, options), spec, seed=1)
    draw = torch.Generator().manual_seed(3)
    for parameter in network.parameters():
        parameter.data += 0.1 * torch.randn(parameter.shape, generator=draw)
    return network.requires_grad_(False)


def assert_overfits(network: RecurrentNetwork, observation: torch.Tensor, mask: torch.Tensor) -> None:
    """It learns a random legal action and a value for each row of [T, B, D] by heart."""
    steps, sessions = mask.shape[:2]
    draw = torch.Generator().manual_seed(0)
    action = torch.multinomial(mask.flatten(0, 1).float(), 1, generator=draw).squeeze(1)
    value = torch.rand(steps, sessions, generator=draw) - 0.5
    state, lengths = network.initial_state(sessions), torch.full((sessions,), steps)
    optimizer = torch.optim.Adam(network.parameters(), 4e-3)
    for _ in range(400):
        logits, found = network.unroll(observation, mask, state, lengths)
        logits = logits.masked_fill(~mask, -torch.inf).flatten(0, 1)
        error = (found - value).square().mean()
        loss = torch.nn.functional.cross_entropy(logits, action) + 10 * error
        if loss < 0.02:
            break
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert torch.equal(logits.argmax(1), action)
    assert error < 0.005
