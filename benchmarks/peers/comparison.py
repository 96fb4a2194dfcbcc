"""Starts all systems, then measures one at a time, in rounds."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from benchmarks.harness.processes import Child
from benchmarks.peers.results import Repeat, other_policies
from benchmarks.peers.systems import CANDIDATES, CLIENTS, ENVS, Placement, System, Tuned, Window, local, plain, tune
from benchmarks.serving.main import bare_forward
from benchmarks.serving.stand import Cell, Stand

FULL_BATCH = CLIENTS * ENVS

Turn = tuple[str, int]  # whose window, envs per client


@dataclass(frozen=True)
class Plan:
    """rounds of windows of `seconds`; sizes: envs per client, against local inference; tries: settings of a peer."""

    rounds: int
    seconds: float
    sizes: tuple[int, ...]
    tries: int


def compare_systems(placement: Placement, plan: Plan) -> tuple[list[Repeat], dict[str, Tuned]]:
    """Tune the peers, then measure."""
    tuned = {name: tune(name, placement, plan.seconds, plan.tries) for name in CANDIDATES}
    with ExitStack() as stack:
        ours = Stand(placement.folder, placement.precision, placement.cores)
        stack.callback(ours.close)
        bare = Child("benchmarks.serving.bare", [], placement.folder / "bare.log", core=placement.cores[0])
        stack.callback(bare.close)
        bare.wait_ready()
        systems = _systems(stack, placement, tuned)
        repeats = []
        for number in range(plan.rounds):
            sys.stderr.write(f"{placement.precision}: round {number + 1} of {plan.rounds}\n")
            repeats.append(_round(ours, systems, bare, placement.precision, number, plan))
        return repeats, tuned


def _systems(stack: ExitStack, placement: Placement, tuned: dict[str, Tuned]) -> dict[str, System]:
    systems = {}
    for name in (*tuned, "plain loop", "local"):
        if name in tuned:
            systems[name] = CANDIDATES[name][0](placement, **tuned[name].best)
        else:
            systems[name] = plain(placement) if name == "plain loop" else local(placement)
        stack.callback(systems[name].close)
    return systems


def turns(names: Sequence[str], sizes: Sequence[int], number: int) -> list[Turn]:
    """All windows of round `number`. Each round begins with another one, so that no window always follows the same."""
    order: list[Turn] = [(name, ENVS) for name in names]
    order += [(name, envs) for envs in sizes for name in ("simul", "local") if (name, envs) not in order]
    shift = number * max(1, len(order) // 3) % len(order)
    return order[shift:] + order[:shift]


def _round(ours: Stand, systems: dict[str, System], bare: Child, precision: str, number: int, plan: Plan) -> Repeat:
    def served(seconds: float, envs: int) -> Window:
        found = ours.measure(Cell(precision, CLIENTS, envs), seconds)
        return Window(found.actions_per_sec, found.cpu_us, found.p50_us, found.p99_us, found.mean_batch)

    measures: dict[str, Callable[[float, int], Window]] = {"simul": served}
    measures |= {name: system.measure for name, system in systems.items()}
    found = {(name, envs): measures[name](plan.seconds, envs) for name, envs in turns([*measures], plan.sizes, number)}
    windows = {name: found[name, ENVS] for name in measures}
    if wrong := other_policies(precision, windows):
        raise RuntimeError(f"Other values than local inference in the same games: {', '.join(wrong)}.")
    forward = {}
    for batch in sorted({FULL_BATCH, ENVS, max(1, round(found["simul", ENVS].mean_batch))}):
        wall, cpu = bare_forward(ours, bare, precision, batch, plan.seconds / 2)
        forward[batch] = wall / batch, cpu / batch
    return Repeat(
        windows=windows,
        ours={envs: found["simul", envs] for envs in plan.sizes},
        local={envs: found["local", envs] for envs in plan.sizes},
        forward=forward,
    )
