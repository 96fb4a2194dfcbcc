"""When a silent simulator host is pinged, when it is killed, and when its silence is not its own."""

from __future__ import annotations

import pytest

from simul.common.errors import EnvError
from simul.common.role.lifecycle import Stopped
from simul.env_worker.games.pokemon.host import host_keeper
from simul.env_worker.games.pokemon.host.host_keeper import HostKeeper
from simul.env_worker.games.pokemon.host.host_messages import HostTick
from simul.env_worker.games.pokemon.host.node_host import HostDied


class SilentHost:
    def __init__(self) -> None:
        self.bytes_heard = 0
        self.pings = 0
        self.closed: list[float] = []

    def poll(self):
        return HostTick()

    def ping(self, number):
        self.pings += 1

    def flush(self):
        pass

    def close(self, grace_sec=2.0):
        self.closed.append(grace_sec)


class Revivable(SilentHost):
    """Greets at once."""

    def __init__(self, node, **settings) -> None:
        super().__init__()

    def start(self):
        pass

    def spawn(self):
        pass

    def greeted(self):
        return True


class Watch:
    """A keeper of a silent host, and the time."""

    def __init__(self) -> None:
        self.now = 0.0
        self.host = SilentHost()
        self.keeper = HostKeeper(None, accelerate=True, index=4, silence_limit_sec=8.0, clock=lambda: self.now)
        self.keeper.backend = self.host

    def poll_for(self, seconds: float, every: float = 0.5) -> None:
        for _ in range(int(seconds / every)):
            self.now += every
            self.keeper.poll()


def test_a_silent_host_is_pinged_once_and_then_killed_without_grace():
    watch = Watch()
    watch.poll_for(3.5)
    assert watch.host.pings == 0
    watch.poll_for(4.0)
    assert watch.host.pings == 1
    with pytest.raises(HostDied, match=r"host 4 hung \(silent for 8 s\) and was killed"):
        watch.poll_for(1.0)
    assert watch.host.closed[0] == 0.0
    assert watch.keeper.backend is None


def test_a_word_from_the_host_starts_the_count_anew():
    watch = Watch()
    for _ in range(5):
        watch.poll_for(7.0)
        watch.host.bytes_heard += 1
        watch.keeper.poll()
    assert watch.host.pings == 5
    assert watch.host.closed == []


def test_a_pause_of_the_worker_is_not_held_against_the_host():
    watch = Watch()
    for _ in range(7):
        watch.poll_for(600.0, every=600.0)
    assert watch.host.closed == []


def test_every_host_it_starts_has_the_configured_settings(monkeypatch):
    started = []

    class Host(Revivable):
        def __init__(self, node, **settings):
            super().__init__(node)
            started.append(settings)

    monkeypatch.setattr(host_keeper, "NodeHost", Host)
    settings = {"accelerate": False, "index": 2, "replies_per_write": 8, "follow": True}
    HostKeeper(None, **settings).start()
    assert started == [settings]


def test_a_host_that_keeps_dying_is_given_up(monkeypatch):
    now = [0.0]
    keeper = HostKeeper(None, accelerate=True, index=0, clock=lambda: now[0])

    class DyingHost(Revivable):
        def poll(self):
            raise HostDied("gone")

    monkeypatch.setattr(host_keeper, "NodeHost", DyingHost)
    keeper.start()
    waits = []
    for _ in range(4):
        with pytest.raises(HostDied):
            keeper.poll()
        died = now[0]
        while keeper.revive() is None:
            now[0] += 0.25
        waits.append(now[0] - died)
    assert waits == [0.0, 0.5, 1.0, 2.0]
    with pytest.raises(EnvError, match="5 times"):
        keeper.poll()


@pytest.mark.parametrize(
    ("follow", "said", "gets_on"),
    [
        (False, {"rows": [None]}, False), (False, {"ended": [None]}, True),
        (True, {}, False), (True, {"rows": [None]}, True),
    ],
)  # fmt: skip
def test_a_host_that_hangs_again_and_again_is_given_up_unless_it_gets_on(monkeypatch, follow, said, gets_on):
    now = [0.0]
    keeper = HostKeeper(None, accelerate=True, index=0, follow=follow, clock=lambda: now[0])

    class Hanging(Revivable):
        """Says something once."""

        def poll(self):
            self.bytes_heard += not self.bytes_heard
            return HostTick(**said)

    def hang() -> None:
        while True:
            now[0] += 1.0
            keeper.poll()

    monkeypatch.setattr(host_keeper, "NodeHost", Hanging)
    keeper.start()
    for _ in range(host_keeper.MAX_DEATHS - 1):
        with pytest.raises(HostDied):
            hang()
        while keeper.revive() is None:
            now[0] += 1.0
    with pytest.raises(HostDied if gets_on else EnvError, match="hung" if gets_on else "5 times without progress"):
        hang()


def test_a_new_process_that_hangs_before_it_greets_blocks_nobody_and_is_given_up(monkeypatch):
    now, made = [0.0], []

    class Frozen(Revivable):
        def __init__(self, node, **settings) -> None:
            super().__init__(node)
            made.append(self)

        def greeted(self):
            return len(made) > 1

    monkeypatch.setattr(host_keeper, "NodeHost", Frozen)
    keeper = HostKeeper(None, accelerate=True, index=0, clock=lambda: now[0])
    assert keeper.revive() is None
    now[0] = host_keeper.START_SEC - 1
    assert keeper.revive() is None
    assert len(made) == 1
    now[0] += 2
    assert keeper.revive() is None
    assert made[0].closed, "killed"
    assert keeper.revive() is made[1]
    assert keeper.restarts == 1


def test_a_start_that_is_interrupted_leaves_no_process(monkeypatch):
    class Interrupted(Revivable):
        made: list[Interrupted] = []

        def start(self):
            self.made.append(self)
            raise Stopped

    monkeypatch.setattr(host_keeper, "NodeHost", Interrupted)
    with pytest.raises(Stopped):
        HostKeeper(None, accelerate=True, index=0).start()
    assert Interrupted.made[0].closed == [0.0]
