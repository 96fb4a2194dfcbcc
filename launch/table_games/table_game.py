"""One game at a table in this terminal, for `simul play` and `simul watch`: who plays it, and with which server."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from simul.common.client.control import ControlClient
from simul.common.config.game_description import TABLE_PLAYER
from simul.common.config.games import game_called
from simul.common.config.matchups import Contestant
from simul.common.config.opponents import opponent_kind
from simul.common.errors import ConfigError
from simul.common.protocol.messages import LEARNER_POLICY
from simul.common.role.run_directory import RunDir
from simul.common.role.temporary import temporary_folder
from simul.launch.monitoring.view.output import complain
from simul.launch.processes.role_process import run_in_foreground
from simul.launch.supervisor.checkpoint_files import checkpoint_labels, config_of
from simul.launch.supervisor.inference_only import frozen_run
from simul.launch.table_games.origin import Origin


def run_table(
    origin: Origin, others: Sequence[Path], options: argparse.Namespace, *, person: int | None,
    page_port: int | None = None,
) -> int:  # fmt: skip
    """Start the game and wait for its end; returns the exit code. Raises ConfigError, RoleDied.

    Args:
        others: further checkpoints, of a game to watch.
        options: of `play` or `watch`: `opponents`, `seed`, `sample`, `replays`; of `play` only: `policy`.
        person: seat of the person; None: a game to watch.
        page_port: where it is played in a browser; None: in this terminal.
    """
    config = origin.config
    if game_called(config.game).player != TABLE_PLAYER:
        raise ConfigError(f"The {origin.what} plays {config.game}, which is not played at a table.")
    folders = [*([] if origin.checkpoint is None else [origin.checkpoint]), *others]
    names = [LEARNER_POLICY, *(f"eval/{number}" for number in range(1, len(folders)))]  # as in `simul eval`
    policies = [
        Contestant(label, name, points_of_value=config_of(folder, (), origin.trust).points_of_value)
        for label, name, folder in zip(checkpoint_labels(folders), names, folders)
    ]
    if origin.run is not None:
        policy = options.policy or LEARNER_POLICY
        policies = [Contestant(policy, policy=policy)]
    scripted = game_called(config.game).scripted
    bots = [Contestant(kind, bot=kind) for kind in (opponent_kind(name, scripted) for name in options.opponents)]
    contestants = [*policies, *bots] if person is None else bots or policies
    arguments = [f"--parent={os.getpid()}", "--contestants", msgspec.json.encode(contestants).decode()]
    if person is not None:
        arguments += [f"--person={person}", *(f"--adviser={policy.policy}" for policy in policies)]
    arguments += [
        f"--{name}={value}"
        for name in ("seed", "delay", "replays")
        if (value := getattr(options, name, None)) is not None
    ]
    arguments += ["--sample"] * options.sample + ["--trust"] * origin.trust.everything
    origin.say_who_plays()
    with _run_of(origin, dict(zip(names, folders))) as run:
        if policies:
            arguments += [f"--remembering={name}" for name in _with_memory(run)]
        arguments = ["--run-dir", str(run.root), *arguments]
        if page_port is not None:
            from simul.launch.monitoring.page.game_in_page import play_in_page

            return play_in_page(TABLE_PLAYER, arguments, page_port)
        return run_in_foreground(TABLE_PLAYER, arguments)


def _with_memory(run: RunDir) -> list[str]:
    """The policies that its server offers whose networks have a memory."""
    with ControlClient(run) as control:
        return [policy.name for policy in control.policies().policies if policy.memory]


@contextmanager
def _run_of(origin: Origin, served: Mapping[str, Path]) -> Iterator[RunDir]:
    """The run directory with the game's configuration and, where policies play, their server."""
    if origin.run is not None:
        yield origin.run
    elif not served:
        with temporary_folder("simul-table-") as folder:
            run = RunDir(folder)
            run.write_config(origin.config)
            yield run
    else:
        complain(f"starting an inference server with {', '.join(map(str, served.values()))}\n")
        others = {name: folder for name, folder in served.items() if name != LEARNER_POLICY}
        with frozen_run(served[LEARNER_POLICY], origin.config, others=others, trust=origin.trust) as run:
            yield run
