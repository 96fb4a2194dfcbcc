import pytest

from simul.common.config.games.pokemon import PokemonConfig, ShowdownAddress
from simul.common.config.schema import Config, WorkersConfig
from simul.common.errors import ConfigError
from simul.env_worker.games.loading import build_source
from simul.env_worker.games.pokemon.showdown.shares import share_of


def servers(*limits: int) -> tuple[ShowdownAddress, ...]:
    return tuple(ShowdownAddress(f"host{number}", 8000, limit) for number, limit in enumerate(limits))


@pytest.mark.parametrize(
    ("limits", "workers"), [((2,), 1), ((4,), 2), ((7,), 2), ((2, 2, 2), 2), ((6, 2), 3), ((3, 10, 2), 3)]
)
def test_all_workers_together_stay_within_every_servers_limit(limits, workers):
    asked = servers(*limits)
    shares = [share_of(asked, index, workers) for index in range(workers)]
    for server in asked:
        used = sum(one.max_connections for share in shares for one in share if one.host == server.host)
        assert used == server.max_connections // 2 * 2
    sizes = [sum(one.max_connections // 2 for one in share) for share in shares]
    assert min(sizes) >= 1
    assert max(sizes) - min(sizes) <= 1


def test_a_worker_that_would_have_nowhere_to_play_is_a_sentence():
    with pytest.raises(ConfigError, match=r"allow 1 pairs .* 2 workers.* max_connections to 4 in all"):
        share_of(servers(3), 0, 2)


def test_no_servers_means_servers_of_our_own():
    assert share_of((), 1, 2) == ()


def test_a_worker_is_built_with_its_share():
    pokemon = PokemonConfig(transport="websocket", servers=servers(2, 6))
    config = Config(game="pokemon", pokemon=pokemon, workers=WorkersConfig(count=2))
    built = [
        build_source(config, index=index, episodes=None, greedy=False, record=False)._config.servers
        for index in range(2)
    ]
    assert [[(one.host, one.max_connections) for one in share] for share in built] == [
        [("host0", 2), ("host1", 2)],
        [("host1", 4)],
    ]
