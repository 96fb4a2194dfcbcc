"""Which processes of a run need to be on one machine, what they need there, and whether machines have it. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from simul.common.config.schema import Config
from simul.launch.processes.process_group import ROLE_TITLES
from simul.launch.processes.role_reports import RoleKey


class Bundle(msgspec.Struct, frozen=True):
    """Processes of one role on one machine, and the processors and GPUs that they need together."""

    role: str
    indices: tuple[int, ...]
    cpus: float
    gpus: float = 0.0

    @property
    def title(self) -> str:
        """`learner`, `inference server 1` or `workers 0 to 15`."""
        first, last = self.indices[0], self.indices[-1]
        if self.role == "env_worker":
            return f"worker {first}" if first == last else f"workers {first} to {last}"
        return f"{ROLE_TITLES[self.role]}{f' {first}' if self.role == 'inference_server' else ''}"

    @property
    def resources(self) -> dict[str, float]:
        """By name, as Ray has them."""
        return {"CPU": self.cpus, **({"GPU": self.gpus} if self.gpus else {})}


class Machine(msgspec.Struct, frozen=True):
    """A machine of a cluster, and what is free there."""

    name: str
    cpus: float
    gpus: float = 0.0


def bundles_of(config: Config) -> list[Bundle]:
    """The bundles of a run: the learner with all its ranks, each inference server, and the workers in equal parts."""
    placement, servers = config.cluster.placement, config.cluster.servers.count
    ranks, nodes = config.cluster.learner.ranks, min(placement.worker_nodes, config.workers.count)
    parts = [range(config.workers.count * n // nodes, config.workers.count * (n + 1) // nodes) for n in range(nodes)]
    return [
        Bundle("learner", tuple(range(ranks)), ranks * config.learner.threads, placement.learner_gpus),
        *(Bundle("inference_server", (n,), config.server.threads, placement.server_gpus) for n in range(servers)),
        *(Bundle("env_worker", tuple(part), len(part)) for part in parts),
    ]


def machines_of(nodes: Iterable[Mapping[str, Any]], free: Mapping[str, Mapping[str, float]]) -> list[Machine]:
    """The living nodes of a Ray cluster. Those that share an address have their NodeID in the name.

    Args:
        nodes: as `ray.nodes()` has them.
        free: what is free by NodeID; what is missing there is used up.
    """
    living = [node for node in nodes if node["Alive"]]
    at = Counter(node["NodeManagerAddress"] for node in living)
    machines = []
    for node in living:
        name, number = node["NodeManagerAddress"], node["NodeID"]
        has = free.get(number, {})
        title = name if at[name] == 1 else f"{name} (node {number[:8]})"
        machines.append(Machine(title, has.get("CPU", 0.0), has.get("GPU", 0.0)))
    return machines


def place(bundles: Sequence[Bundle], machines: Sequence[Machine]) -> list[str | None]:
    """A machine's name for each bundle, None where none has room. The largest first, each where most is free."""
    free = [[machine.cpus, machine.gpus] for machine in machines]
    found: list[str | None] = [None] * len(bundles)
    for at in sorted(range(len(bundles)), key=lambda at: (-bundles[at].gpus, -bundles[at].cpus)):
        bundle = bundles[at]
        fitting = [number for number, (cpus, gpus) in enumerate(free) if cpus >= bundle.cpus and gpus >= bundle.gpus]
        if fitting:
            number = max(fitting, key=lambda number: free[number][0])
            free[number][0] -= bundle.cpus
            free[number][1] -= bundle.gpus
            found[at] = machines[number].name
    return found


def placement_text(bundles: Sequence[Bundle], machines: Sequence[Machine]) -> tuple[str, bool]:
    """(The placement in lines, for `--dry-run`; whether everything has a place)."""
    found = place(bundles, machines)
    lines = [f"{'bundle':24} {'CPU':>5} {'GPU':>5}  machine"]
    for bundle, name in zip(bundles, found):
        lines.append(f"{bundle.title:24} {bundle.cpus:5g} {bundle.gpus:5g}  {name or '- (no machine has room)'}")
    lines.append("")
    lines += [f"{machine.name} has {machine.cpus:g} CPU and {machine.gpus:g} GPU free" for machine in machines]
    lacking = lacking_text(bundles, machines)
    if lacking:
        lines.append(f"Lacking: {lacking}")
    return "\n".join(lines), not lacking


def lacking_text(bundles: Sequence[Bundle], machines: Sequence[Machine]) -> str:
    """Which bundles no machine has room for, what they need, and what to do; empty: all have a place."""
    lacking = [bundle for bundle, name in zip(bundles, place(bundles, machines)) if name is None]
    if not lacking:
        return ""
    cpus, gpus = sum(bundle.cpus for bundle in lacking), sum(bundle.gpus for bundle in lacking)
    return (
        f"{', '.join(bundle.title for bundle in lacking)} ({cpus:g} CPU, {gpus:g} GPU). Add machines, or lower "
        "workers.count, server.threads, learner.threads, cluster.learner.ranks or cluster.placement; "
        "cluster.placement.worker_nodes divides the workers."
    )


def bundle_of(bundles: Sequence[Bundle], key: RoleKey) -> int:
    """The index of the bundle that a process belongs to."""
    role, index = key
    return next(at for at, bundle in enumerate(bundles) if bundle.role == role and index in bundle.indices)


def by_machine(names: Mapping[str, str]) -> str:
    """`learner on a, workers 0 to 3 on b`; `names`: machines by bundle title."""
    return ", ".join(f"{title} on {name}" for title, name in names.items())
