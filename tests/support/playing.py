"""An agent of `simul play` at its table, with everything that is asked and said kept."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import contextmanager

from poke_env.concurrency import POKE_LOOP

from simul.common.config.games.pokemon import PokemonConfig
from simul.common.protocol.decisions import Decision
from simul.common.role.lifecycle import StopFlag
from simul.env_worker.games.pokemon.formats.tables import configured_tables
from simul.env_worker.games.pokemon.host.follower import Follower, following_keeper
from simul.env_worker.games.pokemon.install.node import find_node
from simul.env_worker.games.pokemon.play.agent import AgentPlayer
from simul.env_worker.games.pokemon.play.async_bridge import AsyncBridge
from simul.env_worker.games.pokemon.play.play import PlayLoop
from simul.env_worker.games.pokemon.showdown.address import account
from tests.support.showdown import Showdown
from tests.support.stand import Stand


class RecordingBridge(AsyncBridge):
    """Keeps what the agent asked and was told."""

    def __init__(self) -> None:
        super().__init__(POKE_LOOP)
        self.asked: list[Decision] = []
        self.chosen: dict[tuple[int, int, int], int] = {}

    def take_decisions(self) -> list[Decision]:
        taken = super().take_decisions()
        self.asked += taken
        return taken

    def resolve_actions(self, actions) -> None:
        self.chosen |= {(a.env, a.step, a.attempt): a.action for a in actions if a.action >= 0}
        super().resolve_actions(actions)


class Mishap(StopFlag):
    """Does something each time that so many decisions have been asked."""

    def __init__(self, bridge, happens: Callable[[], object], *at: int) -> None:
        super().__init__()
        self._bridge, self._happens, self._at = bridge, happens, list(at)

    def __bool__(self) -> bool:
        if self._at and len(self._bridge.asked) >= self._at[0]:
            del self._at[0]
            self._happens()
        return False


def started_follower(battle_format: str = "gen9randombattle") -> Follower:
    follower = Follower(
        following_keeper(find_node().path, configured_tables(PokemonConfig(format=battle_format))), print
    )
    follower.start()
    return follower


@contextmanager
def playing(server: Showdown, stand: Stand, name: str, **more):
    """An agent at its table."""
    bridge = RecordingBridge()
    options = {"battle_format": "gen9randombattle", "concurrency": 4, "paced": False, "greedy": False} | more
    follower = started_follower(options["battle_format"])
    agent = AgentPlayer(account(name, None), server.configuration, bridge, follower, **options)
    client = stand.client(f"play {name}", training=False, run_id=time.time_ns())  # as `simul play` numbers its lives
    table = PlayLoop(agent, bridge, client, quiet=True)
    try:
        yield agent, bridge, table
    finally:
        table.close()
