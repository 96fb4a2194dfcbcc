"""What the network is told of one decision, counted where ids have become embeddings and nothing is pooled yet."""

from simul.common.config.schema import PokemonConfig
from simul.common.nets.models.pokemon import TEAM, PokemonNetwork
from simul.env_worker.games.pokemon.formats.spec import pokemon_spec

MAPLES_WIDTH = 2160  # 1,136 features and 1,024 numbers of frozen embeddings


def test_the_input_is_at_least_as_wide_as_maples():
    spec = pokemon_spec(PokemonConfig())
    network = PokemonNetwork(spec)
    blocks = (network.pokemon, network.pokemon_encoder), (network.moves, network.move_encoder)
    of_entities = sum(part.count * (part.numbers.count + encoder.table.shape[1]) for part, encoder in blocks)
    rest = network.other_numbers.count + network.other_ids.count * network.other_table.shape[1] + spec.num_actions
    assert network.pokemon.count == 2 * TEAM
    assert of_entities + rest >= MAPLES_WIDTH
