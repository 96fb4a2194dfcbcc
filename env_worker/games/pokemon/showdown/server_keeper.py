"""Keeps Showdown servers under a source: starts its own, connects to others, brings back what fails."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from simul.common.config.schema import ShowdownAddress
from simul.common.protocol.errors import ConfigError
from simul.env_worker.games.pokemon.showdown.address import server_at
from simul.env_worker.games.pokemon.showdown.server_session import READY, TROUBLE, Letter, OwnSite, Site
from simul.env_worker.games.pokemon.showdown.showdown_host import ShowdownHost
from simul.env_worker.games.pokemon.showdown.wakeup_queue import Mailbox
from simul.env_worker.games.pokemon.simulator.host_messages import HostTick

LOOK_SEC = 0.05


class ShowdownKeeper:
    """Stands where a HostKeeper does. A server that fails costs its own battles only.

    Args:
        servers: those to use; none: `local_servers` of our own are started.
        say: takes sentences for the view.
    """

    def __init__(
        self,
        node: Path,
        servers: Sequence[ShowdownAddress],
        local_servers: int,
        *,
        stall_sec: float,
        say: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._mail: Mailbox[Letter] = Mailbox()
        self._say = say
        self._clock = clock
        self.host = ShowdownHost(node, self._mail, say, stall_sec=stall_sec, clock=clock)
        self._sites: list[Site] = [
            Site(f"the Showdown server at {one.host}:{one.port}", server_at(f"{one.host}:{one.port}"), self._mail,
                 one.max_connections // 2)
            for one in servers
        ] or [OwnSite(f"Showdown server {index}", node, self._mail, say) for index in range(local_servers)]  # fmt: skip

    @property
    def restarts(self) -> int:
        """How often a server failed and was brought up again, or is being."""
        return sum(site.failures for site in self._sites)

    @property
    def pids(self) -> list[int]:
        """Server processes that are ours."""
        return [pid for site in self._sites for pid in site.pids]

    def start(self) -> ShowdownHost:
        """Bring all of them up. Raises ConfigError where one does not answer, EnvError where our own keeps failing."""
        while not all(site.state == READY for site in self._sites):
            now = self._clock()
            words = {letter.pair: letter.text for letter in self._mail.take() if letter.kind == TROUBLE}
            for site in self._sites:
                failure = site.step(now) or next((words[pair] for pair in site.pairs if pair in words), "")
                if failure and not site.ours:
                    self.close()
                    raise ConfigError(f"{failure} Look at pokemon.servers, or leave it empty for servers of our own.")
                if failure:
                    self._say(failure)
                    site.fail(now)
            time.sleep(LOOK_SEC)
        self._count_pairs()
        return self.host

    def poll(self) -> HostTick:
        """What the servers have said. Raises EnvError where a server of our own fails again and again."""
        tick = HostTick()
        troubles: dict[object, str] = {}
        for letter in self._mail.take():
            if letter.kind == TROUBLE:
                troubles.setdefault(letter.pair, letter.text)
            else:
                self.host.take(letter, tick)
        for site in self._sites:
            self._look_after(site, troubles, tick)
        self._count_pairs()
        self.host.look_after(tick)
        self.host.flush()
        return tick

    def revive(self) -> ShowdownHost:
        """Servers come back one by one in `poll`."""
        return self.host

    def close(self) -> None:
        """Hang up, stop our own servers."""
        for site in self._sites:
            site.close()

    def _look_after(self, site: Site, troubles: dict[object, str], tick: HostTick) -> None:
        now, before = self._clock(), site.state
        failure = site.step(now) or next((troubles[pair] for pair in site.pairs if pair in troubles), "")
        if failure:
            battles = self.host.lose(site.pairs, tick)
            self._say(f"{failure.rstrip('. ')}; its {battles} battles are aborted, and it is tried again")
            site.fail(now)
        elif site.state == READY != before:
            self._say(f"{site.name} is back")

    def _count_pairs(self) -> None:
        self.host.pairs = [pair for site in self._sites if site.state == READY for pair in site.pairs]
