"""Values of a space that the network refuses are said before the first trial, by a process that imports torch."""

from __future__ import annotations

import math
import random
import subprocess
import sys
from collections.abc import Iterator, Sequence
from itertools import product

import msgspec

from simul.common.config.schema import Config
from simul.common.errors import SimulError
from simul.common.protocol.specs import GameSpec
from simul.launch.processes.role_process import role_command, role_environment
from simul.launch.supervisor.game_spec import ask_for_spec
from simul.launch.sweep.space import Dimension, raise_problems
from simul.launch.sweep.trial import Plan

LIMIT_SEC = 120.0
MOST_SPECS = 8  # combinations of settings of the game, each of which a process is asked for
MOST_TRIED = 64  # settings of the other keys, beside which a value may stand


def check_networks(plan: Plan, config: Config, space: Sequence[Dimension], source: str) -> None:
    """Raise ConfigError for each key of the network with an end, or a choice, that it takes beside none of the others'.

    Args:
        config: of the trials. Its game is asked for its spec; where the space has settings of the game, at their ends.
            A space with more than MOST_SPECS of these is not checked.
        source: of the space, for messages.
    """
    network = [each for each in space if each.key.split(".")[0] == "network"]
    game = [each for each in space if each.key.split(".")[0] in (config.game, "game_options")]
    if not network or math.prod(len(each.ends()) for each in game) > MOST_SPECS:
        return
    values = [(each, setting) for each in network for setting in each.ends()]
    alone: list[list[tuple[str, ...]]] = [[(setting,)] for _, setting in values]
    beside = [list(_beside(setting, [other for other in network if other is not each])) for each, setting in values]
    of_each_spec = [
        _ask(plan, spec, [[(*settings, *each) for each in among] for among in (*alone, *beside)])
        for settings, spec in _specs(plan, config, game)
    ]
    answers = [whys[0] if all(whys) else "" for whys in zip(*of_each_spec)]
    by_itself, with_others = answers[: len(values)], answers[len(values) :]
    refused = [why if other else "" for why, other in zip(by_itself, with_others)]
    problems: dict[str, str] = {}
    for (each, setting), why in zip(values, refused if any(refused) else with_others):
        if why:
            problems.setdefault(each.key, f"{setting}: {why}")
    raise_problems(list(problems.values()), source)


def _specs(plan: Plan, config: Config, game: Sequence[Dimension]) -> Iterator[tuple[tuple[str, ...], GameSpec]]:
    """The spec of each combination of the ends of `game` that the game takes, with these settings.

    Raises ConfigError or RoleDied, as `ask_for_spec`, where it takes none.
    """
    first: SimulError | None = None
    taken = False
    for settings in product(*(each.ends() for each in game)):
        try:
            spec = ask_for_spec(plan.load(settings) if settings else config, role_command)
        except SimulError as error:
            first = first or error
            continue
        taken = True
        yield settings, spec
    if first is not None and not taken:
        raise first


def _beside(setting: str, others: Sequence[Dimension]) -> Iterator[tuple[str, ...]]:
    """`setting` with ends of the others: all of them, or MOST_TRIED that are drawn."""
    ends = [other.ends() for other in others]
    if math.prod(map(len, ends)) <= MOST_TRIED:
        yield from ((setting, *rest) for rest in product(*ends))
        return
    draw = random.Random(0)
    yield from ((setting, *(draw.choice(each) for each in ends)) for _ in range(MOST_TRIED))


def _ask(plan: Plan, spec: GameSpec, values: Sequence[Sequence[Sequence[str]]]) -> Sequence[str]:
    """What `simul.common.nets.settings_check` answers; nothing where it fails: the trials report that."""
    question = {
        "spec": spec, "config": plan.config, "mode": plan.mode, "overrides": [*plan.overrides, *plan.own],
        "values": values,
    }  # fmt: skip
    line = [sys.executable, "-P", "-m", "simul.common.nets.settings_check"]
    try:
        done = subprocess.run(
            line, input=msgspec.json.encode(question), capture_output=True, env=role_environment(1), check=False,
            timeout=LIMIT_SEC,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return ()
    return () if done.returncode else msgspec.json.decode(done.stdout.splitlines()[-1], type=list[str])
