"""`simul watch`: a game of policies and scripted players, turn by turn, or the replay of one."""

from __future__ import annotations

import argparse
import math
import os

from simul.launch.commands.play import add_game
from simul.launch.option_types import add_trust, checkpoint, path, whole_number

LONGEST_DELAY_SEC = 3600.0
WHO = "Name who plays: --checkpoint, or a GAME with --opponent, or one that the zoo has a policy for; or a --replay."


def add_watch(watch: argparse.ArgumentParser) -> None:
    """Add its arguments to a parser."""
    watch.add_argument(
        "--checkpoint", dest="checkpoints", action="append", type=checkpoint, default=[], metavar="D",
        help="a checkpoint, a run directory, either in a store (s3://...), or zoo:NAME; several: seat by seat, the "
        "last one at all seats that are left",
    )  # fmt: skip
    watch.add_argument(
        "--opponent", dest="opponents", action="append", default=[], metavar="KIND",
        help="a scripted player of the game, at the seats after the checkpoints'",
    )  # fmt: skip
    add_game(watch)
    watch.add_argument("--replay", type=path, metavar="FILE", help="show a game that `simul eval --replays` wrote")
    watch.add_argument(
        "--delay", type=_delay, metavar="SEC", help="between two turns (default: a key, Enter, in a terminal)"
    )
    watch.add_argument("--seed", type=whole_number, metavar="N", help="of the game (default: a new one)")
    watch.add_argument("--sample", action="store_true", help="draw actions; default: the most probable one")
    watch.add_argument("--replays", type=path, metavar="DIR", help="write the game there")
    add_trust(watch)
    watch.add_argument("--set", dest="overrides", action="append", default=[], metavar="K=V", help="as for `up`")
    watch.set_defaults(run=_watch)


def _delay(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0.0 <= seconds <= LONGEST_DELAY_SEC:
        raise argparse.ArgumentTypeError(f"expected seconds from 0 to {LONGEST_DELAY_SEC:.0f}; got {text!r}")
    return seconds


def _watch(options: argparse.Namespace) -> int:
    from simul.common.config.game_description import TABLE_PLAYER
    from simul.common.errors import ConfigError
    from simul.launch.processes.role_process import run_in_foreground
    from simul.launch.supervisor.checkpoint_files import newest_checkpoint
    from simul.launch.supervisor.store_process import local_checkpoints
    from simul.launch.table_games.origin import find_origin
    from simul.launch.table_games.table_game import run_table

    if options.replay is not None:
        given = {
            "--game": options.game, "--checkpoint": options.checkpoints, "--opponent": options.opponents,
            "--seed": options.seed is not None, "--sample": options.sample, "--replays": options.replays,
            "--set": options.overrides,
        }  # fmt: skip
        if refused := [option for option, value in given.items() if value]:
            raise ConfigError(f"A replay is a game that was played, with its players: leave {', '.join(refused)} out.")
        further = (
            [f"--parent={os.getpid()}"]
            + ["--trust"] * options.trust
            + ([] if options.delay is None else [f"--delay={options.delay}"])
        )
        return run_in_foreground(TABLE_PLAYER, [f"--replay={options.replay.absolute()}", *further])
    if not options.checkpoints and not options.game:
        raise ConfigError(WHO)
    with local_checkpoints(options.checkpoints) as checkpoints:
        origin = find_origin(
            options.game, next(iter(checkpoints), None), None, options.overrides, trust=options.trust,
            from_zoo=not options.opponents,
        )  # fmt: skip
        if origin.checkpoint is None and not options.opponents:
            settings = " with these settings" if options.overrides else ""
            raise ConfigError(f"{WHO} The zoo has no policy for {origin.config.game_title}{settings}.")
        others = [newest_checkpoint(each) for each in checkpoints[1:]]
        return run_table(origin, others, options, person=None)
