"""What a new process is told again, what of its answers is dropped, and which battles are given up."""

from __future__ import annotations

import orjson

from simul.env_worker.games.pokemon.host import follower as follower_module
from simul.env_worker.games.pokemon.host.follower import Follower
from simul.env_worker.games.pokemon.host.host_messages import BattleEnd, HostTick, SeatChoice
from simul.env_worker.games.pokemon.host.node_host import HostDied

REQUEST = {"side": {"id": "p1", "pokemon": []}}


class Process:
    """Notes what it is told."""

    def __init__(self) -> None:
        self.told: list[dict] = []

    def queue(self, command: bytes) -> None:
        self.told.append(orjson.loads(command))

    def stop_battle(self, battle: int) -> None:
        self.told.append({"c": "stop", "b": battle})

    def flush(self) -> None:
        pass


class Keeper:
    """Its process dies when told to, and the next one is there at once."""

    restarts = 0

    def __init__(self) -> None:
        self.backend: Process | None = Process()
        self.says: list[HostTick | HostDied] = []

    def poll(self) -> HostTick:
        said = self.says.pop(0) if self.says else HostTick()
        if isinstance(said, HostDied):
            self.backend = None
            raise said
        return said

    def revive(self) -> Process:
        self.backend = Process()
        return self.backend


class Stage:
    def __init__(self) -> None:
        self.keeper = Keeper()
        self.said: list[str] = []
        self.follower = Follower(self.keeper, self.said.append)  # type: ignore[arg-type]
        for battle in (1, 2):
            self.follower.follow(battle, (True, False))
            self.follower.see(battle, 0, 1, "|turn|1", REQUEST)

    def hear(self, **answers) -> HostTick:
        self.keeper.says.append(HostTick(**answers))
        return self.follower.poll()

    def die(self) -> list[BattleEnd]:
        """The process dies and another is told; returns the ends of battles."""
        self.keeper.says.append(HostDied("it exited"))
        return self.follower.poll().ended + self.follower.poll().ended


def choice(battle: int, number: int = 1) -> SeatChoice:
    return SeatChoice(battle, 0, number, "move 1")


def test_a_new_process_is_told_all_of_every_battle_and_its_known_answers_are_dropped():
    stage = Stage()
    stage.hear(choices=[choice(1)])  # any answer: the follower only counts them
    stage.follower.act(1, 0, 1, 6)
    told = stage.keeper.backend.told
    assert stage.die() == []
    assert stage.keeper.backend.told == sorted(told, key=lambda command: command["b"])
    assert stage.hear(choices=[choice(1), choice(2)]).choices == [choice(2)]
    assert stage.hear(choices=[choice(1, 2)]).choices == [choice(1, 2)]


def test_of_a_battle_that_is_over_nothing_is_told_again():
    stage = Stage()
    stage.follower.end(BattleEnd(1, 0, 5, "win"))
    assert stage.hear(ended=[BattleEnd(1, 0, 5, "win")]).ended == [BattleEnd(1, 0, 5, "win")]
    stage.follower.forget(2)
    stage.die()
    assert stage.keeper.backend.told == []


def test_the_battle_at_whose_command_two_processes_die_is_given_up_and_no_other():
    stage = Stage()
    stage.hear(choices=[choice(1)])
    assert stage.die() == []
    stage.hear(choices=[choice(1)])
    assert stage.die() == [BattleEnd(2, None, 0, "crashed")]
    assert {command["b"] for command in stage.keeper.backend.told} == {1}
    assert stage.said[-2] == "battle 2 is aborted: two following hosts have died of what its server sent"


def test_processes_that_are_killed_cost_no_battle():
    stage = Stage()
    stage.hear(choices=[choice(1)])
    assert stage.die() == [], "at the command of battle 2"
    assert stage.die() == [], "before it has answered anything again"
    stage.hear(choices=[choice(1), choice(2)])
    stage.follower.act(2, 0, 1, 6)
    assert stage.die() == [], "at the next command of battle 2"


def test_an_endless_battle_is_given_up(monkeypatch):
    monkeypatch.setattr(follower_module, "MOST_KEPT", 1000)
    stage = Stage()
    stage.follower.see(2, 0, 2, "|x" * 600, REQUEST)
    stage.follower.see(2, 0, 3, "", REQUEST)
    assert stage.follower.poll().ended == [BattleEnd(2, None, 0, "too_long")]
    assert [command["c"] for command in stage.keeper.backend.told] == ["follow", "see", "follow", "see", "stop"]


def test_a_request_that_cannot_be_passed_on_ends_its_own_battle():
    stage = Stage()
    deep = orjson.loads("[" * 300 + "]" * 300)
    stage.follower.see(2, 0, 2, "", {**REQUEST, "deep": deep})
    stage.follower.see(1, 0, 2, "", REQUEST)
    assert stage.follower.poll().ended == [BattleEnd(2, None, 0, "unreadable")]
    told = [(command["c"], command["b"]) for command in stage.keeper.backend.told]
    assert told[4:] == [("stop", 2), ("see", 1)]
