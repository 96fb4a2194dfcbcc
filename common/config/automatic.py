"""`auto` for the numbers of processes and threads: what fits on this machine. Pure but for `usable_machine`.

The processes of a game take most of the time, so workers get every core that the learner and the server leave free.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from simul.common.config.game_description import Game
from simul.common.runtime.machine_limits import MachineLimits, usable_machine

AUTO: Final = "auto"
CORES_A_THREAD = 8  # of the machine, for each thread of the learner and of a server
MOST_THREADS = 8
ROLES_MIB = 2048  # kept for the learner, the server and all else
AUTOMATIC = ("server.threads", "learner.threads", "workers.count")


def automatic_threads(machine: MachineLimits) -> int:
    """CPU threads of the learner's updates, or of a server's forward passes."""
    return max(1, min(int(machine.cores) // CORES_A_THREAD, MOST_THREADS))


def automatic_workers(machine: MachineLimits, taken_cores: int, game: Game) -> int:
    """Env workers. `taken_cores`: threads of all servers and of all ranks of the learner."""
    free = max(int(machine.cores) - taken_cores, game.least_workers)
    return max(1, min(free, int((machine.memory_mib - ROLES_MIB) / game.worker_mib)))


def settle_automatic(tree: dict[str, Any], game: Game, machine: MachineLimits | None = None) -> list[str]:
    """Replace `auto` in a configuration by numbers for this machine; returns a sentence where something was replaced.

    Args:
        machine: None: the one that this process runs on.
    """
    asked = [key for key in AUTOMATIC if _read(tree, key) == AUTO]
    if not asked:
        return []
    machine = machine or usable_machine()
    for key in asked:
        section, _, name = key.partition(".")
        threads = automatic_threads(machine)
        tree[section][name] = threads if name == "threads" else automatic_workers(machine, _taken(tree), game)
    found = ", ".join(f"{key} {_read(tree, key)}" for key in asked)
    cores = "1 core" if machine.cores == 1 else f"{machine.cores:g} cores"
    return [f"auto: {found} ({cores} and {machine.memory_mib:,.0f} MiB may be used)"]


def _taken(tree: Mapping[str, Any]) -> int:
    servers = _whole(_read(tree, "server.threads")) * _whole(_read(tree, "cluster.servers.count"))
    return servers + _whole(_read(tree, "learner.threads")) * _whole(_read(tree, "cluster.learner.ranks"))


def _read(tree: object, key: str) -> object:
    for name in key.split("."):
        tree = tree.get(name) if isinstance(tree, Mapping) else None
    return tree


def _whole(value: object) -> int:
    """1, the default, for what is not set; what is wrong is reported elsewhere."""
    return value if isinstance(value, int) and value > 0 else 1
