"""For all files: views, hands, a Showdown server. For one: a simulator host, an inference server; a host for a test."""

from __future__ import annotations

import pytest

from simul.common.config.games.pokemon import PokemonConfig
from simul.env_worker.games.pokemon.formats.spec import pokemon_spec
from simul.env_worker.games.pokemon.host.node_host import NodeHost
from simul.env_worker.games.pokemon.install.node import find_node
from tests.support.pokemon.hands import answering_hands
from tests.support.pokemon.views import running_views
from tests.support.showdown import showdown
from tests.support.stand import Stand


@pytest.fixture(scope="module")
def host():
    host = NodeHost(find_node().path)
    host.start()
    yield host
    host.close()


@pytest.fixture(scope="session")
def views():
    with running_views() as running:
        yield running


@pytest.fixture(scope="session")
def hands():
    with answering_hands() as running:
        yield running


@pytest.fixture
def own_host():
    host = NodeHost(find_node().path, index=3)
    host.start()
    yield host
    host.close()


@pytest.fixture(scope="session")
def shared_server():
    with showdown() as running:
        yield running


@pytest.fixture
def server(shared_server):
    yield shared_server
    shared_server.disconnect_players()


@pytest.fixture(scope="module")
def stand():
    with Stand(pokemon_spec(PokemonConfig())) as running:
        yield running
